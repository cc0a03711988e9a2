// SPDX-License-Identifier: BSL-1.0
// Rounds of competing clients that alternate, and the figures computed from them.
#include "harness/contention_rounds.hpp"

#include "harness/client.hpp"
#include "harness/statistics.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <exception>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

double milliseconds(std::chrono::nanoseconds length)
{
    return std::chrono::duration<double, std::milli>{length}.count();
}

/// Returns the number of grants of one client as a multiple of the mean.
double of_mean(double grants, const contention_round& round)
{
    return grants * static_cast<double>(round.grants.size()) / round.total_grants();
}

/// A round may have no sample: the resource was never idle, or never granted.
double percentile_or_nan(std::span<const std::chrono::nanoseconds> sorted, double fraction)
{
    return sorted.empty() ? std::numeric_limits<double>::quiet_NaN() : percentile_us(sorted, fraction);
}

/// Each round has its own resources.
std::string next_resource()
{
    static std::size_t used = 0;
    return resource_of("order", used++);
}

void run_round(contestant& one, const contention_scenario& scenario, contention_rounds& into)
{
    try
    {
        into.push_back(compete(one.clients(next_resource()), one.load(scenario.load), one.work));
    }
    catch (const std::exception& problem)
    {
        one.failure = fmt::format("{} failed with {}: {}", one.name, scenario.name, problem.what());
    }
}

} // namespace

std::vector<contention_rounds> run_alternately(
    std::span<contestant> contestants, const contention_scenario& scenario, progress& status,
    std::string_view section)
{
    std::vector<contention_rounds> by_contestant(contestants.size());
    for (std::size_t round = 0; round < scenario.rounds; ++round)
    {
        status.show(
            fmt::format("{}, {}: round {} of {}", section, scenario.name, round + 1, scenario.rounds));
        auto into = by_contestant.begin();
        for (contestant& each : contestants)
        {
            if (!each.failure && round < each.max_rounds)
            {
                run_round(each, scenario, *into);
            }
            ++into;
        }
    }
    return by_contestant;
}

const contention_metric grants_per_second{
    "grants", "/s", [](const contention_round& round) { return round.total_grants() / round.seconds(); }};
const contention_metric time_per_grant{"time per grant", "us", [](const contention_round& round) {
                                           return microseconds(round.length) / round.total_grants();
                                       }};
const contention_metric hand_over_p50{"release to grant p50", "us", [](const contention_round& round) {
                                          return percentile_or_nan(round.hand_overs, 0.5);
                                      }};
const contention_metric hand_over_p99{"release to grant p99", "us", [](const contention_round& round) {
                                          return percentile_or_nan(round.hand_overs, 0.99);
                                      }};
const contention_metric hand_over_max{"release to grant max", "us", [](const contention_round& round) {
                                          return percentile_or_nan(round.hand_overs, 1);
                                      }};
const contention_metric hand_over_tail{"release to grant p99 / p50", "", [](const contention_round& round) {
                                           return percentile_or_nan(round.hand_overs, 0.99) /
                                                  percentile_or_nan(round.hand_overs, 0.5);
                                       }};
const contention_metric wait_p50{
    "acquire p50", "us", [](const contention_round& round) { return percentile_or_nan(round.waits, 0.5); }};
const contention_metric longest_wait{
    "longest wait", "ms", [](const contention_round& round) { return milliseconds(round.max_wait); }};
const contention_metric first_grant{"first grant after the start", "ms", [](const contention_round& round) {
                                        return milliseconds(round.first_grant);
                                    }};
const contention_metric rounds_per_grant{"rounds per grant", "", [](const contention_round& round) {
                                             return round.servers.rounds / round.total_grants();
                                         }};
const contention_metric commands_per_grant{"commands per grant", "", [](const contention_round& round) {
                                               return round.servers.commands / round.total_grants();
                                           }};
const contention_metric server_cpu_per_grant{"server CPU per grant", "us", [](const contention_round& round) {
                                                 return microseconds(round.servers.cpu) /
                                                        round.total_grants();
                                             }};
const contention_metric fewest_grants{
    "fewest grants of a client / mean", "", [](const contention_round& round) {
        return of_mean(*std::min_element(round.grants.begin(), round.grants.end()), round);
    }};
const contention_metric most_grants{
    "most grants of a client / mean", "", [](const contention_round& round) {
        return of_mean(*std::max_element(round.grants.begin(), round.grants.end()), round);
    }};
const contention_metric repeated_grants{
    "grants to the previous holder", "",
    [](const contention_round& round) { return round.repeated / round.total_grants(); }};
const contention_metric grants_ahead{
    "grants ahead of an older client", "",
    [](const contention_round& round) { return round.ahead / round.total_grants(); }};
const contention_metric grants_ahead_waited{
    "of these, to clients that had waited", "",
    [](const contention_round& round) { return round.ahead_waited / round.total_grants(); }};
const contention_metric max_lead{
    "the longest time by which they were ahead", "ms",
    [](const contention_round& round) { return milliseconds(round.max_lead); }};
const contention_metric idle_share{"idle while a client waits", "", [](const contention_round& round) {
                                       return microseconds(round.idle) / microseconds(round.length);
                                   }};
const contention_metric first_share{"share of the greedy client", "", [](const contention_round& round) {
                                        return round.grants.front() / round.total_grants();
                                    }};

std::vector<double> wait_bounds(const contention_rounds& of, const contention_rounds& alone)
{
    assert(of.size() == alone.size());
    constexpr double us_per_ms = 1000;
    std::vector<double> bounds;
    for (std::size_t at = 0; at < of.size(); ++at)
    {
        const contention_round& round = of[at];
        const double hold = microseconds(round.held) / round.total_grants();
        const auto clients = static_cast<double>(round.grants.size());
        bounds.push_back(clients * (hold + 2 * wait_p50.of(alone[at])) / us_per_ms);
    }
    return bounds;
}

} // namespace redlock::bench
