// SPDX-License-Identifier: BSL-1.0
// Whether a master's clock goes as ours does. Values only.
#pragma once

#include <redlock/clock.hpp>

#include <chrono>
#include <optional>

namespace redlock::core
{

/// What a master's clock showed at some time between two of ours.
struct clock_reading
{
    clock::time_point sent;
    clock::time_point received;
    std::chrono::microseconds theirs; // Since 1970.
};

/// Compares each reading with the one before it, for jumps, and with one that is about a minute old, for clocks that
/// run at another speed. What they are off against each other may change by drift_factor × time + 2 ms, as validity
/// assumes, beyond what the round trips leave open.
class clock_watch
{
  public:
    explicit clock_watch(double drift_factor) noexcept : factor_{drift_factor} {}

    /// By how much more than allowed their clock has gone ahead since (negative: fallen behind); empty while all is
    /// well. What was told is not told again: it goes on from this reading.
    std::optional<clock::duration> add(const clock_reading& now);
    /// The connection leads somewhere else now, perhaps.
    void forget() noexcept;

  private:
    std::optional<clock::duration>
    compare(const clock_reading& then, const clock_reading& now) const noexcept;

    double factor_;
    std::optional<clock_reading> last_;
    std::optional<clock_reading> anchor_;
};

} // namespace redlock::core
