// SPDX-License-Identifier: BSL-1.0
// A time limit for work that goes on elsewhere while this process is suspended, or its thread busy.
#pragma once

#include <redlock/clock.hpp>

namespace redlock::runtime
{

/// Measures a time limit as eight parts, one after the other. Whoever uses it arms a deadline for each part. A part that is
/// seen to end late is a part nevertheless, so that lateness costs an eighth of the limit at most, and there are eight of them
/// however late each is.
class parted_time
{
  public:
    void begin(clock::duration whole) noexcept
    {
        part_ = whole / parts;
        left_ = parts;
    }
    clock::duration part() const noexcept { return part_; }
    /// Counts a part that has ended. Returns whether another one begins.
    bool next() noexcept { return --left_ > 0; }
    bool over() const noexcept { return left_ <= 0; }

  private:
    static constexpr int parts = 8;

    clock::duration part_{};
    int left_ = 0;
};

} // namespace redlock::runtime
