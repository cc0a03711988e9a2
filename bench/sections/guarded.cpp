// SPDX-License-Identifier: BSL-1.0
// What guarded mode costs: latency and commands of an acquire by one client, compared with plain mode.
#include "sections/sections.hpp"

#include "harness/masters.hpp"
#include "harness/redlock_client.hpp"
#include "harness/rounds.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

using namespace std::chrono_literals;

constexpr std::size_t master_count = 5;          // Of each group.
constexpr std::size_t distant_pairs_divisor = 4; // A pair takes milliseconds there.
constexpr std::size_t counted_pairs = 10'000;
constexpr std::chrono::microseconds distant_round_trip = 1ms;

/// Makes the masters of these options a group, and returns the options in guarded mode.
config provisioned(config options)
{
    asio::io_context io;
    provision_report told;
    auto done = async_provision(io, options, {.max_ttl = 60s, .fresh = true}, told, asio::use_future);
    io.run();
    try
    {
        done.get();
    }
    catch (const system_error&)
    {
        throw std::runtime_error{told.to_string()};
    }
    options.guarded.emplace();
    return options;
}

/// Returns the scripts that the masters run for each pair. Two for each master are an acquire and a release; each raise of
/// a counter is one more.
double scripts_per_pair(redlock_client& tested, std::span<test::server> masters)
{
    const double before = commands_run(masters, "evalsha");
    tested.run({counted_pairs});
    return (commands_run(masters, "evalsha") - before) / static_cast<double>(counted_pairs);
}

/// Compares both modes of one client with masters a millisecond away.
std::vector<rounds> run_from_afar(std::size_t masters, const options& settings, progress& status)
{
    std::vector<test::server> far = test::start_servers(masters, {.program = settings.server});
    proxied_masters distant{far};
    redlock_client plain{distant.options()};
    redlock_client guarded{provisioned(distant.options())};
    guarded.await_disconnected(0);
    distant.set_round_trip(distant_round_trip);
    return run_alternately(
        {{plain, far}, {guarded, far}}, {settings.pairs / distant_pairs_divisor}, settings.rounds, status,
        fmt::format("guarded mode, {} master(s) 1 ms away", masters));
}

} // namespace

figure_group measure_guarded(std::span<test::server>, const options& settings, progress& status)
{
    status.show(fmt::format("starting a group of {} masters", master_count));
    std::vector<test::server> near = test::start_servers(master_count, {.program = settings.server});
    redlock_client plain{config_for(near)};
    redlock_client guarded{provisioned(config_for(near))};
    guarded.await_disconnected(0);
    const std::vector<rounds> at_once = run_alternately(
        {{plain, near}, {guarded, near}}, {settings.pairs}, settings.rounds, status, "guarded mode");
    const double scripts = scripts_per_pair(guarded, near);
    const std::vector<rounds> from_afar = run_from_afar(master_count, settings, status);
    const std::vector<rounds> from_one = run_from_afar(1, settings, status);

    figure_group group{
        fmt::format("One client in guarded mode, {} masters", master_count),
        "plain",
        {compared(acquire_p50, at_once[0], at_once[1], 1.35), compared(acquire_p99, at_once[0], at_once[1]),
         compared(pair_p50, at_once[0], at_once[1]), compared(client_cpu_per_pair, at_once[0], at_once[1]),
         without_ratio(allocations_per_pair, at_once[0], at_once[1]),
         compared(server_cpu_per_pair, at_once[0], at_once[1]), compared(bytes_sent, at_once[0], at_once[1]),
         compared(bytes_received, at_once[0], at_once[1])}};
    add({compared(acquire_p50, from_afar[0], from_afar[1], 1.02),
         compared(acquire_p99, from_afar[0], from_afar[1])},
        "", ", masters 1 ms away", group.figures);
    add({compared(acquire_p50, from_one[0], from_one[1], 1.02)}, "", ", one master 1 ms away", group.figures);
    group.figures.push_back(
        {"scripts per pair and master", "", {}, scripts / static_cast<double>(master_count), {}, 2.0});
    group.measured = "guarded";
    group.notes.emplace_back(
        "Two scripts to each master are an acquire and a release. A raise of a counter would be "
        "one more.");
    group.notes.emplace_back(
        "Here the masters share one CPU, so their times add up. One master shows what masters on machines of "
        "their own add.");
    return group;
}

} // namespace redlock::bench
