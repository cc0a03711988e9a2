// SPDX-License-Identifier: BSL-1.0
// The times of `redlock run`: how they follow from the ttl, and when the command is killed.
#pragma once

#include <redlock/clock.hpp>

#include <chrono>
#include <optional>

namespace redlock::cli
{

/// How long before the end of the validity SIGKILL is sent at the latest.
inline constexpr std::chrono::milliseconds kill_margin{100};

/// Returns how long before the end of the validity the loss is declared: the grace, `kill_margin`, and as much again
/// for the delivery of a signal.
constexpr std::chrono::milliseconds stop_margin(std::chrono::milliseconds grace) noexcept
{
    return grace + 2 * kill_margin;
}

/// Returns the node timeout: ttl / 20, 1 to 500 ms. It is longer than the library's default, since masters may be far
/// away and a command can wait.
std::chrono::milliseconds node_timeout(std::chrono::milliseconds ttl) noexcept;

/// Returns the time between two extensions: ttl / 3.
std::chrono::milliseconds extend_every(std::chrono::milliseconds ttl) noexcept;

/// Returns the default of --grace: a quarter of the ttl, at most 5 s.
std::chrono::milliseconds default_grace(std::chrono::milliseconds ttl) noexcept;

/// Returns the longest grace that fits into a ttl: 1.1 × extend_every + 2 × node_timeout + stop_margin + drift < ttl,
/// as the library requires (redlock/options.hpp). Empty if none fits.
std::optional<std::chrono::milliseconds> max_grace(std::chrono::milliseconds ttl) noexcept;

/// Returns the shortest ttl that can be extended in time, with a grace of 0 ms.
std::chrono::milliseconds shortest_ttl() noexcept;

/// Returns when to send SIGKILL after a SIGTERM at `told`.
clock::time_point
kill_at(clock::time_point told, std::chrono::milliseconds grace, clock::time_point valid_until) noexcept;

} // namespace redlock::cli
