// SPDX-License-Identifier: BSL-1.0
// When a kept lease is extended, and when its loss is declared. Values only.
#pragma once

#include <redlock/clock.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace redlock::core
{

/// The times of a kept lease.
struct lease_schedule
{
    std::chrono::milliseconds ttl;
    std::chrono::milliseconds extend_every;
    std::chrono::milliseconds stop_margin;
    std::chrono::milliseconds node_timeout;
    double drift_factor;
};

/// Fills in what the caller left open: extend_every = ttl / 3, stop_margin = max(ttl / 10, 2 × drift).
lease_schedule make_schedule(
    std::chrono::milliseconds ttl, std::optional<std::chrono::milliseconds> extend_every,
    std::optional<std::chrono::milliseconds> stop_margin, std::chrono::milliseconds node_timeout,
    double drift_factor) noexcept;

/// What is wrong with it, with the values and what is allowed; empty if nothing is. An extension, late by its
/// jitter, must be able to fail once by silence and be repeated before the loss is declared: 1.1 ×
/// extend_every + 2 × node_timeout + stop_margin + drift < ttl.
std::string schedule_complaint(const lease_schedule& given);

/// When the next extension is sent, counted from now: after extend_every, off by up to 10 % either way, so that
/// leases that were taken together drift apart; then back to the last beat, so that what is sent at about the same
/// time is sent together. A beat is 25 ms, or 1/200 of extend_every if that is less.
clock::time_point
extension_at(const lease_schedule& given, clock::time_point now, std::uint64_t random) noexcept;

/// When the loss is declared of a lease that is valid until then: by then the body has its stop_margin left.
clock::time_point loss_at(const lease_schedule& given, clock::time_point valid_until) noexcept;

} // namespace redlock::core
