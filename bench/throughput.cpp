// SPDX-License-Identifier: BSL-1.0
// How many pairs of acquire and release one client makes with many workers at the same time, each with a resource of its
// own, and what a pair costs, beside the reference in the same round.
#include "sections.hpp"

#include "raw_client.hpp"
#include "redlock_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace redlock::bench
{

namespace
{

constexpr std::array<std::size_t, 4> how_many_at_once{1, 10, 100, 1000};
constexpr std::size_t pairs_of_each = 20; // At least.
constexpr std::size_t goals_are_for = 1000;

double microseconds(std::chrono::nanoseconds length)
{
    return std::chrono::duration<double, std::micro>{length}.count();
}

/// What a client's rounds gave, each divided by its pairs.
struct pair_record
{
    std::vector<double> wall;
    std::vector<double> cpu;
    std::vector<double> allocations;

    void add(const stretch& round)
    {
        const auto pairs = static_cast<double>(round.pairs());
        wall.push_back(microseconds(round.lasted) / pairs);
        cpu.push_back(microseconds(round.cpu) / pairs);
        allocations.push_back(static_cast<double>(round.allocations) / pairs);
    }
};

figure compared(
    std::string name, const std::vector<double>& raw, const std::vector<double>& redlock,
    std::optional<double> goal)
{
    return {std::move(name),      "us", spread_of(raw).median, spread_of(redlock).median,
            ratios(redlock, raw), goal};
}

} // namespace

figure_group measure_throughput(std::span<test::server> masters, const options& asked, progress& shown)
{
    raw_client raw{masters};
    redlock_client redlock{unhurried(masters)};
    figure_group group{"Many at the same time, each with a resource of its own, on all CPUs", "raw", {}};
    for (const std::size_t workers : how_many_at_once)
    {
        const work round{std::max(asked.pairs, pairs_of_each * workers), std::chrono::minutes{5}, workers};
        raw.run(round);
        redlock.run(round);
        pair_record raws;
        pair_record redlocks;
        for (std::size_t done = 0; done < asked.rounds; ++done)
        {
            shown.show(fmt::format("{} at once: round {} of {}", workers, done + 1, asked.rounds));
            raws.add(raw.run(round));
            redlocks.add(redlock.run(round));
        }
        const bool judged = workers == goals_are_for;
        const auto goal = [judged](double value) { return judged ? std::optional{value} : std::nullopt; };
        // At least 0.95 times the reference's pairs a second.
        group.figures.push_back(compared(
            fmt::format("time per pair, {} at once", workers), raws.wall, redlocks.wall, goal(1 / 0.95)));
        group.figures.push_back(compared(
            fmt::format("client CPU per pair, {} at once", workers), raws.cpu, redlocks.cpu, goal(2.5)));
        group.figures.push_back(
            {fmt::format("heap allocations per pair, {} at once", workers),
             "",
             {},
             spread_of(redlocks.allocations).median,
             {},
             goal(2)});
    }
    return group;
}

} // namespace redlock::bench
