// SPDX-License-Identifier: BSL-1.0
// The faults of client processes.
#include "faults.hpp"

#include "cluster_run.hpp"

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

constexpr std::size_t max_processes = 8;

/// Returns a process that is up; null if there is none.
std::shared_ptr<process> any_process(cluster_run& cluster, chance& draws, fault_number number)
{
    std::vector<std::shared_ptr<process>> up;
    for (const auto& each : cluster.processes())
    {
        if (each->up())
        {
            up.push_back(each);
        }
    }
    if (up.empty())
    {
        return nullptr;
    }
    auto one = up[draws.below(up.size())];
    cluster.tell_fault(number, static_cast<std::size_t>(one->number()));
    return one;
}

clock::duration some_time(const cluster_run& cluster, chance& draws)
{
    const clock::duration longest = 2 * cluster.drawn().longest_ttl();
    return draws.one_in(3) ? draws.between(0ms, std::min<clock::duration>(longest, 300ms))
                           : draws.between(0ms, 20ms);
}

void pause(cluster_run& cluster, chance& draws)
{
    if (const auto one = any_process(cluster, draws, fault_number::client_pause))
    {
        if (draws.one_in(2))
        {
            one->pause();
        }
        else
        {
            constexpr std::size_t soon = 40;
            one->pause_after(draws.below(soon));
        }
        cluster.later(some_time(cluster, draws), [one] { one->resume(); });
    }
}

/// A pause that begins when the last grant of a quorum has arrived: before it is read, before its lease is handed out,
/// or soon after.
void pause_at_grant(cluster_run& cluster, chance& draws)
{
    if (const auto one = any_process(cluster, draws, fault_number::pause_at_grant))
    {
        constexpr std::size_t soon = 6;
        const std::size_t steps = draws.below(soon);
        const clock::duration longest = cluster.drawn().longest_ttl();
        const clock::duration length =
            draws.one_in(3) ? some_time(cluster, draws) : draws.between(longest / 2, 2 * longest);
        one->at_grant(
            [&cluster, one, steps, length]
            {
                one->pause_after(steps);
                cluster.later(length, [one] { one->resume(); });
            });
    }
}

/// Like a pause, but masters may close the connections of the process meanwhile.
void sleep(cluster_run& cluster, chance& draws)
{
    if (const auto one = any_process(cluster, draws, fault_number::client_sleep))
    {
        one->pause();
        const clock::duration length = some_time(cluster, draws);
        for (const auto& each : cluster.links_of(one->number()))
        {
            if (draws.one_in(2))
            {
                each->end_for_master();
            }
        }
        cluster.later(length, [one] { one->resume(); });
    }
}

void replace(cluster_run& cluster, chance& draws)
{
    if (cluster.processes().size() < max_processes)
    {
        cluster.later(draws.between(0ms, 30ms), [&cluster] { cluster.add_process().start(); });
    }
}

void kill(cluster_run& cluster, chance& draws)
{
    if (const auto one = any_process(cluster, draws, fault_number::client_killed))
    {
        one->kill(false);
        replace(cluster, draws);
    }
}

void kill_and_reset(cluster_run& cluster, chance& draws)
{
    if (const auto one = any_process(cluster, draws, fault_number::client_killed_and_reset))
    {
        one->kill(true);
        replace(cluster, draws);
    }
}

void join(cluster_run& cluster, chance& draws)
{
    cluster.tell_fault(fault_number::new_client, cluster.processes().size());
    replace(cluster, draws);
}

void cancel(cluster_run& cluster, chance& draws)
{
    if (const auto one = any_process(cluster, draws, fault_number::cancellation))
    {
        one->cancel_one(draws.below(16));
    }
}

void shut_down(cluster_run& cluster, chance& draws)
{
    if (const auto one = any_process(cluster, draws, fault_number::shutdown))
    {
        one->shut_down(true);
    }
}

void drop(cluster_run& cluster, chance& draws)
{
    if (const auto one = any_process(cluster, draws, fault_number::manager_dropped))
    {
        one->drop_manager();
    }
}

/// A name leads to a server that has another name as well. It has two votes unless that is detected.
void share_a_server(cluster_run& cluster, chance& draws)
{
    const std::size_t masters = cluster.masters().size();
    const auto one = masters > 1 ? any_process(cluster, draws, fault_number::same_server) : nullptr;
    if (!one)
    {
        return;
    }
    const std::size_t from = draws.below(masters);
    const std::size_t to = (from + 1 + draws.below(masters - 1)) % masters;
    // The releases of keys on the right server are sent to the wrong one.
    cluster.allow_leftovers();
    const auto lead_to = [&cluster, one, from](std::size_t index)
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
    cluster.at_mending([lead_to, from] { lead_to(from); });
}

void drift(cluster_run& cluster, chance& draws)
{
    if (const auto one = any_process(cluster, draws, fault_number::client_drift))
    {
        const auto bound = static_cast<std::size_t>(cluster.drawn().max_drift());
        const auto rate = static_cast<std::int64_t>(draws.one_in(2) ? bound : draws.below(bound + 1));
        one->environment().set_rate(draws.one_in(2) ? rate : -rate);
    }
}

} // namespace

std::vector<fault> process_faults()
{
    return {
        {fault_number::client_pause, "client pause",
         "a client does nothing for a while; what comes waits for it", keeps, pause},
        {fault_number::pause_at_grant, "pause at a grant",
         "the same, as soon as it has the grants of a quorum", keeps, pause_at_grant},
        {fault_number::client_sleep, "client sleep",
         "a client's machine sleeps, and some masters drop its connections", keeps, sleep},
        {fault_number::client_killed, "client killed",
         "a client ends without a word, its connections are closed", keeps, kill},
        {fault_number::client_killed_and_reset, "client killed and reset",
         "the same, and what it had sent last never arrives", keeps, kill_and_reset},
        {fault_number::new_client, "new client", "one client more", keeps, join},
        {fault_number::cancellation, "cancellation", "an operation is cancelled", keeps, cancel},
        {fault_number::shutdown, "shutdown", "a manager is shut down in the middle, and another one made",
         keeps, shut_down},
        {fault_number::manager_dropped, "manager dropped", "a manager is destroyed, and another one made",
         keeps, drop},
        {fault_number::same_server, "same server", "for a client two names lead to one master", keeps,
         share_a_server},
        {fault_number::client_drift, "client drift", "a client's clock goes faster or slower, as it may",
         keeps, drift},
    };
}

} // namespace redlock::test
