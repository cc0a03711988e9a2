// SPDX-License-Identifier: BSL-1.0
// Latency and cost of an acquire by the number of masters, compared with the raw reference.
#include "sections/sections.hpp"

#include "harness/masters.hpp"
#include "harness/redlock_client.hpp"
#include "harness/reference_clients.hpp"
#include "harness/rounds.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace redlock::bench
{

namespace
{

constexpr std::array<std::size_t, 4> master_counts{1, 3, 5, 7};

} // namespace

figure_group measure_scaling(std::span<test::server>, const options& settings, progress& status)
{
    status.show(fmt::format("starting {} masters", master_counts.back()));
    std::vector<test::server> all = test::start_servers(master_counts.back(), {.program = settings.server});
    figure_group group{"One client, 1 to 7 masters", "raw", {}};
    const std::string masters_axis = "masters";
    plot latencies{"scaling", "Acquire latency of one client", masters_axis, "acquire p50 [us]", false,
                   false,     {{"raw", {}}, {"redlock", {}}}};
    plot cpu{"scaling_cpu", "Client CPU time per pair",    masters_axis, "CPU per pair [us]", false,
             false,         {{"raw", {}}, {"redlock", {}}}};
    for (const std::size_t count : master_counts)
    {
        const std::span<test::server> masters = std::span{all}.first(count);
        raw_client raw{ports_of(masters)};
        redlock_client redlock{config_for(masters)};
        const std::string name = fmt::format("{} {}", count, count == 1 ? "master" : "masters");
        const std::vector<rounds> by_client = run_alternately(
            {{raw, masters}, {redlock, masters}}, {settings.pairs}, settings.rounds, status, name);
        add({compared(acquire_p50, by_client[0], by_client[1]),
             compared(client_cpu_per_pair, by_client[0], by_client[1])},
            "", ", " + name, group.figures);
        for (std::size_t client = 0; client < by_client.size(); ++client)
        {
            const auto at = static_cast<double>(count);
            latencies.lines[client].points.emplace_back(at, value_of(acquire_p50, by_client[client]));
            cpu.lines[client].points.emplace_back(at, value_of(client_cpu_per_pair, by_client[client]));
        }
    }
    group.plots = {std::move(latencies), std::move(cpu)};
    return group;
}

} // namespace redlock::bench
