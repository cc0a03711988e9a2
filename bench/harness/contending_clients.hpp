// SPDX-License-Identifier: BSL-1.0
// Clients that compete for one resource: each acquires it, holds it briefly, pauses and acquires it again.
#pragma once

#include "support/server.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace redlock::bench
{

// On average a pause is half as long as a hold, so that a client is waiting nearly all the time.
inline constexpr std::chrono::microseconds min_hold{3000};
inline constexpr std::chrono::microseconds max_hold{7000};
inline constexpr std::chrono::microseconds max_pause{5000};

/// The clients of a measurement.
struct contention_scenario
{
    std::string_view name;
    std::size_t clients;
    bool greedy; // The first client doesn't pause between release and acquire. All others do.
};

/// How a client waits for the resource.
enum class wait_strategy
{
    library, // By `async_acquire`.
    /// One round, and after a failure a random delay, as in other libraries: the README of node-redlock has a
    /// retryDelay of 200 ms and a retryJitter of 200 ms, which is added or subtracted. The delay is uniform in 0 to
    /// 400 ms.
    textbook
};

/// The result of one round.
struct contention_round
{
    std::vector<double> grants; // Per client.
    double repeated_grants = 0; // Grants to the previous holder.
    /// The time from a release to the next grant, if a client waited. The start counts as a release, the end as a
    /// grant.
    std::vector<std::chrono::nanoseconds> hand_overs;
    std::chrono::nanoseconds max_wait{0}; // Includes waits that ended without a grant.
    double rounds = 0;
    double commands = 0; // Commands that all masters ran.
    double seconds = 0;
};

/// Measures one round of new clients. Throws if two clients hold the resource at the same time, or if the round doesn't
/// end.
contention_round compete(
    std::span<test::server> masters, const contention_scenario& scenario, wait_strategy strategy,
    std::chrono::milliseconds length);

} // namespace redlock::bench
