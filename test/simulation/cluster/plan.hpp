// SPDX-License-Identifier: BSL-1.0
// The plan of a run, drawn from its seed: the number of masters and clients, their settings and workload, and the
// schedule of faults.
#pragma once

#include <redlock/clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace redlock::test
{

/// A scheduled fault: its time, the index of its kind in the table of faults, and the seed of its own draws.
struct injection
{
    clock::duration at;
    std::size_t kind;
    std::uint64_t seed;
};

/// The workload of a client: the weights of its operations.
struct workload
{
    std::size_t tries = 1;    // One round.
    std::size_t acquires = 1; // Rounds until it holds.
    std::size_t keeps = 1;    // The same, extended in the background.
    std::size_t bodies = 1;   // A coroutine under a lock.

    std::size_t drops_one_in = 4;   // Leases that are destroyed without a release.
    std::size_t cancels_one_in = 8; // Operations that are cancelled while they run.
    clock::duration pause{};        // Between two operations, at most.
    clock::duration work{};         // How long a lease is held, at most.
};

/// What a master does differently, from its first connection to the end of the run.
struct habit
{
    std::vector<const char*> refuses{}; // Kinds of commands that it never runs: see `what_of`.
    const char* with = "";              // Its error reply to them.
    clock::duration fsync{};            // How long a write waits for the disk.
};

/// The masters are a guarded group, and the clients use guarded mode.
struct guarded_plan
{
    std::chrono::milliseconds max_ttl{};
    bool plain_client = false;   // The first client doesn't.
    bool shared_counter = false; // The resources of the workers have the same counter.
};

struct plan
{
    std::uint64_t seed = 0;
    std::optional<guarded_plan> guarded{};
    /// Masters may lose keys and clocks may drift freely, so exclusion isn't checked. In guarded mode, this doesn't include
    /// losses that guarded masters notice.
    bool breaks_assumptions = false;

    std::size_t masters = 3;
    std::size_t clients = 2; // Processes.
    std::size_t workers = 2; // In each of them.
    std::size_t resources = 1;
    bool observed = false;         // The managers have an observer.
    bool other_executors = false;  // Some handlers, and the observer, run on an executor of the caller's own.
    std::size_t throws_one_in = 0; // Handlers that throw; 0 for none.
    bool looked_on = false;        // Each process has an observer client.
    bool locked_up = false;        // The masters require a password.
    bool old_masters = false;      // The masters don't know HELLO.
    bool strict = false;           // The clients use the strict order.
    int database = 0;
    clock::duration length{};  // Until the faults stop.
    std::vector<habit> habits; // Of the first masters: a minority.

    std::vector<std::chrono::milliseconds> ttls;
    std::optional<std::chrono::milliseconds> node_timeout;
    std::chrono::milliseconds connect_timeout{};
    std::chrono::milliseconds reconnect_delay_max{};
    std::chrono::milliseconds retry_delay_max{};
    std::chrono::milliseconds probe_interval{};
    std::chrono::milliseconds response_timeout{};
    double drift_factor = 0.01;

    // Limits that are reached, and time for what ages.
    std::optional<std::size_t> max_outstanding_keys;
    std::optional<std::size_t> max_operations;
    std::optional<std::size_t> max_waiting_acquires;
    std::size_t max_waiting_events = 1024;
    clock::duration rest{}; // After the faults, before the checks.

    clock::duration latency{};
    clock::duration jitter{};
    bool close_resets = false; // What is under way to a master is lost when its client closes the connection.
    bool joins = false;        // Several replies may arrive in one read.
    workload does{};
    std::vector<injection> injections;

    std::chrono::milliseconds longest_ttl() const;
    /// The most that a clock may gain or lose, in millionths, so that two clocks stay within the drift.
    std::int64_t max_drift() const;
};

plan draw_plan(std::uint64_t seed);
/// From this seed on, the masters are a guarded group.
inline constexpr std::uint64_t first_guarded_seed = 1'000'000'000'000;

} // namespace redlock::test
