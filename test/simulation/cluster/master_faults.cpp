// SPDX-License-Identifier: BSL-1.0
// The faults of masters.
#include "faults.hpp"

#include "cluster_run.hpp"

#include <array>
#include <initializer_list>
#include <string>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

struct target
{
    std::size_t index;
    sim_master& master;
};

target any_master(cluster_run& cluster, chance& draws, fault_number number)
{
    const std::size_t index = draws.below(cluster.masters().size());
    cluster.tell_fault(number, index);
    return {index, *cluster.masters()[index]};
}

void hang(cluster_run& cluster, chance& draws)
{
    sim_master& master = any_master(cluster, draws, fault_number::master_pause).master;
    master.hang();
    cluster.later(some_time(draws), [&master] { master.resume(); });
}

void restart_at_once(cluster_run& cluster, chance& draws)
{
    any_master(cluster, draws, fault_number::restart).master.restart(cluster.fresh_run_id(), true);
}

void kill(cluster_run& cluster, chance& draws)
{
    const target its = any_master(cluster, draws, fault_number::master_killed);
    its.master.restart(cluster.fresh_run_id(), true);
    its.master.door = entrance::refuses;
    cluster.later(some_time(draws), [&cluster, index = its.index] { cluster.open_door(index); });
}

/// No lease that was held there is still valid when the master is back.
void come_back_empty_later(cluster_run& cluster, chance& draws)
{
    const target its = any_master(cluster, draws, fault_number::empty_after_max_ttl);
    if (!cluster.send_away(its.index))
    {
        return;
    }
    its.master.restart(cluster.fresh_run_id(), true);
    const auto longest = cluster.drawn().longest_ttl();
    cluster.later(
        longest + longest * cluster.drawn().max_drift() / 500'000 + 2ms,
        [&cluster, its]
        {
            its.master.flush_all();
            cluster.bring_back(its.index);
        });
}

void refuse_for_a_while(cluster_run& cluster, chance& draws, sim_master& master)
{
    cluster.later(some_time(draws), [&master] { master.answer_as_usual(); });
}

void run_out_of_memory(cluster_run& cluster, chance& draws)
{
    sim_master& master = any_master(cluster, draws, fault_number::oom).master;
    const char* const said = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    for (const char* each : {"SET", "turn", "extend"})
    {
        master.refuse(each, said);
    }
    refuse_for_a_while(cluster, draws, master);
}

void refuse_writes(cluster_run& cluster, chance& draws, fault_number number, const char* said)
{
    sim_master& master = any_master(cluster, draws, number).master;
    for (const char* each : {"SET", "turn", "extend", "release"})
    {
        master.refuse(each, said);
    }
    refuse_for_a_while(cluster, draws, master);
}

/// As after NOREPLICAS, a release that is refused in this way isn't repeated.
void become_replica(cluster_run& cluster, chance& draws)
{
    cluster.allow_leftovers();
    sim_master& master = any_master(cluster, draws, fault_number::readonly).master;
    for (const char* each : {"SET", "turn", "extend", "release"})
    {
        master.refuse(each, "-READONLY You can't write against a read only replica.\r\n");
    }
    master.role = "replica";
    cluster.later(
        some_time(draws),
        [&master]
        {
            master.role = "master";
            master.answer_as_usual();
        });
}

void load(cluster_run& cluster, chance& draws)
{
    refuse_writes(
        cluster, draws, fault_number::loading, "-LOADING Redis is loading the dataset in memory\r\n");
}

void be_busy(cluster_run& cluster, chance& draws)
{
    refuse_writes(
        cluster, draws, fault_number::busy,
        "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n");
}

/// A release that is refused in this way isn't repeated, so the ttl frees the key.
void miss_replicas(cluster_run& cluster, chance& draws)
{
    cluster.allow_leftovers();
    refuse_writes(
        cluster, draws, fault_number::noreplicas, "-NOREPLICAS Not enough good replicas to write.\r\n");
}

/// The text contains the password of the masters, if they have one, and terminal escape sequences. After some refusals
/// in a row, a release isn't repeated.
void fail_oddly(cluster_run& cluster, chance& draws)
{
    cluster.allow_leftovers();
    const std::string said = "-ERR you sent \x1b[1m" + cluster.masters().front()->password + "\x07\r\n";
    refuse_writes(cluster, draws, fault_number::odd_error, said.c_str());
}

/// Until the end: with every command of a kind.
void refuse_to_the_end(
    cluster_run& cluster, chance& draws, fault_number number, std::initializer_list<const char*> commands,
    const char* said)
{
    cluster.allow_leftovers();
    sim_master& master = any_master(cluster, draws, number).master;
    for (const char* each : commands)
    {
        master.refuse(each, said);
    }
}

void rename_scripts_away(cluster_run& cluster, chance& draws)
{
    refuse_to_the_end(
        cluster, draws, fault_number::no_scripts, {"turn", "extend", "release"},
        "-ERR unknown command 'EVALSHA', with args beginning with: '' \r\n");
}

void forbid_locks(cluster_run& cluster, chance& draws)
{
    const char* const said = "-NOPERM this user has no permissions to run this command\r\n";
    if (draws.one_in(2))
    {
        refuse_to_the_end(cluster, draws, fault_number::forbidden, {"SET"}, said);
    }
    else
    {
        refuse_to_the_end(
            cluster, draws, fault_number::forbidden, {"SET", "turn", "extend", "release"}, said);
    }
}

void fail_oddly_to_the_end(cluster_run& cluster, chance& draws)
{
    refuse_to_the_end(
        cluster, draws, fault_number::odd_error_to_the_end, {"release"},
        "-ERR an error that no client knows\r\n");
}

void be_busy_to_the_end(cluster_run& cluster, chance& draws)
{
    refuse_to_the_end(
        cluster, draws, fault_number::busy_to_the_end, {"SET", "turn", "extend", "release"},
        "-BUSY Redis is busy running a script.\r\n");
}

/// As other libraries use them. Not in the place of a lock: that would be a key that is lost.
void use_another_type(cluster_run& cluster, chance& draws)
{
    sim_master& master = any_master(cluster, draws, fault_number::another_type).master;
    const std::string key = key_of(cluster.resource_name(draws.below(cluster.drawn().resources)));
    if (!master.value(key))
    {
        master.set_hash(key);
        cluster.at_mending([&master, key] { master.remove_hash(key); });
    }
}

void forget_scripts(cluster_run& cluster, chance& draws)
{
    any_master(cluster, draws, fault_number::script_flush).master.flush_scripts();
}

/// Stale connections can't be killed any more.
void forbid_kills(cluster_run& cluster, chance& draws)
{
    sim_master& master = any_master(cluster, draws, fault_number::noperm).master;
    cluster.allow_leftovers();
    for (const char* each : {"may kill?", "CLIENT KILL"})
    {
        master.refuse(each, "-NOPERM this user has no permissions to run the 'client|kill' command\r\n");
    }
    refuse_for_a_while(cluster, draws, master);
}

void garble(cluster_run& cluster, chance& draws)
{
    sim_master& master = any_master(cluster, draws, fault_number::garbled).master;
    constexpr std::array<const char*, 6> kinds{"SET", "SET", "SET", "turn", "extend", "release"};
    const char* const what = kinds.at(draws.below(kinds.size()));
    const char* const said = draws.one_in(2) ? "$no number\r\n" : "*1\r\n:1\r\n";
    master.answer(what, {.bytes = said, .runs = draws.one_in(2), .nonsense = true});
    refuse_for_a_while(cluster, draws, master);
}

void drift(cluster_run& cluster, chance& draws)
{
    sim_master& master = any_master(cluster, draws, fault_number::master_drift).master;
    const auto bound = static_cast<std::size_t>(cluster.drawn().max_drift());
    const auto rate = static_cast<std::int64_t>(draws.one_in(2) ? bound : draws.below(bound + 1));
    master.clock_of_its_own().set_rate(cluster.world().now(), draws.one_in(2) ? rate : -rate);
}

void restart_empty(cluster_run& cluster, chance& draws)
{
    any_master(cluster, draws, fault_number::restart_empty).master.restart(cluster.fresh_run_id(), false);
}

void restart_stale(cluster_run& cluster, chance& draws)
{
    sim_master& master = any_master(cluster, draws, fault_number::restart_stale).master;
    master.on_disk = persistence::everysec;
    master.unflushed = draws.between(1ms, 2s);
    master.restart(cluster.fresh_run_id());
}

void flush(cluster_run& cluster, chance& draws)
{
    any_master(cluster, draws, fault_number::flushall).master.flush_all();
}

void promote(cluster_run& cluster, chance& draws)
{
    sim_master& master = any_master(cluster, draws, fault_number::promote).master;
    master.promote_stale_replica(cluster.fresh_run_id(), draws.between(1ms, 200ms));
}

void demote_and_promote(cluster_run& cluster, chance& draws)
{
    any_master(cluster, draws, fault_number::demote_and_promote)
        .master.lose_writes_of(draws.between(1ms, 200ms));
}

void evict(cluster_run& cluster, chance& draws)
{
    any_master(cluster, draws, fault_number::evict).master.evict(draws.below(8));
}

void jump_ahead(cluster_run& cluster, chance& draws)
{
    const std::size_t index = any_master(cluster, draws, fault_number::clock_ahead).index;
    cluster.set_clock(index, draws.one_in(2) ? draws.between(1ms, 200ms) : draws.between(1s, 3600s));
}

void jump_back(cluster_run& cluster, chance& draws)
{
    const std::size_t index = any_master(cluster, draws, fault_number::clock_back).index;
    cluster.set_clock(index, -(draws.one_in(2) ? draws.between(1ms, 200ms) : draws.between(1s, 3600s)));
}

void drift_wildly(cluster_run& cluster, chance& draws)
{
    const target its = any_master(cluster, draws, fault_number::wild_drift);
    const auto rate = static_cast<std::int64_t>(draws.below(600'000)) - 300'000;
    its.master.clock_of_its_own().set_rate(cluster.world().now(), rate);
    sim_master& master = its.master;
    cluster.at_mending([&cluster, &master] { master.clock_of_its_own().set_rate(cluster.world().now(), 0); });
}

} // namespace

std::vector<fault> master_faults()
{
    return {
        {fault_number::master_pause, "master pause",
         "a master does nothing for a while; what comes waits for it", keeps, hang},
        {fault_number::restart, "restart", "a master restarts with all its keys", keeps, restart_at_once},
        {fault_number::master_killed, "master killed",
         "a master is away for a while, and comes back with all its keys", keeps, kill},
        {fault_number::empty_after_max_ttl, "empty after max ttl",
         "a master comes back empty, after all ttls are over", keeps, come_back_empty_later},
        {fault_number::oom, "OOM", "a master has no memory for writes", keeps, run_out_of_memory},
        {fault_number::readonly, "READONLY", "a master is a replica for a while", keeps, become_replica},
        {fault_number::loading, "LOADING", "a master loads its data", keeps, load},
        {fault_number::busy, "BUSY", "a master runs a slow script", keeps, be_busy},
        {fault_number::noreplicas, "NOREPLICAS", "a master has too few replicas to write", keeps,
         miss_replicas},
        {fault_number::odd_error, "odd error", "a master answers writes with an error that nobody knows",
         keeps, fail_oddly},
        {fault_number::no_scripts, "no scripts", "a master knows no scripts, to the end", keeps,
         rename_scripts_away},
        {fault_number::forbidden, "forbidden",
         "a master forbids SET, or all that has to do with locks, to the end", keeps, forbid_locks},
        {fault_number::odd_error_to_the_end, "odd error to the end",
         "a master answers releases with an unknown error, to the end", keeps, fail_oddly_to_the_end},
        {fault_number::busy_to_the_end, "BUSY to the end", "a master runs a slow script, to the end", keeps,
         be_busy_to_the_end},
        {fault_number::another_type, "another type",
         "a key of another type is where a lock would be, to the end", keeps, use_another_type},
        {fault_number::script_flush, "SCRIPT FLUSH", "a master forgets its scripts", keeps, forget_scripts},
        {fault_number::noperm, "NOPERM", "connections may not be killed", keeps, forbid_kills},
        {fault_number::garbled, "garbled", "a reply isn't RESP, or not what such a command answers", keeps,
         garble},
        {fault_number::master_drift, "master drift", "a master's clock goes faster or slower, as it may",
         keeps, drift},
        {fault_number::restart_empty, "restart empty", "a master restarts without its keys", breaks,
         restart_empty},
        {fault_number::restart_stale, "restart stale",
         "a master restarts without what wasn't flushed to disk", breaks, restart_stale},
        {fault_number::flushall, "FLUSHALL", "a master's keys are gone", breaks, flush},
        {fault_number::promote, "promote", "a replica that is behind takes a master's place", breaks,
         promote},
        {fault_number::demote_and_promote, "demote and promote",
         "a master loses its last writes without closing connections", breaks, demote_and_promote},
        {fault_number::evict, "evict", "a key is evicted", breaks, evict},
        {fault_number::clock_ahead, "clock ahead", "a master's clock jumps ahead", breaks, jump_ahead},
        {fault_number::clock_back, "clock back", "a master's clock jumps back", breaks, jump_back},
        {fault_number::wild_drift, "wild drift", "a master's clock goes as it likes", breaks, drift_wildly},
    };
}

} // namespace redlock::test
