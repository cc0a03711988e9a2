// SPDX-License-Identifier: BSL-1.0
// What a seed draws before anything happens: how large the universe is, how its clients are set up and what they do,
// and which faults come when.
#pragma once

#include <redlock/clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace redlock::test
{

/// One fault: of which kind (its place in the table of faults), when, and what it draws for itself.
struct injection
{
    clock::duration at;
    std::size_t kind;
    std::uint64_t seed;
};

/// How often a client does one thing or the other.
struct habits
{
    std::size_t tries = 1;    // One round.
    std::size_t acquires = 1; // Rounds until it holds.
    std::size_t keeps = 1;    // The same, extended in the background.
    std::size_t bodies = 1;   // A coroutine under a lock.

    std::size_t drops_one_in = 4;   // Leases that just go, instead of being released.
    std::size_t cancels_one_in = 8; // Operations that are cancelled somewhere on their way.
    clock::duration pause{};        // Between two deeds, at most.
    clock::duration work{};         // How long it holds, at most.
};

struct plan
{
    std::uint64_t seed = 0;
    /// Masters may lose keys, and clocks may go as they like: nothing can be promised then.
    bool breaks_assumptions = false;

    std::size_t masters = 3;
    std::size_t clients = 2; // Processes.
    std::size_t workers = 2; // In each of them.
    std::size_t resources = 1;
    bool looked_on = false;   // Somebody in each client asks, and reads all that he is told.
    bool locked_up = false;   // The masters want a password.
    bool old_masters = false; // They know no HELLO.
    int database = 0;
    clock::duration length{}; // Until the faults stop.

    std::vector<std::chrono::milliseconds> ttls;
    std::optional<std::chrono::milliseconds> node_timeout;
    std::chrono::milliseconds connect_timeout{};
    std::chrono::milliseconds reconnect_delay_max{};
    std::chrono::milliseconds retry_delay_max{};
    std::chrono::milliseconds ping_interval{};
    std::chrono::milliseconds dead_after{};
    double drift_factor = 0.01;

    clock::duration latency{};
    clock::duration jitter{};
    habits does{};
    std::vector<injection> injections;

    std::chrono::milliseconds longest_ttl() const;
    /// How many millionths a clock may gain or lose, so that two of them stay within the drift.
    std::int64_t most_drift() const;
};

plan draw_plan(std::uint64_t seed);

} // namespace redlock::test
