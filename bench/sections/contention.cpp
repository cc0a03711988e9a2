// SPDX-License-Identifier: BSL-1.0
// Clients that compete for one resource: the time from a release to the next grant, the commands it takes, and how
// evenly the grants are distributed. The reference are clients that wait as in the textbook.
#include "harness/contending_clients.hpp"
#include "sections/sections.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

using namespace std::chrono_literals;

constexpr std::array<contention_scenario, 4> scenarios{
    {{"2 clients", 2, false},
     {"10 clients", 10, false},
     {"100 clients", 100, false},
     {"2 clients, 1 greedy", 2, true}}};
constexpr double max_greedy_share = 0.6;

/// The rounds of one wait strategy.
struct contention_rounds
{
    void add(contention_round round)
    {
        const auto [min_grants, max_grants] = std::minmax_element(round.grants.begin(), round.grants.end());
        // A round may end without a grant if the votes are split in every attempt.
        const double total_grants =
            std::max(1.0, std::accumulate(round.grants.begin(), round.grants.end(), 0.0));
        hand_overs.insert(hand_overs.end(), round.hand_overs.begin(), round.hand_overs.end());
        const auto samples = sorted(std::move(round.hand_overs));
        p50.push_back(percentile_us(samples, 0.5));
        p99.push_back(percentile_us(samples, 0.99));
        rounds.push_back(round.rounds / total_grants);
        commands.push_back(round.commands / total_grants);
        grants.push_back(total_grants / round.seconds);
        repeated.push_back(round.repeated_grants / total_grants);
        min_share.push_back(*min_grants / total_grants);
        max_share.push_back(*max_grants / total_grants);
        first_share.push_back(round.grants.front() / total_grants);
        max_wait.push_back(std::chrono::duration<double, std::milli>{round.max_wait}.count());
    }

    /// A percentile of the hand-overs of all rounds.
    double overall_us(double fraction) const { return percentile_us(sorted(hand_overs), fraction); }

    std::vector<std::chrono::nanoseconds> hand_overs;
    std::vector<double> p50; // Of the hand-overs, per round.
    std::vector<double> p99;
    std::vector<double> rounds;      // Per grant.
    std::vector<double> commands;    // Per grant, of all masters.
    std::vector<double> grants;      // Per second.
    std::vector<double> repeated;    // The share of the grants to the previous holder.
    std::vector<double> min_share;   // The smallest share of one client.
    std::vector<double> max_share;   // The largest share of one client.
    std::vector<double> first_share; // The share of the first client.
    std::vector<double> max_wait;    // In milliseconds.
};

using strategy_pair = std::pair<contention_rounds, contention_rounds>; // Textbook and redlock.

void add_figures(const contention_scenario& scenario, const strategy_pair& outcome, std::vector<figure>& out)
{
    const auto& [textbooks, redlocks] = outcome;
    const auto name = [&](std::string_view of) { return fmt::format("{}: {}", scenario.name, of); };
    const auto add_hand_over =
        [&](std::string_view of, double fraction, std::vector<double> contention_rounds::*each)
    {
        out.push_back(
            {name(of), "us", textbooks.overall_us(fraction), redlocks.overall_us(fraction),
             ratios(redlocks.*each, textbooks.*each), std::nullopt});
    };
    const auto add_medians =
        [&](std::string_view of, std::string unit, std::vector<double> contention_rounds::*each)
    {
        out.push_back(
            {name(of), std::move(unit), spread_of(textbooks.*each).median, spread_of(redlocks.*each).median,
             ratios(redlocks.*each, textbooks.*each), std::nullopt});
    };
    // No ratio: a share may be zero.
    const auto add_share = [&](std::string_view of, std::vector<double> contention_rounds::*each)
    {
        out.push_back(
            {name(of), "", spread_of(textbooks.*each).median, spread_of(redlocks.*each).median, std::nullopt,
             std::nullopt});
    };
    add_hand_over("release to grant p50", 0.5, &contention_rounds::p50);
    add_hand_over("release to grant p99", 0.99, &contention_rounds::p99);
    add_medians("rounds per grant", "", &contention_rounds::rounds);
    add_medians("commands per grant", "", &contention_rounds::commands);
    add_medians("grants", "/s", &contention_rounds::grants);
    add_medians("longest wait", "ms", &contention_rounds::max_wait);
    add_share("grants to the previous holder", &contention_rounds::repeated);
    add_share("smallest share of a client", &contention_rounds::min_share);
    add_share("largest share of a client", &contention_rounds::max_share);
    if (scenario.greedy)
    {
        add_share("share of the greedy client", &contention_rounds::first_share);
        out.back().goal = max_greedy_share;
        out.back().samples = redlocks.first_share;
    }
}

/// Curves over the number of clients.
class contention_growth
{
  public:
    void add(std::size_t clients, const strategy_pair& outcome)
    {
        const auto& [textbooks, redlocks] = outcome;
        const auto at = static_cast<double>(clients);
        constexpr double us_per_ms = 1000;
        hand_over_[0].points.emplace_back(at, textbooks.overall_us(0.5) / us_per_ms);
        hand_over_[1].points.emplace_back(at, textbooks.overall_us(0.99) / us_per_ms);
        hand_over_[2].points.emplace_back(at, redlocks.overall_us(0.5) / us_per_ms);
        hand_over_[3].points.emplace_back(at, redlocks.overall_us(0.99) / us_per_ms);
        commands_[0].points.emplace_back(at, spread_of(textbooks.commands).median);
        commands_[1].points.emplace_back(at, spread_of(redlocks.commands).median);
    }

    std::vector<plot> plots() &&
    {
        const std::string clients = "competing clients";
        return {
            {"contention_hand_over", "From a release to the next grant", clients, "ms", true, true,
             std::move(hand_over_)},
            {"contention_commands", "Commands per grant, to all masters", clients, "commands", true, true,
             std::move(commands_)}};
    }

  private:
    std::vector<series> hand_over_{
        {"textbook, p50", {}}, {"textbook, p99", {}}, {"redlock, p50", {}}, {"redlock, p99", {}}};
    std::vector<series> commands_{{"textbook", {}}, {"redlock", {}}};
};

} // namespace

figure_group measure_contention(std::span<test::server> masters, const options& settings, progress& status)
{
    figure_group group{
        fmt::format(
            "Clients that compete for one resource and hold it for {} to {} ms", min_hold / 1ms,
            max_hold / 1ms),
        "textbook",
        {}};
    contention_growth with_clients;
    for (const contention_scenario& scenario : scenarios)
    {
        strategy_pair outcome;
        for (std::size_t round = 0; round < settings.rounds; ++round)
        {
            status.show(
                fmt::format("contention, {}: round {} of {}", scenario.name, round + 1, settings.rounds));
            outcome.first.add(compete(masters, scenario, wait_strategy::textbook, settings.contend_for));
            outcome.second.add(compete(masters, scenario, wait_strategy::library, settings.contend_for));
        }
        add_figures(scenario, outcome, group.figures);
        if (!scenario.greedy)
        {
            with_clients.add(scenario.clients, outcome);
        }
    }
    group.plots = std::move(with_clients).plots();
    return group;
}

} // namespace redlock::bench
