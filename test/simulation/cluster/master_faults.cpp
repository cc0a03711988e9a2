// SPDX-License-Identifier: BSL-1.0
// The faults of masters.
#include "faults.hpp"

#include "cluster_run.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

using commands = std::initializer_list<const char*>;

constexpr commands only_set{"SET", "acquire"};
constexpr commands grants{"SET", "acquire", "ask", "extend", "raise"};
constexpr commands writes{"SET", "acquire", "ask", "extend", "release", "raise", "quarantine", "arm"};

void refuse(sim_master& master, commands refused, const std::string& said)
{
    for (const char* each : refused)
    {
        master.refuse(each, said);
    }
}

void refuse_for_a_while(const master_fault& it, commands refused, const std::string& said)
{
    refuse(it.master, refused, said);
    it.undo_later(&sim_master::answer_as_usual);
}

/// Redis 8.6 refuses subscriptions as well.
void fill_memory(const master_fault& it)
{
    const std::string said = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    refuse_for_a_while(it, grants, said);
    if (it.draws.one_in(2))
    {
        it.master.refuse("SUBSCRIBE", said);
        it.master.break_connections(); // Only new ones subscribe.
    }
}

/// It may refuse only the commands that write, or any but those of the log-in.
void run_slow_script(const master_fault& it)
{
    const std::string said =
        "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";
    refuse_for_a_while(it, writes, said);
    if (it.draws.one_in(2))
    {
        refuse(
            it.master,
            {"TIME", "SUBSCRIBE", "PUBLISH", "INFO", "SELECT", "SCRIPT LOAD", "CLIENT ID", "CLIENT SETNAME",
             "CLIENT KILL", "may kill?", "GET", "HGET", "largest counter"},
            said);
    }
}

void refuse_to_the_end(const master_fault& it, commands refused, const std::string& said)
{
    it.cluster.allow_leftovers(it.index);
    refuse(it.master, refused, said);
}

void kill(const master_fault& it)
{
    it.master.restart(it.cluster.fresh_run_id(), true);
    it.master.door = entrance::refuses;
    it.cluster.later(
        some_time(it.draws), [&cluster = it.cluster, index = it.index] { cluster.open_door(index); });
}

/// No lease that was held there is still valid when the master is back.
void come_back_empty_later(const master_fault& it)
{
    if (!it.cluster.send_away(it.index))
    {
        return;
    }
    it.master.restart(it.cluster.fresh_run_id(), true);
    const auto longest = it.cluster.drawn().longest_ttl();
    it.cluster.later(
        longest + longest * it.cluster.drawn().max_drift() / 500'000 + 2ms,
        [&cluster = it.cluster, &master = it.master, index = it.index]
        {
            master.flush_all();
            cluster.bring_back(index);
        });
}

/// As after NOREPLICAS, a release that is refused in this way isn't repeated.
void become_replica(const master_fault& it)
{
    it.cluster.allow_leftovers(it.index);
    refuse(it.master, writes, "-READONLY You can't write against a read only replica.\r\n");
    it.master.role = "replica";
    it.undo_later(
        [](sim_master& master)
        {
            master.role = "master";
            master.answer_as_usual();
        });
}

/// A release that is refused in this way isn't repeated, so the ttl frees the key.
void miss_replicas(const master_fault& it)
{
    it.cluster.allow_leftovers(it.index);
    refuse_for_a_while(it, writes, "-NOREPLICAS Not enough good replicas to write.\r\n");
}

/// The text contains the password of the masters, if they have one, and terminal escape sequences. After some refusals
/// in a row, a release isn't repeated.
void fail_oddly(const master_fault& it)
{
    it.cluster.allow_leftovers(it.index);
    refuse_for_a_while(it, writes, "-ERR you sent \x1b[1m" + it.master.password + "\x07\r\n");
}

void forbid_locks(const master_fault& it)
{
    refuse_to_the_end(
        it, it.draws.one_in(2) ? only_set : writes,
        "-NOPERM this user has no permissions to run this command\r\n");
}

/// As other libraries use them. Not in the place of a lock: that would be a key that is lost.
void use_another_type(const master_fault& it)
{
    const std::string key = key_of(it.cluster.resource_name(it.draws.below(it.cluster.drawn().resources)));
    if (!it.master.value(key))
    {
        it.master.set_hash(key);
        it.cluster.at_mending([&master = it.master, key] { master.remove_hash(key); });
    }
}

/// Stale connections can't be killed any more.
void forbid_kills(const master_fault& it)
{
    it.cluster.allow_leftovers(it.index);
    refuse_for_a_while(
        it, {"may kill?", "CLIENT KILL"},
        "-NOPERM this user has no permissions to run the 'client|kill' command\r\n");
}

void garble(const master_fault& it)
{
    constexpr std::array<const char*, 6> kinds{"SET", "SET", "SET", "ask", "extend", "release"};
    const std::string_view drawn = kinds.at(it.draws.below(kinds.size()));
    const char* const what = drawn == "SET" && it.cluster.drawn().guarded ? "acquire" : drawn.data();
    const char* const said = it.draws.one_in(2) ? "$no number\r\n" : "*1\r\n:1\r\n";
    it.master.answer(what, {.bytes = said, .runs = it.draws.one_in(2), .nonsense = true});
    it.undo_later(&sim_master::answer_as_usual);
}

/// The reply to one of the first commands, or to one of the last, in some handshakes in a row.
void garble_handshake(const master_fault& it)
{
    const std::size_t handshakes = 1 + it.draws.below(4);
    const char* const what = it.draws.one_in(2) ? "HELLO" : "CLIENT KILL";
    it.master.answer(what, {.bytes = "*1\r\n:1\r\n", .nonsense = true}, handshakes);
    it.undo_later(&sim_master::answer_as_usual);
    it.master.break_connections();
}

/// As after SUBSCRIBE or CLIENT TRACKING, which the library doesn't use. RESP3 tells such a message from a reply.
void push(const master_fault& it)
{
    const auto to = any_link_of(it.master, it.draws);
    if (!to || to->at_master().id == 0)
    {
        return;
    }
    client_state& client = to->at_master();
    if (client.protocol == 3)
    {
        to->reply(">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n");
        return;
    }
    client.got_nonsense = true;
    to->reply("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n");
    it.cluster.watch().on_nonsense(it.index, client);
}

void slow_down_disk(const master_fault& it)
{
    it.master.fsync = it.draws.between(100us, 20ms);
    const clock::duration usual =
        it.index < it.cluster.drawn().habits.size() ? it.cluster.drawn().habits[it.index].fsync : 0us;
    const auto undo = [&master = it.master, usual] { master.fsync = usual; };
    it.cluster.later(some_time(it.draws), undo);
    it.cluster.at_mending(undo);
}

/// As by CONFIG SET, so that no connection is closed. It stays to the end of the faults or longer: until an operator
/// looks at it.
void change_policy(const master_fault& it)
{
    it.cluster.let_evict(it.index, true);
    if (it.draws.one_in(3))
    {
        return;
    }
    const auto undo = [&cluster = it.cluster, index = it.index] { cluster.let_evict(index, false); };
    // Longer than a quarantine, if there are any.
    const clock::duration longest =
        it.cluster.drawn().guarded ? it.cluster.drawn().guarded->max_ttl + 2s : clock::duration{200ms};
    it.cluster.later(it.draws.between(0ms, std::min(longest, it.cluster.drawn().length)), undo);
    it.cluster.at_mending(undo);
}

/// Keys that were released are there again.
void allow_old_keys(const master_fault& it)
{
    if (it.cluster.drawn().guarded)
    {
        it.cluster.allow_leftovers(it.index);
    }
}

void restart_stale(const master_fault& it)
{
    it.master.on_disk = persistence::everysec;
    it.master.unflushed = it.draws.between(1ms, 2s);
    allow_old_keys(it);
    it.master.restart(it.cluster.fresh_run_id());
}

/// Draws by how much a clock jumps: by less than a ttl, or by more than all of them.
clock::duration any_jump(chance& draws)
{
    return draws.one_in(2) ? draws.between(1ms, 200ms) : draws.between(1s, 3600s);
}

void drift_wildly(const master_fault& it)
{
    const auto set_rate = [&cluster = it.cluster, &master = it.master](std::int64_t rate)
    { master.clock_of_its_own().set_rate(cluster.world().now(), rate); };
    it.cluster.watch().distrust_clocks();
    it.cluster.watch().jumps().distrust();
    set_rate(static_cast<std::int64_t>(it.draws.below(600'000)) - 300'000);
    it.cluster.at_mending([set_rate] { set_rate(0); });
}

} // namespace

std::vector<fault> master_faults()
{
    return {
        {fault_number::master_pause, "master pause",
         "a master does nothing for a while; what comes waits for it", keeps,
         [](const master_fault& it)
         {
             it.master.hang();
             it.undo_later(&sim_master::resume);
         }},
        {fault_number::restart, "restart", "a master restarts with all its keys", keeps,
         [](const master_fault& it) { it.master.restart(it.cluster.fresh_run_id(), true); }},
        {fault_number::master_killed, "master killed",
         "a master is away for a while, and comes back with all its keys", keeps, kill},
        {fault_number::empty_after_max_ttl, "empty after max ttl",
         "a master comes back empty, after all ttls are over", keeps, come_back_empty_later},
        {fault_number::oom, "OOM", "a master has no memory for writes", keeps, fill_memory},
        {fault_number::readonly, "READONLY", "a master is a replica for a while", keeps, become_replica},
        {fault_number::loading, "LOADING", "a master loads its data", keeps,
         [](const master_fault& it)
         { refuse_for_a_while(it, writes, "-LOADING Redis is loading the dataset in memory\r\n"); }},
        {fault_number::busy, "BUSY", "a master runs a slow script", keeps, run_slow_script},
        {fault_number::noreplicas, "NOREPLICAS", "a master has too few replicas to write", keeps,
         miss_replicas},
        {fault_number::odd_error, "odd error", "a master answers writes with an error that nobody knows",
         keeps, fail_oddly},
        {fault_number::no_scripts, "no scripts", "a master knows no scripts, to the end", keeps,
         [](const master_fault& it)
         {
             refuse_to_the_end(
                 it, {"acquire", "raise", "ask", "extend", "release", "quarantine", "arm", "largest counter"},
                 "-ERR unknown command 'EVALSHA', with args beginning with: '' \r\n");
         }},
        {fault_number::forbidden, "forbidden",
         "a master forbids SET, or all that has to do with locks, to the end", keeps, forbid_locks},
        {fault_number::odd_error_to_the_end, "odd error to the end",
         "a master answers releases with an unknown error, to the end", keeps,
         [](const master_fault& it)
         { refuse_to_the_end(it, {"release"}, "-ERR an error that no client knows\r\n"); }},
        {fault_number::busy_to_the_end, "BUSY to the end", "a master runs a slow script, to the end", keeps,
         [](const master_fault& it)
         { refuse_to_the_end(it, writes, "-BUSY Redis is busy running a script.\r\n"); }},
        {fault_number::another_type, "another type",
         "a key of another type is where a lock would be, to the end", keeps, use_another_type},
        {fault_number::script_flush, "SCRIPT FLUSH", "a master forgets its scripts", keeps,
         [](const master_fault& it) { it.master.flush_scripts(); }},
        {fault_number::noperm, "NOPERM", "connections may not be killed", keeps, forbid_kills},
        {fault_number::garbled, "garbled", "a reply isn't RESP, or not what such a command answers", keeps,
         garble},
        {fault_number::handshake_garbled, "handshake garbled",
         "a master's connections end, and it answers handshakes with nonsense for a while", keeps,
         garble_handshake},
        {fault_number::push, "push", "a master sends something that no client has asked for", keeps, push},
        {fault_number::slow_disk, "slow disk", "a master waits for its disk after each write", keeps,
         slow_down_disk},
        {fault_number::master_drift, "master drift", "a master's clock goes faster or slower, as it may",
         keeps,
         [](const master_fault& it)
         { it.master.clock_of_its_own().set_rate(it.cluster.world().now(), permitted_drift(it)); }},
        {fault_number::restart_empty, "restart empty", "a master restarts without its keys", breaks,
         [](const master_fault& it) { it.master.restart(it.cluster.fresh_run_id(), false); },
         in_guarded::keeps_promises},
        {fault_number::restart_stale, "restart stale",
         "a master restarts without what wasn't flushed to disk", breaks, restart_stale,
         in_guarded::keeps_promises},
        {fault_number::flushall, "FLUSHALL", "a master's keys are gone", breaks,
         [](const master_fault& it) { it.master.flush_all(); }, in_guarded::keeps_promises},
        {fault_number::promote, "promote", "a replica that is behind takes a master's place", breaks,
         [](const master_fault& it)
         {
             allow_old_keys(it);
             it.master.promote_stale_replica(it.cluster.fresh_run_id(), it.draws.between(1ms, 200ms));
         },
         in_guarded::keeps_promises},
        {fault_number::demote_and_promote, "demote and promote",
         "a master loses its last writes without closing connections", breaks,
         [](const master_fault& it)
         {
             allow_old_keys(it);
             it.master.lose_writes_of(it.draws.between(1ms, 200ms));
         },
         in_guarded::keeps_promises},
        {fault_number::evict, "evict", "a key is evicted", breaks,
         [](const master_fault& it) { it.master.evict(it.draws.below(8)); }},
        {fault_number::clock_ahead, "clock ahead", "a master's clock jumps ahead", breaks,
         [](const master_fault& it) { it.cluster.set_clock(it.index, any_jump(it.draws)); }},
        {fault_number::clock_back, "clock back", "a master's clock jumps back", breaks,
         [](const master_fault& it) { it.cluster.set_clock(it.index, -any_jump(it.draws)); }},
        {fault_number::wild_drift, "wild drift", "a master's clock goes as it likes", breaks, drift_wildly},
        {fault_number::eviction_policy, "eviction policy",
         "a master may evict keys, for a while or to the end, but its memory isn't full", keeps,
         change_policy},
    };
}

} // namespace redlock::test
