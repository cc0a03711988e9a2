// SPDX-License-Identifier: BSL-1.0
// Rounds of competing clients that alternate, and the figures computed from them.
#pragma once

#include "harness/contending_clients.hpp"
#include "harness/metric.hpp"
#include "harness/progress.hpp"

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::bench
{

/// The rounds of one kind of client with the same load.
using contention_rounds = std::vector<contention_round>;

/// A kind of client that takes part in a comparison.
struct contestant
{
    std::string name;
    /// Creates the clients of a round. Each round has another resource, so that no key of the previous one is met.
    std::function<contender_factory(std::string resource)> clients;
    std::function<server_work()> work; // Of its servers.
    /// Changes the load that all share.
    contention_load (*load)(contention_load) = [](contention_load same) { return same; };
    std::size_t max_rounds = std::numeric_limits<std::size_t>::max();
    /// Set if it has failed. It is left out from then on.
    std::optional<std::string> failure{};
};

/// A load with its name in the results, and the number of rounds.
struct contention_scenario
{
    std::string name;
    contention_load load;
    std::size_t rounds;
};

/// Measures the rounds in the order A, B, C, A, B, C. The result has the order of the contestants. A round that fails
/// sets the `failure` of the contestant, and is missing.
std::vector<contention_rounds> run_alternately(
    std::span<contestant> contestants, const contention_scenario& scenario, progress& status,
    std::string_view section);

using contention_metric = metric<contention_round>;

extern const contention_metric grants_per_second;
extern const contention_metric time_per_grant;
extern const contention_metric hand_over_p50;
extern const contention_metric hand_over_p99;
extern const contention_metric hand_over_max;
extern const contention_metric hand_over_tail;
extern const contention_metric wait_p50;
extern const contention_metric longest_wait;
extern const contention_metric first_grant;
extern const contention_metric rounds_per_grant;
extern const contention_metric commands_per_grant;
extern const contention_metric server_cpu_per_grant;
extern const contention_metric fewest_grants;
extern const contention_metric most_grants;
extern const contention_metric repeated_grants;
extern const contention_metric grants_ahead;
extern const contention_metric grants_ahead_waited;
extern const contention_metric max_lead;
extern const contention_metric idle_share;
extern const contention_metric first_share;

/// Returns clients x (mean hold + two round trips) of each round in milliseconds. A lone client's acquire takes one round
/// trip.
std::vector<double> wait_bounds(const contention_rounds& of, const contention_rounds& alone);

} // namespace redlock::bench
