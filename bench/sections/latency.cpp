// SPDX-License-Identifier: BSL-1.0
// Latency and cost of an acquire by one client, compared with the two references.
#include "sections/sections.hpp"

#include "harness/masters.hpp"
#include "harness/redlock_client.hpp"
#include "harness/reference_clients.hpp"
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
        "One client, one lock at a time",
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
    group.notes.emplace_back("System calls and allocations are counted at the functions of the C library, on "
                             "the client's thread. Bytes are those that sockets send and receive.");
    group.related.push_back(
        {"One client, one lock at a time, compared with bare Boost.Asio",
         "asio",
         {compared(acquire_p50, asios, redlocks), compared(acquire_p99, asios, redlocks),
          compared(acquire_p999, asios, redlocks), compared(pair_p50, asios, redlocks),
          compared(pair_p99, asios, redlocks), compared(client_cpu_per_pair, asios, redlocks),
          without_ratio(allocations_per_pair, asios, redlocks, {}),
          compared(system_calls_per_pair, asios, redlocks)}});
    return group;
}

} // namespace redlock::bench
