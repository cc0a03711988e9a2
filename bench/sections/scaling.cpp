// SPDX-License-Identifier: BSL-1.0
// How the cost of a lock grows with the number of masters, for one client, beside the reference with as many.
#include "sections/sections.hpp"

#include "harness/masters.hpp"
#include "harness/raw_client.hpp"
#include "harness/redlock_client.hpp"
#include "harness/rounds.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace redlock::bench
{

namespace
{

constexpr std::array<std::size_t, 4> how_many_masters{1, 3, 5, 7};

} // namespace

figure_group measure_scaling(std::span<test::server>, const options& asked, progress& shown)
{
    shown.show(fmt::format("starting {} masters", how_many_masters.back()));
    std::vector<test::server> all = test::start_servers(how_many_masters.back(), {.program = asked.server});
    figure_group group{"One client, and as many masters as are named", "raw", {}};
    const std::string masters_axis = "masters";
    plot latencies{"scaling", "Acquire latency of one client", masters_axis, "acquire p50 [us]", false,
                   false,     {{"raw", {}}, {"redlock", {}}}};
    plot cpu{"scaling_cpu", "Client CPU time of a pair",   masters_axis, "CPU per pair [us]", false,
             false,         {{"raw", {}}, {"redlock", {}}}};
    for (const std::size_t count : how_many_masters)
    {
        const std::span<test::server> masters = std::span{all}.first(count);
        raw_client raw{ports_of(masters)};
        redlock_client redlock{config_for(masters)};
        const std::string name = fmt::format("{} {}", count, count == 1 ? "master" : "masters");
        const std::vector<rounds> seen =
            by_turns({{raw, masters}, {redlock, masters}}, {asked.pairs}, asked.rounds, shown, name);
        add({compared(acquire_p50, seen[0], seen[1]), compared(client_cpu, seen[0], seen[1])}, "",
            ", " + name, group.figures);
        for (std::size_t client = 0; client < seen.size(); ++client)
        {
            const auto at = static_cast<double>(count);
            latencies.lines[client].points.emplace_back(at, value_of(acquire_p50, seen[client]));
            cpu.lines[client].points.emplace_back(at, value_of(client_cpu, seen[client]));
        }
    }
    group.plots = {std::move(latencies), std::move(cpu)};
    return group;
}

} // namespace redlock::bench
