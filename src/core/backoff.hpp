// SPDX-License-Identifier: BSL-1.0
// The random delay before something is tried again. A function of its arguments: chance is one of them.
#pragma once

#include <chrono>
#include <cstdint>

namespace redlock::core
{

/// The bounds of a back-off.
struct backoff_policy
{
    std::chrono::nanoseconds first;   // The bound of the first delay.
    std::chrono::nanoseconds longest; // No delay is longer.
};

/// No back-off is shorter: a busy loop against a server that refuses helps nobody.
inline constexpr std::chrono::nanoseconds backoff_floor = std::chrono::milliseconds{1};

/// The delay after the given number of failures in a row (1 or more), with full jitter: even between the
/// floor and a bound that doubles with each failure. The bound is at least eight times what the try itself
/// took, since rivals that wake within each other's rounds split the votes.
std::chrono::nanoseconds backoff_delay(
    const backoff_policy& policy, std::uint32_t failures, std::chrono::nanoseconds took,
    std::uint64_t random) noexcept;

} // namespace redlock::core
