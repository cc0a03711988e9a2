// SPDX-License-Identifier: BSL-1.0
// What the network does to connections. None of it breaks an assumption.
#include "faults.hpp"

#include "cluster_run.hpp"

#include <algorithm>
#include <utility>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

std::size_t any_master(cluster_run& cluster, chance& draws)
{
    return draws.below(cluster.masters().size());
}

/// One connection of a master, if it has any.
std::shared_ptr<virtual_link> any_link_of(sim_master& master, chance& draws)
{
    auto links = master.links();
    std::erase_if(links, [](const auto& each) { return !each->open(); });
    return links.empty() ? nullptr : links[draws.below(links.size())];
}

std::shared_ptr<virtual_link> any_link(cluster_run& cluster, chance& draws, fault_number number)
{
    const std::size_t index = any_master(cluster, draws);
    cluster.tell_fault(number, index);
    return any_link_of(*cluster.masters()[index], draws);
}

void delay(cluster_run& cluster, chance& draws)
{
    const std::size_t index = any_master(cluster, draws);
    cluster.tell_fault(fault_number::delay, index);
    sim_master& master = *cluster.masters()[index];
    const latency before = master.network;
    const clock::duration longer = draws.between(1ms, 60ms);
    master.network.there += draws.one_in(2) ? longer : 0ms;
    master.network.back += draws.one_in(2) ? longer : 0ms;
    cluster.later(
        some_time(draws),
        [&master, before]
        {
            master.network.there = before.there;
            master.network.back = before.back;
        });
}

void reorder(cluster_run& cluster, chance& draws)
{
    const std::size_t index = any_master(cluster, draws);
    cluster.tell_fault(fault_number::reorder, index);
    sim_master& master = *cluster.masters()[index];
    const clock::duration before = master.network.jitter;
    master.network.jitter = draws.between(1ms, 30ms);
    cluster.later(some_time(draws), [&master, before] { master.network.jitter = before; });
}

void split(cluster_run& cluster, chance& draws)
{
    const std::size_t index = any_master(cluster, draws);
    cluster.tell_fault(fault_number::split, index);
    sim_master& master = *cluster.masters()[index];
    master.network.piece = 1 + draws.below(7);
    cluster.later(some_time(draws), [&master] { master.network.piece = 0; });
}

void cut_there(cluster_run& cluster, chance& draws)
{
    const std::size_t index = any_master(cluster, draws);
    cluster.tell_fault(fault_number::cut_there, index);
    sim_master& master = *cluster.masters()[index];
    master.network.cut_there = true;
    cluster.later(some_time(draws), [&master] { master.heal(); });
}

void cut_back(cluster_run& cluster, chance& draws)
{
    const std::size_t index = any_master(cluster, draws);
    cluster.tell_fault(fault_number::cut_back, index);
    sim_master& master = *cluster.masters()[index];
    master.network.cut_back = true;
    cluster.later(some_time(draws), [&master] { master.heal(); });
}

void part(cluster_run& cluster, chance& draws)
{
    const std::size_t how_many = 1 + draws.below(cluster.masters().size());
    const clock::duration length = some_time(draws);
    cluster.tell_fault(fault_number::partition, how_many);
    for (std::size_t index = 0; index < how_many; ++index)
    {
        sim_master& master = *cluster.masters()[index];
        master.network.cut_there = master.network.cut_back = true;
        cluster.later(length, [&master] { master.heal(); });
    }
}

/// Holds what is in flight on one connection, often beyond the end of that connection, which then is a stale one.
void hold(cluster_run& cluster, chance& draws)
{
    if (const auto link = any_link(cluster, draws, fault_number::hold))
    {
        link->hold();
        if (draws.one_in(2))
        {
            cluster.later(some_time(draws), [link] { link->break_off(); });
        }
        cluster.later(some_time(draws), [link] { link->let_go(); });
    }
}

/// A stale connection, after which the next connections get no further than their handshakes.
void flap(cluster_run& cluster, chance& draws)
{
    const auto ghost = any_link(cluster, draws, fault_number::flapping);
    if (!ghost)
    {
        return;
    }
    const int origin = ghost->at_master().origin;
    ghost->hold();
    clock::duration at = draws.between(0ms, 5ms);
    cluster.later(at, [ghost] { ghost->break_off(); });
    for (std::size_t left = 1 + draws.below(12); left > 0; --left)
    {
        at += draws.between(0ms, 8ms);
        const auto cut_others = [&cluster, ghost, origin]
        {
            for (const auto& each : cluster.links_of(origin))
            {
                if (each != ghost && each->open())
                {
                    each->cut();
                }
            }
        };
        cluster.later(at, cut_others);
    }
    cluster.later(at + some_time(draws), [ghost] { ghost->let_go(); });
}

/// The same, and each connection loses the same part of what it sends.
void cut_short(cluster_run& cluster, chance& draws)
{
    const std::size_t index = any_master(cluster, draws);
    cluster.tell_fault(fault_number::cut_short, index);
    sim_master& master = *cluster.masters()[index];
    const clock::duration length = some_time(draws);
    if (const auto ghost = any_link_of(master, draws))
    {
        ghost->hold();
        cluster.later(draws.between(0ms, 5ms), [ghost] { ghost->break_off(); });
        cluster.later(length + some_time(draws), [ghost] { ghost->let_go(); });
    }
    master.network.breaks_at = 1 + draws.below(5);
    cluster.later(length, [&master] { master.network.breaks_at = 0; });
}

void hold_replies(cluster_run& cluster, chance& draws)
{
    if (const auto link = any_link(cluster, draws, fault_number::hold_replies))
    {
        link->hold_replies();
        cluster.later(some_time(draws), [link] { link->let_go_of_replies(); });
    }
}

void reset(cluster_run& cluster, chance& draws)
{
    if (const auto link = any_link(cluster, draws, fault_number::reset))
    {
        link->break_off();
    }
}

void reset_all(cluster_run& cluster, chance& draws)
{
    const std::size_t index = any_master(cluster, draws);
    cluster.tell_fault(fault_number::reset_all, index);
    cluster.masters()[index]->break_connections();
}

void sever(cluster_run& cluster, chance& draws)
{
    if (const auto link = any_link(cluster, draws, fault_number::sever))
    {
        link->cut();
    }
}

void half_close(cluster_run& cluster, chance& draws)
{
    if (const auto link = any_link(cluster, draws, fault_number::half_close))
    {
        link->end_for_client();
    }
}

void half_open(cluster_run& cluster, chance& draws)
{
    if (const auto link = any_link(cluster, draws, fault_number::half_open))
    {
        link->end_for_master();
    }
}

void fill(cluster_run& cluster, chance& draws)
{
    const std::size_t index = any_master(cluster, draws);
    cluster.tell_fault(fault_number::full, index);
    sim_master& master = *cluster.masters()[index];
    master.takes_bytes = false;
    cluster.later(some_time(draws), [&master] { master.heal(); });
}

void shut_door(cluster_run& cluster, chance& draws, fault_number number, entrance how)
{
    const std::size_t index = any_master(cluster, draws);
    cluster.tell_fault(number, index);
    sim_master& master = *cluster.masters()[index];
    if (master.door == entrance::open)
    {
        master.door = how;
    }
    if (draws.one_in(2))
    {
        master.break_connections();
    }
    cluster.later(some_time(draws), [&cluster, index] { cluster.open_door(index); });
}

void refuse(cluster_run& cluster, chance& draws)
{
    shut_door(cluster, draws, fault_number::refused, entrance::refuses);
}

void ignore(cluster_run& cluster, chance& draws)
{
    shut_door(cluster, draws, fault_number::silent, entrance::silent);
}

void crowd(cluster_run& cluster, chance& draws)
{
    shut_door(cluster, draws, fault_number::crowded, entrance::crowded);
}

} // namespace

std::vector<fault> network_faults()
{
    return {
        {fault_number::delay, "delay", "bytes take longer in one direction or both", keeps, delay},
        {fault_number::reorder, "reorder", "connections overtake each other", keeps, reorder},
        {fault_number::split, "split", "replies come in small pieces", keeps, split},
        {fault_number::cut_there, "cut there", "nothing reaches a master", keeps, cut_there},
        {fault_number::cut_back, "cut back", "nothing comes back from a master", keeps, cut_back},
        {fault_number::partition, "partition", "some masters, or all, can't be reached", keeps, part},
        {fault_number::hold, "hold", "what was sent on a connection arrives later, perhaps after its end",
         keeps, hold},
        {fault_number::flapping, "flapping", "the same, and the connections after it are cut repeatedly",
         keeps, flap},
        {fault_number::cut_short, "cut short", "the same, and they are cut when they send for the n-th time",
         keeps, cut_short},
        {fault_number::hold_replies, "hold replies", "the replies on a connection arrive later", keeps,
         hold_replies},
        {fault_number::reset, "reset", "a connection is reset", keeps, reset},
        {fault_number::reset_all, "reset all", "all connections of a master are reset", keeps, reset_all},
        {fault_number::sever, "sever", "a connection is reset on both sides, and what was under way is gone",
         keeps, sever},
        {fault_number::half_close, "half-close", "the client sees an end, the master doesn't", keeps,
         half_close},
        {fault_number::half_open, "half-open", "the master sees an end, the client doesn't", keeps,
         half_open},
        {fault_number::full, "full", "a master takes no bytes", keeps, fill},
        {fault_number::refused, "refused", "nobody listens", keeps, refuse},
        {fault_number::silent, "silent", "who connects gets no answer", keeps, ignore},
        {fault_number::crowded, "crowded", "a master has too many clients", keeps, crowd},
    };
}

} // namespace redlock::test
