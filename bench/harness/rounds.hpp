// SPDX-License-Identifier: BSL-1.0
// Clients that are measured by turns, and what is computed of their rounds.
#pragma once

#include "harness/client.hpp"
#include "harness/figures.hpp"
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

/// The stretches of one client, all of the same work. Their samples are sorted.
using rounds = std::vector<run_record>;

/// With twenty pairs of each worker at least.
workload round_for(std::size_t workers, const options& settings);

/// Who has a turn, and the masters whose CPU is counted with it.
struct participant
{
    client& of;
    std::span<const test::server> masters;
};

/// One stretch of it: with the CPU of the masters, and sorted samples.
run_record run_measured(const participant& of, const workload& round);

/// Each warms up, then so many rounds: A, B, C, A, B, C. In the same order.
std::vector<rounds> run_alternately(
    std::initializer_list<participant> clients, const workload& round, std::size_t count, progress& status,
    std::string_view what);

/// What is exceeded by no more than the rest of the samples.
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

/// What is summed up over a stretch.
struct quantity
{
    std::string_view name;
    std::string_view unit;
    double (*of)(const run_record& round);
};

extern const quantity time_per_pair;
extern const quantity pairs_per_second;
extern const quantity client_cpu_per_pair;
extern const quantity server_cpu_per_pair;
extern const quantity allocations_per_pair;
extern const quantity system_calls_per_pair;
extern const quantity bytes_sent;
extern const quantity bytes_received;

/// Of all rounds together.
double value_of(const percentile& metric, const rounds& of);
/// The median of the rounds.
double value_of(const quantity& metric, const rounds& of);

/// Of all rounds together.
double total_of(std::uint64_t run_record::*count, const rounds& of);

figure compared(
    const percentile& metric, const rounds& reference, const rounds& measured,
    std::optional<double> goal = {});
figure compared(
    const quantity& metric, const rounds& reference, const rounds& measured, std::optional<double> goal = {});
/// The goal is of what was measured: what may be nothing has no ratio.
figure without_ratio(
    const quantity& metric, const rounds& reference, const rounds& measured, std::optional<double> goal);

/// Appends them under longer names.
void add(
    std::vector<figure> figures, std::string_view prefix, std::string_view suffix, std::vector<figure>& to);

/// What share of all acquires took how long at most.
plot distribution_plot(std::string name, std::string title, std::vector<series> lines);
series distribution(std::string name, const rounds& of);

} // namespace redlock::bench
