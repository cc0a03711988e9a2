// SPDX-License-Identifier: BSL-1.0
// The reply to a question that the queue master has refused.
#pragma once

#include "resp/value.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace redlock::test
{

/// Returns its three numbers: the rank, the time to live of the key, and the number of waiting clients. Empty for any
/// other reply.
inline std::optional<std::array<std::int64_t, 3>> refusal_in(const resp::reply& reply)
{
    if (reply.root().kind != resp::kind::array || reply.root().size != 3)
    {
        return std::nullopt;
    }
    std::array<std::int64_t, 3> numbers{};
    for (std::size_t at = 0; at < numbers.size(); ++at)
    {
        if (reply.nodes[at + 1].kind != resp::kind::integer)
        {
            return std::nullopt;
        }
        numbers[at] = reply.nodes[at + 1].integer;
    }
    const auto [rank, expiry, waiting] = numbers;
    return rank >= -1 && waiting > rank ? std::optional{numbers} : std::nullopt;
}

} // namespace redlock::test
