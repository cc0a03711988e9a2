// SPDX-License-Identifier: BSL-1.0
// The validity of a lease, and the limits of its times. Values only: no clock is read here.
#pragma once

#include <redlock/clock.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace redlock::core
{

/// The maximum ttl, a hundred years: far more than any lock needs, and far less than servers refuse.
inline constexpr std::chrono::milliseconds max_ttl{std::chrono::hours{24 * 365 * 100}};

/// Returns how far the clocks of a master and of this process may drift apart during a ttl: ttl × factor + 2 ms.
/// The 2 ms cover the precision of the servers' expiry (Redis documentation, "Distributed locks").
clock::duration drift(std::chrono::milliseconds ttl, double factor) noexcept;

/// Returns the end of the validity of a lease: sent + ttl − drift. `sent` is a time before the first byte of the
/// request was written, so the time that the round took is subtracted as well.
clock::time_point
valid_until(clock::time_point sent, std::chrono::milliseconds ttl, double drift_factor) noexcept;

/// Returns the smallest ttl with which a key that is set now outlasts a validity that ends in `left`:
/// (left + 2 ms) / (1 − drift_factor), the inverse of the formula above.
std::chrono::milliseconds ttl_for(clock::duration left, double drift_factor) noexcept;

/// Returns `end − now`, or 0 if `end` has passed.
clock::duration remaining(clock::time_point end, clock::time_point now) noexcept;

/// Returns `start + length`, or the largest time point if that overflows.
clock::time_point later(clock::time_point start, std::chrono::milliseconds length) noexcept;

/// Returns the node timeout for a ttl: the configured one, or else min(50 ms, ttl / 10), at least 1 ms.
std::chrono::milliseconds
node_timeout(std::chrono::milliseconds ttl, std::optional<std::chrono::milliseconds> configured) noexcept;

/// The times of one operation, as given by the caller.
struct timing
{
    std::chrono::milliseconds ttl;
    std::chrono::milliseconds min_validity;
    std::optional<std::chrono::milliseconds> configured_node_timeout;
    double drift_factor;
};

/// Describes what is wrong with the ttl, with its value and the allowed range. Returns an empty string if it is valid.
std::string ttl_complaint(const timing& given);
/// Does the same for min_validity, with a valid ttl.
std::string min_validity_complaint(const timing& given);

} // namespace redlock::core
