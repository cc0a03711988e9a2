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

/// A clock that went another way than ours, by more than is allowed.
struct clock_deviation
{
    clock::duration
        by; // By how much it advanced more than ours (negative: less), if it was on time otherwise.
    clock::duration
        drift; // By how much less it was, or more, if it wasn't. If ours stood still, so did the drift count.
    clock::duration between; // By how much more it may have been, because of the round trips.
    clock::time_point since; // When the earlier one of the two readings was sent that show it.
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
