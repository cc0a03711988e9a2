// SPDX-License-Identifier: BSL-1.0
// Detects jumps and a different speed of a master's clock. No I/O, no clock.
#pragma once

#include <redlock/clock.hpp>

#include <array>
#include <chrono>
#include <optional>

namespace redlock::core
{

/// A reading of a master's clock, taken between two readings of our clock.
struct clock_reading
{
    clock::time_point sent;
    clock::time_point received;
    std::chrono::microseconds theirs; // Since the Unix epoch.
};

/// How far a master's clock and ours went apart between two readings.
struct clock_deviation
{
    /// By how much theirs advanced more than ours; negative if it was less. Zero if the round trips can explain it.
    clock::duration by;
    /// By how much `by` may be wrong to either side, because one clock may drift against the other.
    clock::duration drift;
    /// By how much more it may have been, because the round trips hide when the clock was read.
    clock::duration between;
    /// When the earlier one of the two readings was sent.
    clock::time_point since;
};

/// Compares each reading of a master's clock with the previous one, to detect jumps, and with one that is about a
/// minute old, to detect a different speed. The offset between the clocks may change by drift_factor × time + 2 ms,
/// which is what the validity allows for, in addition to the uncertainty of the round trips.
class clock_watch
{
  public:
    explicit clock_watch(double drift_factor) noexcept : factor_{drift_factor} { forget(); }

    /// Adds a reading. Returns how the clocks deviate, if that is more than is allowed. A deviation is reported once: later
    /// readings are compared with this one.
    std::optional<clock_deviation> add(const clock_reading& now);
    /// Returns the last reading; empty if there is none.
    const std::optional<clock_reading>& last() const noexcept { return last_; }
    /// Returns how the clock has deviated from the last reading before `since` to the last one of all; empty if that is too long
    /// ago.
    std::optional<clock_deviation> deviation_since(clock::time_point since) const noexcept;
    /// Forgets all readings, because the connection may lead to another server.
    void forget() noexcept;

  private:
    clock::duration allowed(clock::duration at_most) const noexcept;
    clock_deviation deviation(const clock_reading& then, const clock_reading& now) const noexcept;
    std::optional<clock_deviation>
    compare(const clock_reading& then, const clock_reading& now) const noexcept;

    double factor_;
    std::optional<clock_reading> last_;
    std::optional<clock_reading> anchor_;
    std::array<std::optional<clock_reading>, 6> earlier_; // One in most of a second.
};

} // namespace redlock::core
