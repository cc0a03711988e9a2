// SPDX-License-Identifier: BSL-1.0
// The clock of lease validities and deadlines.
#pragma once

#include <redlock/detail/export.hpp>

#include <chrono>

namespace redlock
{

/// The clock of all deadlines and lease validities in this library: `CLOCK_BOOTTIME`.
///
/// It is monotonic, can't be set, and keeps counting while the machine is suspended. `std::chrono::steady_clock`
/// (`CLOCK_MONOTONIC` on Linux) stops during suspend, so a lease measured with it would still appear valid after its
/// keys have expired.
struct clock
{
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock>;
    static constexpr bool is_steady = true;

    /// Returns the time since boot, including time spent in suspend. Thread-safe.
    REDLOCK_API static time_point now() noexcept;
};

} // namespace redlock
