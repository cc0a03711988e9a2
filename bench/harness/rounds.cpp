// SPDX-License-Identifier: BSL-1.0
// Rounds of clients that alternate, and the figures computed from them.
#include "harness/rounds.hpp"

#include "harness/masters.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

constexpr std::size_t points_per_line = 200;

double per_pair(double sum, const run_record& round)
{
    return sum / static_cast<double>(round.acquires.size());
}

double per_pair(std::uint64_t sum, const run_record& round)
{
    return per_pair(static_cast<double>(sum), round);
}

std::vector<double> per_round(const percentile& metric, const rounds& of)
{
    std::vector<double> values;
    for (const run_record& round : of)
    {
        values.push_back(percentile_us(round.*metric.samples, metric.fraction));
    }
    return values;
}

std::vector<std::chrono::nanoseconds>
pooled(std::vector<std::chrono::nanoseconds> run_record::*samples, const rounds& of)
{
    std::vector<std::chrono::nanoseconds> out;
    for (const run_record& round : of)
    {
        out.insert(out.end(), (round.*samples).begin(), (round.*samples).end());
    }
    return sorted(std::move(out));
}

} // namespace

workload round_for(std::size_t workers, const options& settings)
{
    constexpr std::size_t pairs_of_each = 20;
    return {std::max(settings.pairs, pairs_of_each * workers), std::chrono::minutes{5}, workers};
}

run_record run_measured(const participant& one, const workload& round)
{
    const std::chrono::nanoseconds before = cpu_of(one.masters);
    run_record done = one.tested.run(round);
    done.server_cpu = cpu_of(one.masters) - before;
    done.acquires = sorted(std::move(done.acquires));
    done.pairs = sorted(std::move(done.pairs));
    return done;
}

std::vector<rounds> run_alternately(
    std::initializer_list<participant> clients, const workload& round, std::size_t count, progress& status,
    std::string_view what)
{
    status.show(fmt::format("{}: warming up", what));
    for (const participant& each : clients)
    {
        each.tested.run(round);
    }
    std::vector<rounds> by_client(clients.size());
    for (std::size_t done = 0; done < count; ++done)
    {
        status.show(fmt::format("{}: round {} of {}", what, done + 1, count));
        auto into = by_client.begin();
        for (const participant& each : clients)
        {
            into++->push_back(run_measured(each, round));
        }
    }
    return by_client;
}

const quantity time_per_pair{"time per pair", "us", [](const run_record& round) {
                                 return per_pair(microseconds(round.duration), round);
                             }};
const quantity pairs_per_second{
    "pairs", "/s", [](const run_record& round) {
        return static_cast<double>(round.acquires.size()) /
               std::chrono::duration<double>{round.duration}.count();
    }};
const quantity client_cpu_per_pair{"client CPU per pair", "us", [](const run_record& round) {
                                       return per_pair(microseconds(round.cpu), round);
                                   }};
const quantity server_cpu_per_pair{"server CPU per pair", "us", [](const run_record& round) {
                                       return per_pair(microseconds(round.server_cpu), round);
                                   }};
const quantity allocations_per_pair{"heap allocations per pair", "", [](const run_record& round) {
                                        return per_pair(round.allocations, round);
                                    }};
const quantity system_calls_per_pair{
    "system calls per pair", "", [](const run_record& round) { return per_pair(round.calls.count, round); }};
const quantity bytes_sent{
    "bytes sent per pair", "", [](const run_record& round) { return per_pair(round.calls.sent, round); }};
const quantity bytes_received{"bytes received per pair", "", [](const run_record& round) {
                                  return per_pair(round.calls.received, round);
                              }};

double value_of(const percentile& metric, const rounds& of)
{
    return percentile_us(pooled(metric.samples, of), metric.fraction);
}

double total_of(std::uint64_t run_record::*count, const rounds& of)
{
    double sum = 0;
    for (const run_record& round : of)
    {
        sum += static_cast<double>(round.*count);
    }
    return sum;
}

figure compared(
    const percentile& metric, const rounds& reference, const rounds& measured, std::optional<double> goal)
{
    return {
        std::string{metric.name},
        "us",
        value_of(metric, reference),
        value_of(metric, measured),
        ratios(per_round(metric, measured), per_round(metric, reference)),
        goal};
}

void add(
    std::vector<figure> figures, std::string_view prefix, std::string_view suffix, std::vector<figure>& to)
{
    for (figure& each : figures)
    {
        each.name = fmt::format("{}{}{}", prefix, each.name, suffix);
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
    const auto samples = pooled(&run_record::acquires, of);
    series line{std::move(name), {}};
    for (std::size_t point = 1; point <= points_per_line; ++point)
    {
        const double share = static_cast<double>(point) / points_per_line;
        line.points.emplace_back(percentile_us(samples, share), share * 100);
    }
    return line;
}

} // namespace redlock::bench
