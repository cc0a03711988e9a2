// SPDX-License-Identifier: BSL-1.0
// What is measured: each section turns masters into figures.
#pragma once

#include "harness/figures.hpp"
#include "harness/options.hpp"
#include "harness/progress.hpp"

#include "support/server.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace redlock::bench
{

/// One client beside the reference, by turns.
figure_group measure_latency(std::span<test::server> masters, const options& settings, progress& status);

/// One client beside the reference and beside one that asks the masters one after the other, all of them a round trip away.
figure_group measure_distance(std::span<test::server> masters, const options& settings, progress& status);

/// One client with some of the masters stopped, killed or slow, beside itself with all of them healthy, by turns.
figure_group measure_faults(std::span<test::server> masters, const options& settings, progress& status);

/// What the client's heap grows to under load while some of the masters hang, beside itself with all of them healthy.
figure_group measure_memory(std::span<test::server> masters, const options& settings, progress& status);

/// Many leases that one client keeps.
figure_group measure_kept(std::span<test::server> masters, const options& settings, progress& status);

/// Kept leases while masters are killed and hang, and releases that race extensions: what must not happen, counted.
figure_group run_trials(std::span<test::server> masters, const options& settings, progress& status);

/// One client beside other ways to lock, by turns. What isn't there to be measured is told in its notes.
figure_group measure_peers(std::span<test::server> masters, const options& settings, progress& status);

/// Many workers at the same time beside the reference with as many, by turns.
figure_group measure_throughput(std::span<test::server> masters, const options& settings, progress& status);

/// One client with 1, 3, 5 and 7 masters of its own beside the reference with as many, by turns.
figure_group measure_scaling(std::span<test::server> masters, const options& settings, progress& status);

/// One client over unix sockets and TLS, with masters of its own, beside itself over TCP, by turns.
figure_group measure_transports(std::span<test::server> masters, const options& settings, progress& status);

/// Clients that want the same resource, beside such that wait as in the textbook, by turns.
figure_group measure_contention(std::span<test::server> masters, const options& settings, progress& status);

enum class cpus
{
    one, // That the client and its masters share.
    all // Rivals' rounds overlap in reality: one asks while a master answers another one. On one CPU they take turns.
};

struct section
{
    std::string_view name; // That `--only` knows.
    cpus runs_on;
    decltype(&measure_latency) measure;
    std::size_t min_masters = 1;
};

/// In the order in which they are measured.
inline constexpr std::array sections{
    section{"latency", cpus::one, measure_latency},
    section{"distance", cpus::one, measure_distance},
    section{"scaling", cpus::one, measure_scaling},
    section{"transports", cpus::one, measure_transports},
    section{"faults", cpus::one, measure_faults, 3},
    section{"memory", cpus::one, measure_memory, 3},
    section{"peers", cpus::one, measure_peers},
    section{"throughput", cpus::all, measure_throughput},
    section{"contention", cpus::all, measure_contention},
    section{"kept", cpus::all, measure_kept},
    section{"trials", cpus::all, run_trials, 3},
};

} // namespace redlock::bench
