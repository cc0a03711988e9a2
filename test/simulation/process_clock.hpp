// SPDX-License-Identifier: BSL-1.0
// The clock of one process: it may be ahead or late, run faster or slower than the true time, and jump.
#pragma once

#include <redlock/clock.hpp>

#include <cstdint>

namespace redlock::test
{

/// A map, linear from one change to the next, from the world's time to what the clock shows. It shows the true time
/// until it is changed. Waits for a time on it have to be computed again after a change.
class process_clock
{
  public:
    using time_point = clock::time_point;

    /// What it shows at a time that isn't before the last change.
    time_point shown_at(time_point truth) const noexcept;
    /// The earliest true time at which it shows `shown`, not before the last change. `max` for never.
    time_point when_shown(time_point shown) const noexcept;

    /// Sets how many millionths it gains, or loses: above -1'000'000.
    void set_rate(time_point now, std::int64_t millionths) noexcept;
    /// Jumps forwards or, if negative, backwards.
    void jump(time_point now, clock::duration by) noexcept;

  private:
    time_point changed_{}; // True.
    time_point showed_{};  // At that time.
    std::int64_t millionths_ = 0;
};

} // namespace redlock::test
