// SPDX-License-Identifier: BSL-1.0
// Where faults happen.
#include "faults.hpp"

#include "cluster_run.hpp"

#include <boost/hana/functional/overload.hpp>

#include <utility>

namespace redlock::test
{

using namespace std::chrono_literals;

clock::duration some_time(chance& draws)
{
    return draws.one_in(3) ? draws.between(10ms, 150ms) : draws.between(0ms, 20ms);
}

void cluster_fault::tell(std::size_t about) const
{
    cluster.tell_fault(kind.number, kind.name, about);
}

void master_fault::undo_later(std::function<void(sim_master&)> undo) const
{
    cluster.later(some_time(draws), [&master = master, undo = std::move(undo)] { undo(master); });
}

void link_fault::undo_later(std::function<void(virtual_link&)> undo) const
{
    cluster.later(some_time(draws), [link = link, undo = std::move(undo)] { undo(*link); });
}

const std::vector<fault>& all_faults()
{
    static const std::vector<fault> all = []
    {
        std::vector<fault> together;
        for (const auto& some : {network_faults(), master_faults(), process_faults(), guarded_faults()})
        {
            together.insert(together.end(), some.begin(), some.end());
        }
        return together;
    }();
    return all;
}

std::int64_t permitted_drift(const cluster_fault& what)
{
    const auto bound = static_cast<std::size_t>(what.cluster.drawn().max_drift());
    const auto rate = static_cast<std::int64_t>(what.draws.one_in(2) ? bound : what.draws.below(bound + 1));
    return what.draws.one_in(2) ? rate : -rate;
}

master_fault at_any_master(const cluster_fault& what)
{
    const std::size_t index = what.draws.below(what.cluster.masters().size());
    what.tell(index);
    return {what, index, *what.cluster.masters()[index]};
}

std::shared_ptr<process> any_process(const cluster_fault& what)
{
    auto up = what.cluster.processes();
    std::erase_if(up, [](const auto& each) { return !each->up(); });
    if (up.empty())
    {
        return nullptr;
    }
    auto one = up[what.draws.below(up.size())];
    what.tell(static_cast<std::size_t>(one->number()));
    return one;
}

std::shared_ptr<virtual_link> any_link_of(sim_master& master, chance& draws)
{
    auto links = master.links();
    std::erase_if(links, [](const auto& each) { return !each->open(); });
    return links.empty() ? nullptr : links[draws.below(links.size())];
}

void inject(const fault& what, cluster_run& cluster, chance& draws)
{
    const cluster_fault here{cluster, draws, what};
    std::visit(
        boost::hana::overload(
            [&](void (*with)(const cluster_fault&)) { with(here); },
            [&](void (*with)(const master_fault&)) { with(at_any_master(here)); },
            [&](void (*with)(const link_fault&))
            {
                if (const auto link = any_link_of(at_any_master(here).master, draws))
                {
                    with({here, link});
                }
            },
            [&](void (*with)(const process_fault&))
            {
                if (const auto one = any_process(here))
                {
                    with({here, one});
                }
            }),
        what.inject);
}

} // namespace redlock::test
