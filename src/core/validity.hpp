// SPDX-License-Identifier: BSL-1.0
// How long a lease can be relied on, and which times are allowed. Values only: no clock is read here.
#pragma once

#include <redlock/clock.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace redlock::core
{

/// The longest ttl: a hundred years. Any lock's is far below it, and what a server refuses is far above it.
inline constexpr std::chrono::milliseconds max_ttl{std::chrono::hours{24 * 365 * 100}};

/// By how much the clocks of a master and of this process may drift apart during a ttl: ttl × factor + 2 ms.
/// The 2 ms cover the precision of the servers' expiry (Redis documentation, "Distributed locks").
clock::duration drift(std::chrono::milliseconds ttl, double factor) noexcept;

/// Until when a lease is valid that was asked for at `sent`: sent + ttl − drift.
/// `sent` is a time before the first byte went out, so the elapsed time is in it.
clock::time_point
valid_until(clock::time_point sent, std::chrono::milliseconds ttl, double drift_factor) noexcept;

/// `end − now`, and 0 when that is past.
clock::duration remaining(clock::time_point end, clock::time_point now) noexcept;

/// `start + length`, and the largest time point where that overflows.
clock::time_point later(clock::time_point start, std::chrono::milliseconds length) noexcept;

/// The node timeout for a ttl: what was configured, else min(50 ms, ttl / 10), and at least 1 ms.
std::chrono::milliseconds
node_timeout(std::chrono::milliseconds ttl, std::optional<std::chrono::milliseconds> configured) noexcept;

/// The times of one operation, as the caller gave them.
struct timing
{
    std::chrono::milliseconds ttl;
    std::chrono::milliseconds min_validity;
    std::optional<std::chrono::milliseconds> configured_node_timeout;
    double drift_factor;
};

/// What is wrong with the ttl, with its value and the allowed range; empty if nothing is.
std::string ttl_complaint(const timing& given);
/// The same of min_validity, for a ttl that is right.
std::string min_validity_complaint(const timing& given);

} // namespace redlock::core
