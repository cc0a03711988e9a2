// SPDX-License-Identifier: BSL-1.0
// Rounds of clients that alternate, and the figures computed from them.
#pragma once

#include "harness/client.hpp"
#include "harness/figures.hpp"
#include "harness/metric.hpp"
#include "harness/options.hpp"
#include "harness/progress.hpp"

#include "support/server.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::bench
{

/// The runs of one client with the same load. Their samples are sorted.
using rounds = std::vector<run_record>;

/// Returns a load with at least twenty pairs per worker.
workload round_for(std::size_t workers, const options& settings);

/// A client, and the masters whose CPU time is counted with it.
struct participant
{
    client& tested;
    std::span<const test::server> masters;
};

/// Runs once, counts the CPU time of the masters and sorts the samples.
run_record run_measured(const participant& one, const workload& round);

/// Warms up each client, then measures `count` rounds in the order A, B, C, A, B, C. The result has the order of
/// the clients.
std::vector<rounds> run_alternately(
    std::initializer_list<participant> clients, const workload& round, std::size_t count, progress& status,
    std::string_view what);

/// A percentile of latency samples.
struct percentile
{
    std::string_view name;
    std::vector<std::chrono::nanoseconds> run_record::*samples;
    double fraction;
};

inline constexpr percentile acquire_p50{"acquire p50", &run_record::acquires, 0.5};
inline constexpr percentile acquire_p99{"acquire p99", &run_record::acquires, 0.99};
inline constexpr percentile acquire_p999{"acquire p99.9", &run_record::acquires, 0.999};
inline constexpr percentile pair_p50{"acquire + release p50", &run_record::pairs, 0.5};
inline constexpr percentile pair_p99{"acquire + release p99", &run_record::pairs, 0.99};

/// A total of a run, per pair or per second.
using quantity = metric<run_record>;

extern const quantity time_per_pair;
extern const quantity pairs_per_second;
extern const quantity client_cpu_per_pair;
extern const quantity server_cpu_per_pair;
extern const quantity allocations_per_pair;
extern const quantity system_calls_per_pair;
extern const quantity bytes_sent;
extern const quantity bytes_received;

/// Returns the percentile of the samples of all rounds.
double value_of(const percentile& metric, const rounds& of);

/// Returns the sum over all rounds.
double total_of(std::uint64_t run_record::*count, const rounds& of);

figure compared(
    const percentile& metric, const rounds& reference, const rounds& measured,
    std::optional<double> goal = {});

/// Appends the figures with a prefix and a suffix added to their names.
void add(
    std::vector<figure> figures, std::string_view prefix, std::string_view suffix, std::vector<figure>& to);

/// Returns a plot of cumulative distributions of acquire latency.
plot distribution_plot(std::string name, std::string title, std::vector<series> lines);
series distribution(std::string name, const rounds& of);

} // namespace redlock::bench
