// SPDX-License-Identifier: BSL-1.0
// Clients that are measured by turns, and what is computed of their rounds.
#include "harness/rounds.hpp"

#include "harness/masters.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

constexpr std::size_t points_of_a_line = 200;

double microseconds(std::chrono::nanoseconds length)
{
    return std::chrono::duration<double, std::micro>{length}.count();
}

double per_pair(double sum, const stretch& round)
{
    return sum / static_cast<double>(round.acquires.size());
}

double per_pair(std::uint64_t sum, const stretch& round)
{
    return per_pair(static_cast<double>(sum), round);
}

std::vector<double> each(const percentile& what, const rounds& of)
{
    std::vector<double> values;
    for (const stretch& round : of)
    {
        values.push_back(percentile_us(round.*what.samples, what.fraction));
    }
    return values;
}

std::vector<double> each(const quantity& what, const rounds& of)
{
    std::vector<double> values;
    for (const stretch& round : of)
    {
        values.push_back(what.of(round));
    }
    return values;
}

std::vector<std::chrono::nanoseconds>
all(std::vector<std::chrono::nanoseconds> stretch::*samples, const rounds& of)
{
    std::vector<std::chrono::nanoseconds> out;
    for (const stretch& round : of)
    {
        out.insert(out.end(), (round.*samples).begin(), (round.*samples).end());
    }
    return sorted(std::move(out));
}

} // namespace

work round_for(std::size_t workers, const options& asked)
{
    constexpr std::size_t pairs_of_each = 20;
    return {std::max(asked.pairs, pairs_of_each * workers), std::chrono::minutes{5}, workers};
}

stretch measured(const turn& of, const work& round)
{
    const std::chrono::nanoseconds before = cpu_of(of.masters);
    stretch done = of.of.run(round);
    done.server_cpu = cpu_of(of.masters) - before;
    done.acquires = sorted(std::move(done.acquires));
    done.pairs = sorted(std::move(done.pairs));
    return done;
}

std::vector<rounds> by_turns(
    std::initializer_list<turn> clients, const work& round, std::size_t count, progress& shown,
    std::string_view what)
{
    shown.show(fmt::format("{}: warming up", what));
    for (const turn& each : clients)
    {
        each.of.run(round);
    }
    std::vector<rounds> seen(clients.size());
    for (std::size_t done = 0; done < count; ++done)
    {
        shown.show(fmt::format("{}: round {} of {}", what, done + 1, count));
        auto into = seen.begin();
        for (const turn& each : clients)
        {
            into++->push_back(measured(each, round));
        }
    }
    return seen;
}

const quantity time_per_pair{
    "time per pair", "us", [](const stretch& round) { return per_pair(microseconds(round.lasted), round); }};
const quantity pairs_per_second{"pairs", "/s", [](const stretch& round) {
                                    return static_cast<double>(round.acquires.size()) /
                                           std::chrono::duration<double>{round.lasted}.count();
                                }};
const quantity client_cpu{"client CPU per pair", "us", [](const stretch& round) {
                              return per_pair(microseconds(round.cpu), round);
                          }};
const quantity server_cpu{"server CPU per pair", "us", [](const stretch& round) {
                              return per_pair(microseconds(round.server_cpu), round);
                          }};
const quantity heap_allocations{
    "heap allocations per pair", "", [](const stretch& round) { return per_pair(round.allocations, round); }};
const quantity kernel_calls{
    "system calls per pair", "", [](const stretch& round) { return per_pair(round.kernel.count, round); }};
const quantity bytes_sent{
    "bytes sent per pair", "", [](const stretch& round) { return per_pair(round.kernel.sent, round); }};
const quantity bytes_received{"bytes received per pair", "", [](const stretch& round) {
                                  return per_pair(round.kernel.received, round);
                              }};

double value_of(const percentile& what, const rounds& of)
{
    return percentile_us(all(what.samples, of), what.fraction);
}

double value_of(const quantity& what, const rounds& of)
{
    return spread_of(each(what, of)).median;
}

double total_of(std::uint64_t stretch::*count, const rounds& of)
{
    double sum = 0;
    for (const stretch& round : of)
    {
        sum += static_cast<double>(round.*count);
    }
    return sum;
}

figure
compared(const percentile& what, const rounds& reference, const rounds& measured, std::optional<double> goal)
{
    return {
        std::string{what.name},
        "us",
        value_of(what, reference),
        value_of(what, measured),
        ratios(each(what, measured), each(what, reference)),
        goal};
}

figure
compared(const quantity& what, const rounds& reference, const rounds& measured, std::optional<double> goal)
{
    figure one = beside(what, reference, measured, goal);
    one.ratio = ratios(each(what, measured), each(what, reference));
    return one;
}

figure
beside(const quantity& what, const rounds& reference, const rounds& measured, std::optional<double> goal)
{
    return {
        std::string{what.name},
        std::string{what.unit},
        value_of(what, reference),
        value_of(what, measured),
        {},
        goal};
}

void add(
    std::vector<figure> figures, std::string_view before, std::string_view behind, std::vector<figure>& to)
{
    for (figure& each : figures)
    {
        each.name = fmt::format("{}{}{}", before, each.name, behind);
        to.push_back(std::move(each));
    }
}

plot distribution_plot(std::string name, std::string title, std::vector<series> lines)
{
    return {std::move(name), std::move(title), "acquire latency [us]", "acquires [%]", true,
            false,           std::move(lines)};
}

series distribution(std::string name, const rounds& of)
{
    const auto samples = all(&stretch::acquires, of);
    series line{std::move(name), {}};
    for (std::size_t point = 1; point <= points_of_a_line; ++point)
    {
        const double share = static_cast<double>(point) / points_of_a_line;
        line.points.emplace_back(percentile_us(samples, share), share * 100);
    }
    return line;
}

} // namespace redlock::bench
