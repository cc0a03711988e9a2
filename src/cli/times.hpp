// SPDX-License-Identifier: BSL-1.0
// The times of `redlock run`: what goes out of the ttl into what, and when the command is killed.
#pragma once

#include <redlock/clock.hpp>

#include <chrono>
#include <optional>

namespace redlock::cli
{

/// So long before the validity ends the whole process group has been sent SIGKILL.
inline constexpr std::chrono::milliseconds kill_margin{100};

/// The loss is declared so long before the validity ends: the grace, the margin above, and as much again for the time
/// that a signal takes.
constexpr std::chrono::milliseconds stop_margin(std::chrono::milliseconds grace) noexcept
{
    return grace + 2 * kill_margin;
}

/// How long each master has to answer in a round: ttl / 20, 1 to 500 ms. It is longer than the library's own default:
/// a master may be far away, and a command has the time.
std::chrono::milliseconds node_timeout(std::chrono::milliseconds ttl) noexcept;

/// The time between two extensions: ttl / 3.
std::chrono::milliseconds extend_every(std::chrono::milliseconds ttl) noexcept;

/// A quarter of the ttl, at most 5 s.
std::chrono::milliseconds default_grace(std::chrono::milliseconds ttl) noexcept;

/// The longest grace that a ttl has room for: 1.1 × extend_every + 2 × node_timeout + stop_margin + drift < ttl, as the
/// library requires it (redlock/options.hpp). Empty if it hasn't any.
std::optional<std::chrono::milliseconds> longest_grace(std::chrono::milliseconds ttl) noexcept;

/// The shortest ttl that can be kept, with a grace of 0 ms.
std::chrono::milliseconds shortest_ttl() noexcept;

/// When a group that was sent SIGTERM at `told` gets SIGKILL.
clock::time_point
kill_at(clock::time_point told, std::chrono::milliseconds grace, clock::time_point valid_until) noexcept;

} // namespace redlock::cli
