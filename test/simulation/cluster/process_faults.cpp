// SPDX-License-Identifier: BSL-1.0
// The faults of client processes.
#include "faults.hpp"

#include "cluster_run.hpp"

#include <algorithm>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

/// Draws how long a process does nothing: rarely for longer than a lease is valid.
clock::duration some_time(const process_fault& it)
{
    const clock::duration longest = 2 * it.cluster.drawn().longest_ttl();
    return it.draws.one_in(3) ? it.draws.between(0ms, std::min<clock::duration>(longest, 300ms))
                              : it.draws.between(0ms, 20ms);
}

void pause(const process_fault& it)
{
    constexpr std::size_t soon = 40;
    if (it.draws.one_in(2))
    {
        it.process->pause();
    }
    else
    {
        it.process->pause_after(it.draws.below(soon));
    }
    it.cluster.later(some_time(it), [one = it.process] { one->resume(); });
}

/// A pause that begins when the last grant of a quorum has arrived: before it is read, before its lease is handed out,
/// or soon after.
void pause_at_grant(const process_fault& it)
{
    constexpr std::size_t soon = 6;
    const std::size_t steps = it.draws.below(soon);
    const clock::duration longest = it.cluster.drawn().longest_ttl();
    const clock::duration length =
        it.draws.one_in(3) ? some_time(it) : it.draws.between(longest / 2, 2 * longest);
    it.process->at_grant(
        [&cluster = it.cluster, one = it.process, steps, length]
        {
            one->pause_after(steps);
            cluster.later(length, [one] { one->resume(); });
        });
}

/// The executor on which a caller waits for its lock does something else for a while, from now on or from a grant on.
void keep_busy(const process_fault& it)
{
    const clock::duration length = it.draws.between(0ms, 2 * it.cluster.drawn().longest_ttl());
    if (it.draws.one_in(2))
    {
        it.process->keep_busy(length);
        return;
    }
    it.process->at_grant([one = it.process, length] { one->keep_busy(length); });
}

/// Like a pause, but masters may close the connections of the process meanwhile.
void sleep(const process_fault& it)
{
    it.process->pause();
    const clock::duration length = some_time(it);
    for (const auto& each : it.cluster.links_of(it.process->number()))
    {
        if (it.draws.one_in(2))
        {
            each->end_for_master();
        }
    }
    it.cluster.later(length, [one = it.process] { one->resume(); });
}

/// The same with the whole machine, whose clock stands still as well.
void stop_machine(const process_fault& it)
{
    // If it stands still for about as long as clocks may deviate, the fastest masters seem to be ahead.
    it.cluster.watch().jumps().distrust();
    it.process->pause();
    it.cluster.later(
        some_time(it),
        [one = it.process, pauses = it.process->pauses(), stood_at = it.process->now()]
        {
            if (one->paused() && one->pauses() == pauses) // It hasn't read its clock meanwhile.
            {
                one->environment().jump(stood_at - one->now());
            }
            one->resume();
        });
}

/// Some masters can't be reached by one client, and by all others.
void cut_off(const process_fault& it)
{
    const clock::duration length = some_time(it);
    for (const auto& each : it.cluster.masters())
    {
        if (!each->network.cut_off && it.draws.one_in(2))
        {
            each->network.cut_off = it.process->number();
            it.cluster.later(length, [&master = *each] { master.heal(); });
        }
    }
}

void add_client(const cluster_fault& it)
{
    constexpr std::size_t max_processes = 8;
    if (it.cluster.processes().size() < max_processes)
    {
        it.cluster.later(
            it.draws.between(0ms, 30ms), [&cluster = it.cluster] { cluster.add_process().start(); });
    }
}

/// A name leads to a server that has another name as well. It has two votes unless that is detected.
void share_a_server(const cluster_fault& it)
{
    const std::size_t masters = it.cluster.masters().size();
    const auto one = masters > 1 ? any_process(it) : nullptr;
    if (!one)
    {
        return;
    }
    const std::size_t from = it.draws.below(masters);
    const std::size_t to = (from + 1 + it.draws.below(masters - 1)) % masters;
    // Either refusal ends the handshake before it has the reply to INFO.
    const bool selects = it.cluster.drawn().database != 0;
    const auto hides_identity = [&it, selects](std::size_t index)
    {
        const auto& refuses = it.cluster.masters()[index]->habits;
        return refuses.contains("INFO") || refuses.contains("AUTH") ||
               (selects && refuses.contains("SELECT"));
    };
    if (hides_identity(from) || hides_identity(to))
    {
        return; // The first can't give back the other's identity afterwards, and the second can't be detected.
    }
    // The releases of keys on the right server are sent to the wrong one.
    it.cluster.allow_leftovers(from);
    it.cluster.allow_leftovers(to);
    it.cluster.watch().reports().misdirect(one->number());
    const auto lead_to = [&cluster = it.cluster, one, from](std::size_t index)
    {
        if (one->up())
        {
            one->environment().put(host_of(from), *cluster.masters()[index]);
            for (const auto& each : cluster.links_of(one->number()))
            {
                each->cut();
            }
        }
    };
    lead_to(to);
    it.cluster.at_mending([lead_to, from] { lead_to(from); });
}

} // namespace

std::vector<fault> process_faults()
{
    return {
        {fault_number::client_pause, "client pause",
         "a client does nothing for a while; what comes waits for it", keeps, pause},
        {fault_number::pause_at_grant, "pause at a grant",
         "the same, as soon as it has the grants of a quorum", keeps, pause_at_grant},
        {fault_number::busy_caller, "busy caller",
         "handlers that run on another executor have to wait for it", keeps, keep_busy},
        {fault_number::client_sleep, "client sleep",
         "a client's machine sleeps, and some masters drop its connections", keeps, sleep},
        {fault_number::machine_stopped, "machine stopped", "a client's machine stands still, with its clock",
         breaks, stop_machine},
        {fault_number::cut_off, "cut off", "some masters can't be reached by one client", keeps, cut_off},
        {fault_number::client_killed, "client killed",
         "a client ends without a word, its connections are closed", keeps,
         [](const process_fault& it)
         {
             it.process->kill(false);
             add_client(it);
         }},
        {fault_number::client_killed_and_reset, "client killed and reset",
         "the same, and what it had sent last never arrives", keeps,
         [](const process_fault& it)
         {
             it.process->kill(true);
             add_client(it);
         }},
        {fault_number::new_client, "new client", "one client more", keeps,
         [](const cluster_fault& it)
         {
             it.tell(it.cluster.processes().size());
             add_client(it);
         }},
        {fault_number::cancellation, "cancellation", "an operation is cancelled", keeps,
         [](const process_fault& it) { it.process->cancel_one(it.draws.below(16)); }},
        {fault_number::shutdown, "shutdown", "a manager is shut down in the middle, and another one made",
         keeps, [](const process_fault& it) { it.process->shut_down(true); }},
        {fault_number::manager_dropped, "manager dropped", "a manager is destroyed, and another one made",
         keeps, [](const process_fault& it) { it.process->drop_manager(); }},
        {fault_number::same_server, "same server", "for a client two names lead to one master", keeps,
         share_a_server, in_guarded::excluded},
        {fault_number::client_drift, "client drift", "a client's clock goes faster or slower, as it may",
         keeps, [](const process_fault& it) { it.process->environment().set_rate(permitted_drift(it)); }},
    };
}

} // namespace redlock::test
