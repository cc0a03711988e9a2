// SPDX-License-Identifier: BSL-1.0
// The times at which a kept lease is extended and its loss is declared. Values only: no clock is read here.
#pragma once

#include <redlock/clock.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace redlock::core
{

/// The timing of a kept lease.
struct lease_schedule
{
    std::chrono::milliseconds ttl;
    std::chrono::milliseconds extend_every;
    std::chrono::milliseconds stop_margin;
    std::chrono::milliseconds node_timeout;
    double drift_factor;
};

/// Returns a schedule, with defaults for the options that are not set: extend_every = ttl / 3,
/// stop_margin = max(ttl / 10, 2 × drift).
lease_schedule make_schedule(
    std::chrono::milliseconds ttl, std::optional<std::chrono::milliseconds> extend_every,
    std::optional<std::chrono::milliseconds> stop_margin, std::chrono::milliseconds node_timeout,
    double drift_factor) noexcept;

/// Describes what is wrong with a schedule, with the values and the limits. Returns an empty string for a valid one: an
/// extension that is late by its jitter can time out once and be repeated before the loss is declared, that is
/// 1.1 × extend_every + 2 × node_timeout + stop_margin + drift < ttl.
std::string schedule_complaint(const lease_schedule& given);

/// Returns the time of the next extension: `extend_every` after the attempt that was confirmed last was sent, as the validity
/// counts from there as well, with a jitter of ±10 % so that leases that were acquired together drift apart, and rounded down
/// to a beat so that extensions at about the same time share one write per master. A beat is 25 ms, or 1/200 of extend_every
/// if that is less.
clock::time_point
extension_at(const lease_schedule& given, clock::time_point sent, std::uint64_t random) noexcept;

/// Returns the time at which the loss of a lease is declared, which leaves the body `stop_margin` to stop.
clock::time_point loss_at(const lease_schedule& given, clock::time_point valid_until) noexcept;

} // namespace redlock::core
