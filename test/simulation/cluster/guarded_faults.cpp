// SPDX-License-Identifier: BSL-1.0
// The faults of guarded masters: losses of data that they notice, of several masters or repeated ones.
#include "faults.hpp"

#include "cluster_run.hpp"
#include "token_rules.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

/// Draws masters, `least` of them or more.
std::vector<std::size_t> some_masters(const cluster_fault& it, std::size_t least)
{
    const std::size_t all = it.cluster.masters().size();
    const std::size_t first = it.draws.below(all);
    const std::size_t count = least + it.draws.below(all - least + 1);
    std::vector<std::size_t> some;
    for (std::size_t each = 0; each < count; ++each)
    {
        some.push_back((first + each) % all);
    }
    return some;
}

/// A master that is restarted with its data loses what it hasn't written to its disk.
void restart_with_data(const cluster_fault& it, std::size_t index)
{
    sim_master& master = *it.cluster.masters()[index];
    if (it.draws.one_in(2))
    {
        master.restart(it.cluster.fresh_run_id(), true);
        return;
    }
    it.cluster.allow_leftovers(index);
    master.on_disk = persistence::everysec;
    master.unflushed = it.draws.between(1ms, 2s);
    master.restart(it.cluster.fresh_run_id());
}

void cut_power(const cluster_fault& it)
{
    const std::size_t all = it.cluster.masters().size();
    it.tell(all);
    for (std::size_t index = 0; index < all; ++index)
    {
        restart_with_data(it, index);
    }
}

void lose_majority(const cluster_fault& it)
{
    const std::vector<std::size_t> some = some_masters(it, quorum_of(it.cluster.masters().size()));
    it.tell(some.size());
    for (const std::size_t index : some)
    {
        it.cluster.masters()[index]->restart(it.cluster.fresh_run_id(), false);
    }
}

void restore_copies(const cluster_fault& it)
{
    const std::vector<std::size_t> some = some_masters(it, 1);
    const clock::duration age = it.draws.between(1ms, 2s);
    it.tell(some.size());
    for (const std::size_t index : some)
    {
        it.cluster.allow_leftovers(index);
        it.cluster.masters()[index]->promote_stale_replica(it.cluster.fresh_run_id(), age);
    }
}

/// A master in quarantine, if there is one, is flushed, restarted, or falls back to an older copy.
void forget_again(const cluster_fault& it)
{
    const guarded_masters& group = *it.cluster.group();
    std::vector<std::size_t> unarmed;
    for (std::size_t index = 0; index < group.size(); ++index)
    {
        if (!group.is_armed(index))
        {
            unarmed.push_back(index);
        }
    }
    if (unarmed.empty())
    {
        return;
    }
    const std::size_t index = unarmed[it.draws.below(unarmed.size())];
    it.tell(index);
    sim_master& master = *it.cluster.masters()[index];
    switch (it.draws.below(4))
    {
    case 0:
        master.flush_all();
        break;
    case 1:
        master.restart(it.cluster.fresh_run_id(), it.draws.one_in(2));
        break;
    case 2:
        it.cluster.allow_leftovers(index);
        master.lose_writes_of(it.draws.between(1ms, 1s));
        break;
    default:
        restart_with_data(it, index);
        break;
    }
}

void exchange_databases(cluster_run& cluster, std::size_t index)
{
    const auto own = static_cast<std::size_t>(cluster.drawn().database);
    cluster.allow_leftovers(index);
    cluster.masters()[index]->swap_databases(own, own + 1);
    cluster.watch().queues().disturb();
    cluster.watch().queues().forget(index, cluster.world().now());
}

void swap_databases(const master_fault& it)
{
    exchange_databases(it.cluster, it.index);
}

/// The second time may be in a quarantine or after it.
void swap_twice(const master_fault& it)
{
    swap_databases(it);
    const clock::duration longest = it.cluster.group()->longest_ttl() + 2s;
    it.cluster.later(
        it.draws.between(0ms, std::min<clock::duration>(longest, it.cluster.drawn().length)),
        [&cluster = it.cluster, index = it.index] { exchange_databases(cluster, index); });
}

/// As by a backup of each: a replica attaches to one master after the other.
void back_up(const cluster_fault& it)
{
    const std::size_t all = it.cluster.masters().size();
    const clock::duration longest = it.cluster.group()->longest_ttl() + 2s;
    const clock::duration gap =
        it.draws.between(1ms, std::min<clock::duration>(longest, it.cluster.drawn().length));
    it.tell(all);
    for (std::size_t index = 0; index < all; ++index)
    {
        it.cluster.later(
            static_cast<clock::rep>(index) * gap,
            [&master = *it.cluster.masters()[index]] { master.lose_writes_of(0ms); });
    }
}

/// As if its virtual machine was put back to a snapshot: it has its old marker, and nobody can notice.
void put_back(const master_fault& it)
{
    it.cluster.allow_leftovers(it.index);
    it.cluster.watch().tokens()->distrust(it.index);
    it.cluster.watch().jumps().distrust();
    it.master.put_back(it.draws.between(1ms, 2s));
    it.master.break_connections();
}

/// Masters keep all other keys.
void delete_markers(const cluster_fault& it)
{
    const std::vector<std::size_t> some = some_masters(it, 1);
    it.tell(some.size());
    for (const std::size_t index : some)
    {
        it.cluster.group()->remove_marker(index);
    }
}

/// Between two of the steps by which it arms a master, or in one of them.
void kill_at_arming(const cluster_fault& it)
{
    constexpr std::array<const char*, 4> steps{"GET", "quarantine", "largest counter", "arm"};
    const std::size_t step = it.draws.below(steps.size());
    it.tell(step);
    it.cluster.at_command(
        steps.at(step),
        [&cluster = it.cluster, resets = it.draws.one_in(2)](process& by)
        {
            by.kill(resets);
            cluster.add_process().start();
        });
}

/// By a clock that is wrong by a year, or by almost as much as masters believe.
void hint_wrongly(const process_fault& it)
{
    constexpr std::array<std::chrono::minutes, 3> all{365 * 24h, 59min, -365 * 24h};
    const std::chrono::microseconds by = all.at(it.draws.below(all.size()));
    for (const auto& each : it.cluster.masters())
    {
        each->change_hints(it.process->number(), by.count());
        it.cluster.at_mending([&master = *each] { master.change_hints(0, 0); });
    }
}

/// A client's list has the name of another server in the place of a master.
void mistype_name(const process_fault& it)
{
    process& one = *it.process;
    const std::size_t index = it.draws.below(it.cluster.masters().size());
    if (!one.usable() || !one.guarded())
    {
        return;
    }
    it.cluster.watch().reports().misdirect(one.number());
    one.mistype(index, &it.cluster.add_stranger());
    one.drop_manager();
    it.cluster.at_mending(
        [one = it.process, index]
        {
            one->mistype(index, nullptr);
            if (one->usable())
            {
                one->drop_manager();
            }
        });
}

/// An operator replaces the group by one of the same masters, while they fail.
void change_group(const cluster_fault& it)
{
    constexpr std::size_t max_processes = 8;
    const std::chrono::milliseconds present = it.cluster.group()->longest_ttl();
    if (present <= 2s && it.cluster.processes().size() < max_processes)
    {
        it.tell(it.cluster.processes().size());
        it.cluster.change_group(2 * present, it.draws.one_in(4));
    }
}

} // namespace

std::vector<fault> guarded_faults()
{
    return {
        {fault_number::power_cut, "power cut", "all masters restart, some without their last writes", keeps,
         cut_power, in_guarded::only},
        {fault_number::majority_empty, "majority empty", "a majority of masters restarts without keys", keeps,
         lose_majority, in_guarded::only},
        {fault_number::older_copies, "older copies", "some masters fall back to copies of the same age",
         keeps, restore_copies, in_guarded::only},
        {fault_number::forgets_again, "forgets again", "a master in quarantine loses data once more", keeps,
         forget_again, in_guarded::only},
        {fault_number::swapdb, "SWAPDB", "a master's database is exchanged with another one", keeps,
         swap_databases, in_guarded::only},
        {fault_number::swapdb_twice, "SWAPDB twice", "the same, and back in a quarantine or after it", keeps,
         swap_twice, in_guarded::only},
        {fault_number::first_replica, "first replica",
         "a replica attaches to a master, which gets another replication id", keeps,
         [](const master_fault& it) { it.master.lose_writes_of(0ms); }, in_guarded::only},
        {fault_number::raise_refused, "raise refused", "a master doesn't raise counters for a while", keeps,
         [](const master_fault& it)
         {
             it.master.refuse("raise", "-BUSY Redis is busy running a script.\r\n");
             it.undo_later(&sim_master::answer_as_usual);
         },
         in_guarded::only},
        {fault_number::backups, "backups", "a replica attaches to one master after the other", keeps, back_up,
         in_guarded::only},
        {fault_number::put_back, "put back",
         "a master and its marker are put back to the past, as with its machine", breaks, put_back,
         in_guarded::only},
        {fault_number::marker_deleted, "marker deleted", "some masters lose their markers alone", keeps,
         delete_markers, in_guarded::only},
        {fault_number::killed_at_arming, "killed at arming",
         "a client ends between two of the steps by which it arms a master", keeps, kill_at_arming,
         in_guarded::only},
        {fault_number::wrong_hints, "wrong hints",
         "a client's hints for counters are wrong by an hour or a year", keeps, hint_wrongly,
         in_guarded::only},
        {fault_number::mistyped_name, "mistyped name",
         "a client's list has the name of an empty server in the place of a master", keeps, mistype_name,
         in_guarded::only},
        {fault_number::group_changed, "group changed", "an operator replaces the group by another one", keeps,
         change_group, in_guarded::only},
    };
}

} // namespace redlock::test
