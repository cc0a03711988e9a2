// SPDX-License-Identifier: BSL-1.0
// Clients that all want the same resource: how soon one of them has it after a release, how many commands that takes, and
// how evenly it goes round. Beside it clients that wait as in the textbook, by turns.
#include "harness/contending_clients.hpp"
#include "harness/redlock_client.hpp"
#include "sections/sections.hpp"

#include <redlock/redlock.hpp>

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

constexpr std::array<scene, 4> scenes{
    {{"2 clients", 2, false},
     {"10 clients", 10, false},
     {"100 clients", 100, false},
     {"1 of 2 at once", 2, true}}};
constexpr double most_of_a_greedy_one = 0.6;

/// What the rounds of one kind of clients gave.
struct contest_record
{
    void add(contest round)
    {
        const auto [least_of_one, most_of_one] =
            std::minmax_element(round.grants.begin(), round.grants.end());
        // Rivals that split the votes all the time may leave a round without any.
        const double all = std::max(1.0, std::accumulate(round.grants.begin(), round.grants.end(), 0.0));
        hand_overs.insert(hand_overs.end(), round.hand_overs.begin(), round.hand_overs.end());
        const auto samples = sorted(std::move(round.hand_overs));
        p50.push_back(percentile_us(samples, 0.5));
        p99.push_back(percentile_us(samples, 0.99));
        rounds.push_back(round.rounds / all);
        commands.push_back(round.commands / all);
        grants.push_back(all / round.seconds);
        again.push_back(round.again / all);
        least.push_back(*least_of_one / all);
        most.push_back(*most_of_one / all);
        first.push_back(round.grants.front() / all);
        longest_wait.push_back(std::chrono::duration<double, std::milli>{round.longest_wait}.count());
    }

    /// Of the hand-overs of all rounds together.
    double overall_us(double fraction) const { return percentile_us(sorted(hand_overs), fraction); }

    std::vector<std::chrono::nanoseconds> hand_overs;
    std::vector<double> p50; // Of the hand-overs of a round.
    std::vector<double> p99;
    std::vector<double> rounds;       // For a grant.
    std::vector<double> commands;     // For a grant, of all masters together.
    std::vector<double> grants;       // A second.
    std::vector<double> again;        // The part of all grants that the last holder got again.
    std::vector<double> least;        // The part that one client got, at least.
    std::vector<double> most;         // At most.
    std::vector<double> first;        // That the first one got.
    std::vector<double> longest_wait; // In milliseconds.
};

using both = std::pair<contest_record, contest_record>; // Of the textbook's clients and of ours.

void add_figures(const scene& what, const both& seen, std::vector<figure>& out)
{
    const auto& [textbooks, redlocks] = seen;
    const auto name = [&](std::string_view of) { return fmt::format("{}: {}", what.name, of); };
    const auto hand_over =
        [&](std::string_view of, double fraction, std::vector<double> contest_record::*each)
    {
        out.push_back(
            {name(of), "us", textbooks.overall_us(fraction), redlocks.overall_us(fraction),
             ratios(redlocks.*each, textbooks.*each), std::nullopt});
    };
    const auto medians = [&](std::string_view of, std::string unit, std::vector<double> contest_record::*each)
    {
        out.push_back(
            {name(of), std::move(unit), spread_of(textbooks.*each).median, spread_of(redlocks.*each).median,
             ratios(redlocks.*each, textbooks.*each), std::nullopt});
    };
    // Those who got nothing have no ratio to others.
    const auto part = [&](std::string_view of, std::vector<double> contest_record::*each)
    {
        out.push_back(
            {name(of), "", spread_of(textbooks.*each).median, spread_of(redlocks.*each).median, std::nullopt,
             std::nullopt});
    };
    hand_over("release to grant p50", 0.5, &contest_record::p50);
    hand_over("release to grant p99", 0.99, &contest_record::p99);
    medians("rounds per grant", "", &contest_record::rounds);
    medians("commands per grant", "", &contest_record::commands);
    medians("grants", "/s", &contest_record::grants);
    medians("longest wait", "ms", &contest_record::longest_wait);
    part("grants to the last holder", &contest_record::again);
    part("least share of one", &contest_record::least);
    part("largest share of one", &contest_record::most);
    if (what.greedy)
    {
        part("its own share", &contest_record::first);
        out.back().goal = most_of_a_greedy_one;
        out.back().samples = redlocks.first;
    }
}

/// How something grows with the number of clients.
class growth
{
  public:
    void add(std::size_t clients, const both& seen)
    {
        const auto& [textbooks, redlocks] = seen;
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
        const std::string clients = "clients that want the same resource";
        return {
            {"contention_hand_over", "From a release to the next grant", clients, "ms", true, true,
             std::move(hand_over_)},
            {"contention_commands", "Commands for a grant, to all masters together", clients, "commands",
             true, true, std::move(commands_)}};
    }

  private:
    std::vector<series> hand_over_{
        {"textbook, p50", {}}, {"textbook, p99", {}}, {"redlock, p50", {}}, {"redlock, p99", {}}};
    std::vector<series> commands_{{"textbook", {}}, {"redlock", {}}};
};

} // namespace

figure_group measure_contention(std::span<test::server> masters, const options& asked, progress& shown)
{
    figure_group group{
        fmt::format(
            "Clients that want the same resource, and hold it for {} to {} ms", shortest_hold / 1ms,
            longest_hold / 1ms),
        "textbook",
        {}};
    growth with_clients;
    for (const scene& what : scenes)
    {
        both seen;
        for (std::size_t round = 0; round < asked.rounds; ++round)
        {
            shown.show(
                fmt::format("the same resource, {}: round {} of {}", what.name, round + 1, asked.rounds));
            seen.first.add(
                rivals{unhurried(masters), what, waiting::textbook}.run(masters, asked.contend_for));
            seen.second.add(
                rivals{unhurried(masters), what, waiting::library}.run(masters, asked.contend_for));
        }
        add_figures(what, seen, group.figures);
        if (!what.greedy)
        {
            with_clients.add(what.clients, seen);
        }
    }
    group.plots = std::move(with_clients).plots();
    return group;
}

} // namespace redlock::bench
