// SPDX-License-Identifier: BSL-1.0
// The vote of a master. Includes the standard library only, because the pure layers use it.
#pragma once

#include <redlock/detail/export.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlock
{

/// The maximum number of masters of one manager.
inline constexpr std::size_t max_masters = 31;

/// The vote of one master in a round.
enum class vote : std::uint8_t
{
    pending,   ///< The command was sent; neither its reply nor the node timeout has come.
    granted,   ///< The key was set, extended or deleted, with our owner id.
    denied,    ///< Acquire: the key exists, or others come first. Else: it is missing or isn't ours.
    timed_out, ///< No reply within the node timeout. The command may have run, or may still run.
    failed,    ///< The master replied with an error, or the connection broke. The command may have run.
    unsent     ///< Nothing was sent: the master wasn't connected, or one of its limits was reached.
};

/// Returns the vote as a word for messages, such as "granted" or "timed out". Thread-safe.
REDLOCK_API std::string_view to_string(vote value) noexcept;

/// Returns the number of masters that make a quorum: a majority of the configured ones, reachable or not.
constexpr std::size_t quorum_of(std::size_t masters) noexcept
{
    return masters / 2 + 1;
}

} // namespace redlock
