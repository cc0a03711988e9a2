// SPDX-License-Identifier: BSL-1.0
// How long one client takes to acquire, and what it costs, beside the references in the same round.
#include "sections/sections.hpp"

#include "harness/asio_client.hpp"
#include "harness/masters.hpp"
#include "harness/raw_client.hpp"
#include "harness/redlock_client.hpp"
#include "harness/rounds.hpp"

namespace redlock::bench
{

figure_group measure_latency(std::span<test::server> masters, const options& settings, progress& status)
{
    raw_client raw{ports_of(masters)};
    asio_client asio{ports_of(masters)};
    redlock_client redlock{config_for(masters)};
    const std::vector<rounds> by_client = run_alternately(
        {{raw, masters}, {asio, masters}, {redlock, masters}}, {settings.pairs}, settings.rounds, status,
        "one client");
    const rounds& raws = by_client[0];
    const rounds& asios = by_client[1];
    const rounds& redlocks = by_client[2];
    figure_group group{
        "One client, one lock after the other",
        "raw",
        {compared(acquire_p50, raws, redlocks, 1.1), compared(acquire_p99, raws, redlocks, 1.2),
         compared(acquire_p999, raws, redlocks), compared(pair_p50, raws, redlocks),
         compared(pair_p99, raws, redlocks), compared(client_cpu_per_pair, raws, redlocks, 1.2),
         without_ratio(allocations_per_pair, raws, redlocks, 0.0),
         compared(system_calls_per_pair, raws, redlocks), compared(bytes_sent, raws, redlocks),
         compared(bytes_received, raws, redlocks)}};
    group.figures.push_back(
        {"releases not confirmed in time", "", {}, total_of(&run_record::unconfirmed, redlocks), {}, {}});
    group.plots.push_back(distribution_plot(
        "latency", "Acquire latency of one client",
        {distribution("raw", raws), distribution("asio", asios), distribution("redlock", redlocks)}));
    group.notes.emplace_back("System calls and allocations are counted at the C library's functions, on the "
                             "client's thread; bytes are those that sockets take and give.");
    group.related.push_back(
        {"One client, one lock after the other, beside bare Boost.Asio",
         "asio",
         {compared(acquire_p50, asios, redlocks), compared(acquire_p99, asios, redlocks),
          compared(acquire_p999, asios, redlocks), compared(pair_p50, asios, redlocks),
          compared(pair_p99, asios, redlocks), compared(client_cpu_per_pair, asios, redlocks),
          without_ratio(allocations_per_pair, asios, redlocks, {}),
          compared(system_calls_per_pair, asios, redlocks)}});
    return group;
}

} // namespace redlock::bench
