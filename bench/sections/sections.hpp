// SPDX-License-Identifier: BSL-1.0
// The sections: each measures with the given masters and returns figures.
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

/// One client, compared with the raw and the asio reference.
figure_group measure_latency(std::span<test::server> masters, const options& settings, progress& status);

/// One client, compared with the raw reference and with a client that sends to one master after the other. All
/// masters are a round trip away.
figure_group measure_distance(std::span<test::server> masters, const options& settings, progress& status);

/// One client with some masters stopped, killed or slow, compared with all masters healthy.
figure_group measure_faults(std::span<test::server> masters, const options& settings, progress& status);

/// The heap of a client under load while masters hang, compared with all masters healthy.
figure_group measure_memory(std::span<test::server> masters, const options& settings, progress& status);

/// The cost of many leases with automatic extension.
figure_group measure_kept(std::span<test::server> masters, const options& settings, progress& status);

/// Leases with automatic extension while masters are killed or hang, and releases that race extensions. Counts what
/// must not happen.
figure_group run_trials(std::span<test::server> masters, const options& settings, progress& status);

/// One client, compared with other lock libraries and servers. Those that aren't available are named in the notes.
figure_group measure_peers(std::span<test::server> masters, const options& settings, progress& status);

/// Many concurrent workers, compared with both references.
figure_group measure_throughput(std::span<test::server> masters, const options& settings, progress& status);

/// One client with 1, 3, 5 and 7 masters, started here, compared with the raw reference.
figure_group measure_scaling(std::span<test::server> masters, const options& settings, progress& status);

/// One client in guarded mode, compared with plain mode. Both have the same masters, started here.
figure_group measure_guarded(std::span<test::server> masters, const options& settings, progress& status);

/// One client over unix sockets and TLS, compared with TCP. Each has its own masters.
figure_group measure_transports(std::span<test::server> masters, const options& settings, progress& status);

/// Clients that compete for one resource, compared with clients that wait as in the textbook, with a client that is
/// alone, and with etcd and PostgreSQL if they are installed.
figure_group measure_contention(std::span<test::server> masters, const options& settings, progress& status);

enum class cpus
{
    one, // The client and its masters share it.
    all  // For competing clients, whose rounds overlap. On one CPU they would be serialized.
};

struct section
{
    std::string_view name; // The argument of `--only`.
    cpus runs_on;
    decltype(&measure_latency) measure;
    std::size_t min_masters = 1;
};

/// In the order of execution.
inline constexpr std::array sections{
    section{"latency", cpus::one, measure_latency},
    section{"distance", cpus::one, measure_distance},
    section{"scaling", cpus::one, measure_scaling},
    section{"transports", cpus::one, measure_transports},
    section{"guarded", cpus::one, measure_guarded},
    section{"faults", cpus::one, measure_faults, 3},
    section{"memory", cpus::one, measure_memory, 3},
    section{"peers", cpus::one, measure_peers},
    section{"throughput", cpus::all, measure_throughput},
    section{"contention", cpus::all, measure_contention},
    section{"kept", cpus::all, measure_kept},
    section{"trials", cpus::all, run_trials, 3},
};

} // namespace redlock::bench
