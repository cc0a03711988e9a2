// SPDX-License-Identifier: BSL-1.0
// What the network does to connections. None of it breaks an assumption.
#include "faults.hpp"

#include "cluster_run.hpp"

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

void delay(const master_fault& it)
{
    latency& network = it.master.network;
    const latency before = network;
    const clock::duration longer = it.draws.between(1ms, 60ms);
    network.there += it.draws.one_in(2) ? longer : 0ms;
    network.back += it.draws.one_in(2) ? longer : 0ms;
    it.undo_later(
        [before](sim_master& master)
        {
            master.network.there = before.there;
            master.network.back = before.back;
        });
}

void reorder(const master_fault& it)
{
    const clock::duration before = it.master.network.jitter;
    it.master.network.jitter = it.draws.between(1ms, 30ms);
    it.undo_later([before](sim_master& master) { master.network.jitter = before; });
}

void part(const cluster_fault& it)
{
    const std::size_t how_many = 1 + it.draws.below(it.cluster.masters().size());
    const clock::duration length = some_time(it.draws);
    it.tell(how_many);
    for (std::size_t index = 0; index < how_many; ++index)
    {
        sim_master& master = *it.cluster.masters()[index];
        master.network.cut_there = master.network.cut_back = true;
        it.cluster.later(length, [&master] { master.heal(); });
    }
}

/// Holds what is in flight on one connection, often beyond the end of that connection, which then is a stale one.
void hold(const link_fault& it)
{
    it.link->hold();
    if (it.draws.one_in(2))
    {
        it.undo_later(&virtual_link::break_off);
    }
    it.undo_later(&virtual_link::let_go);
}

/// A stale connection, after which the next connections get no further than their handshakes.
void flap(const link_fault& it)
{
    const auto ghost = it.link;
    ghost->hold();
    clock::duration at = it.draws.between(0ms, 5ms);
    it.cluster.later(at, [ghost] { ghost->break_off(); });
    for (std::size_t left = 1 + it.draws.below(12); left > 0; --left)
    {
        at += it.draws.between(0ms, 8ms);
        const auto cut_others = [&cluster = it.cluster, ghost, origin = ghost->at_master().origin]
        {
            for (const auto& each : cluster.links_of(origin))
            {
                if (each != ghost && each->open())
                {
                    each->cut();
                }
            }
        };
        it.cluster.later(at, cut_others);
    }
    it.cluster.later(at + some_time(it.draws), [ghost] { ghost->let_go(); });
}

/// The same, and each connection loses the same part of what it sends.
void cut_short(const master_fault& it)
{
    sim_master& master = it.master;
    const clock::duration length = some_time(it.draws);
    if (const auto ghost = any_link_of(master, it.draws))
    {
        ghost->hold();
        it.cluster.later(it.draws.between(0ms, 5ms), [ghost] { ghost->break_off(); });
        it.cluster.later(length + some_time(it.draws), [ghost] { ghost->let_go(); });
    }
    master.network.breaks_at = 1 + it.draws.below(5);
    it.cluster.later(length, [&master] { master.network.breaks_at = 0; });
}

void shut_door(const master_fault& it, entrance how)
{
    if (it.master.door == entrance::open)
    {
        it.master.door = how;
    }
    if (it.draws.one_in(2))
    {
        it.master.break_connections();
    }
    it.cluster.later(
        some_time(it.draws), [&cluster = it.cluster, index = it.index] { cluster.open_door(index); });
}

} // namespace

std::vector<fault> network_faults()
{
    return {
        {fault_number::delay, "delay", "bytes take longer in one direction or both", keeps, delay},
        {fault_number::reorder, "reorder", "connections overtake each other", keeps, reorder},
        {fault_number::split, "split", "replies come in small pieces", keeps,
         [](const master_fault& it)
         {
             it.master.network.piece = 1 + it.draws.below(7);
             it.undo_later([](sim_master& master) { master.network.piece = 0; });
         }},
        {fault_number::cut_there, "cut there", "nothing reaches a master", keeps,
         [](const master_fault& it)
         {
             it.master.network.cut_there = true;
             it.undo_later(&sim_master::heal);
         }},
        {fault_number::cut_back, "cut back", "nothing comes back from a master", keeps,
         [](const master_fault& it)
         {
             it.master.network.cut_back = true;
             it.undo_later(&sim_master::heal);
         }},
        {fault_number::partition, "partition", "some masters, or all, can't be reached", keeps, part},
        {fault_number::hold, "hold", "what was sent on a connection arrives later, perhaps after its end",
         keeps, hold},
        {fault_number::flapping, "flapping", "the same, and the connections after it are cut repeatedly",
         keeps, flap},
        {fault_number::cut_short, "cut short", "the same, and they are cut when they send for the n-th time",
         keeps, cut_short},
        {fault_number::hold_replies, "hold replies", "the replies on a connection arrive later", keeps,
         [](const link_fault& it)
         {
             it.link->hold_replies();
             it.undo_later(&virtual_link::let_go_of_replies);
         }},
        {fault_number::reset, "reset", "a connection is reset", keeps,
         [](const link_fault& it) { it.link->break_off(); }},
        {fault_number::reset_all, "reset all", "all connections of a master are reset", keeps,
         [](const master_fault& it) { it.master.break_connections(); }},
        {fault_number::sever, "sever", "a connection is reset on both sides, and what was under way is gone",
         keeps, [](const link_fault& it) { it.link->cut(); }},
        {fault_number::half_close, "half-close", "the client sees an end, the master doesn't", keeps,
         [](const link_fault& it) { it.link->end_for_client(); }},
        {fault_number::half_open, "half-open", "the master sees an end, the client doesn't", keeps,
         [](const link_fault& it) { it.link->end_for_master(); }},
        {fault_number::full, "full", "a master takes no bytes", keeps,
         [](const master_fault& it)
         {
             it.master.takes_bytes = false;
             it.undo_later(&sim_master::heal);
         }},
        {fault_number::refused, "refused", "nobody listens", keeps,
         [](const master_fault& it) { shut_door(it, entrance::refuses); }},
        {fault_number::silent, "silent", "who connects gets no answer", keeps,
         [](const master_fault& it) { shut_door(it, entrance::silent); }},
        {fault_number::crowded, "crowded", "a master has too many clients", keeps,
         [](const master_fault& it)
         {
             it.cluster.watch().reports().crowd(it.index);
             shut_door(it, entrance::crowded);
         }},
    };
}

} // namespace redlock::test
