// SPDX-License-Identifier: BSL-1.0
// What one master said in a round. Standard library only: the pure layers use it too.
#pragma once

#include <redlock/detail/export.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlock
{

/// The most masters that one manager can have.
inline constexpr std::size_t max_masters = 31;

/// What one master said in a round, or why it said nothing.
enum class vote : std::uint8_t
{
    pending, ///< It was asked; neither its answer nor its deadline has come.
    granted, ///< It did what was asked: the key is set, extended or deleted, and it was ours.
    held, ///< It answered that the key isn't ours: held by another, or (extend, release) not ours any more.
    timed_out, ///< No answer before the node timeout. What it was sent may have run, or may still run.
    failed,    ///< It answered with an error, or its connection broke. What it was sent may have run.
    unsent     ///< It wasn't asked: no connection to it was ready, or the limit of owed releases was reached.
};

/// The word for a vote, as it stands in messages: "granted", "timed out". Thread-safe.
REDLOCK_API std::string_view to_string(vote value) noexcept;

/// The number of masters that make a quorum: a majority of the configured ones, whatever is reachable.
constexpr std::size_t quorum_of(std::size_t masters) noexcept
{
    return masters / 2 + 1;
}

} // namespace redlock
