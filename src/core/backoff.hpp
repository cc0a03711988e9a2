// SPDX-License-Identifier: BSL-1.0
// The random delay before a retry. A pure function: the random number is an argument.
#pragma once

#include <chrono>
#include <cstdint>

namespace redlock::core
{

/// The bounds of a back-off.
struct backoff_policy
{
    std::chrono::nanoseconds first;   // The upper bound of the first delay.
    std::chrono::nanoseconds longest; // The upper bound of all delays.
};

/// The shortest delay. It prevents a busy loop against a server that refuses at once.
inline constexpr std::chrono::nanoseconds backoff_floor = std::chrono::milliseconds{1};

/// Returns the delay after `failures` failures in a row (1 or more), with full jitter: uniformly distributed
/// between the floor and a bound that doubles with each failure, up to `longest`. The bound is at least eight times
/// the duration of the attempt, `took`, because clients that retry during each other's rounds split the votes.
std::chrono::nanoseconds backoff_delay(
    const backoff_policy& policy, std::uint32_t failures, std::chrono::nanoseconds took,
    std::uint64_t random) noexcept;

} // namespace redlock::core
