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

/// Compares each reading of a master's clock with the previous one, to detect jumps, and with one that is about a
/// minute old, to detect a different speed. The offset between the clocks may change by drift_factor × time + 2 ms,
/// which is what the validity allows for, in addition to the uncertainty of the round trips.
class clock_watch
{
  public:
    explicit clock_watch(double drift_factor) noexcept : factor_{drift_factor} { forget(); }

    /// Adds a reading. If the clocks deviate by more than is allowed, returns by how much theirs advanced more than
    /// ours (negative: less). A deviation is reported once: later readings are compared with this one.
    std::optional<clock::duration> add(const clock_reading& now);
    /// Returns the last reading; empty if there is none.
    const std::optional<clock_reading>& last() const noexcept { return last_; }
    /// Returns by how much the clock could have gone ahead between two of the last readings without a report: the sum of
    /// their round trips, and the drift that is allowed.
    clock::duration unnoticed() const noexcept;
    /// Forgets all readings, because the connection may lead to another server.
    void forget() noexcept;

  private:
    clock::duration allowed(clock::duration at_most) const noexcept;
    std::optional<clock::duration>
    compare(const clock_reading& then, const clock_reading& now) const noexcept;

    double factor_;
    std::optional<clock_reading> last_;
    std::optional<clock_reading> anchor_;
    std::array<clock::duration, 3> unnoticed_; // Between each of the last readings and the one before it.
};

} // namespace redlock::core
