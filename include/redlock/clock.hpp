// SPDX-License-Identifier: BSL-1.0
// The clock on which leases are measured.
#pragma once

#include <redlock/detail/export.hpp>

#include <chrono>

namespace redlock
{

/// The clock of every deadline and validity in this library: `CLOCK_BOOTTIME`.
///
/// It goes on counting while the machine sleeps, and nobody can set it. `std::chrono::steady_clock` stops
/// with the machine on Linux, so a lease measured on it would look young after a sleep; the wall clock jumps.
struct clock
{
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock>;
    static constexpr bool is_steady = true;

    /// The time since the machine was started, sleep included. Thread-safe.
    REDLOCK_API static time_point now() noexcept;
};

} // namespace redlock
