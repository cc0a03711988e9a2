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
using rounds = std::vector<stretch>;

/// With twenty pairs of each worker at least.
work round_for(std::size_t workers, const options& asked);

/// Who has a turn, and the masters whose CPU is counted with it.
struct turn
{
    client& of;
    std::span<const test::server> masters;
};

/// One stretch of it: with the CPU of the masters, and sorted samples.
stretch measured(const turn& of, const work& round);

/// Each warms up, then so many rounds: A, B, C, A, B, C. In the same order.
std::vector<rounds> by_turns(
    std::initializer_list<turn> clients, const work& round, std::size_t count, progress& shown,
    std::string_view what);

/// What is exceeded by no more than the rest of the samples.
struct percentile
{
    std::string_view name;
    std::vector<std::chrono::nanoseconds> stretch::*samples;
    double fraction;
};

inline constexpr percentile acquire_p50{"acquire p50", &stretch::acquires, 0.5};
inline constexpr percentile acquire_p99{"acquire p99", &stretch::acquires, 0.99};
inline constexpr percentile acquire_p999{"acquire p99.9", &stretch::acquires, 0.999};
inline constexpr percentile pair_p50{"acquire + release p50", &stretch::pairs, 0.5};
inline constexpr percentile pair_p99{"acquire + release p99", &stretch::pairs, 0.99};

/// What is summed up over a stretch.
struct quantity
{
    std::string_view name;
    std::string_view unit;
    double (*of)(const stretch& round);
};

extern const quantity time_per_pair;
extern const quantity pairs_per_second;
extern const quantity client_cpu;
extern const quantity server_cpu;
extern const quantity heap_allocations;
extern const quantity kernel_calls;
extern const quantity bytes_sent;
extern const quantity bytes_received;

/// Of all rounds together.
double value_of(const percentile& what, const rounds& of);
/// The median of the rounds.
double value_of(const quantity& what, const rounds& of);

/// Of all rounds together.
double total_of(std::uint64_t stretch::*count, const rounds& of);

figure compared(
    const percentile& what, const rounds& reference, const rounds& measured, std::optional<double> goal = {});
figure compared(
    const quantity& what, const rounds& reference, const rounds& measured, std::optional<double> goal = {});
/// The goal is of what was measured: what may be nothing has no ratio.
figure
beside(const quantity& what, const rounds& reference, const rounds& measured, std::optional<double> goal);

/// Appends them under longer names.
void add(
    std::vector<figure> figures, std::string_view before, std::string_view behind, std::vector<figure>& to);

/// What share of all acquires took how long at most.
plot distribution_plot(std::string name, std::string title, std::vector<series> lines);
series distribution(std::string name, const rounds& of);

} // namespace redlock::bench
