// SPDX-License-Identifier: BSL-1.0
// A log and counters, fed by the observer of a manager.
#include "throwaway_servers.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <exception>
#include <iostream>

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// One function for each kind of event, so that std::visit can choose.
template <class... Functions>
struct overloaded : Functions...
{
    using Functions::operator()...;
};
template <class... Functions>
overloaded(Functions...) -> overloaded<Functions...>;

/// Prints one line per event. A resource may contain any bytes in its name: a real log escapes them.
void log(const redlock::event& what)
{
    const overloaded line{
        [](const redlock::master_up& up)
        { std::cerr << up.name << " is up, its run id is " << up.server << '\n'; },
        [](const redlock::master_down& down)
        { std::cerr << down.name << " is down: " << down.reason.message() << ' ' << down.detail << '\n'; },
        [](const redlock::master_warning& risk)
        { std::cerr << risk.name << " is at risk: " << to_string(risk.what) << ", " << risk.detail << '\n'; },
        [](const redlock::round_decided& round)
        { std::cerr << round.resource << ": " << round.report << '\n'; },
        [](const redlock::acquire_queued& waiting) {
            std::cerr << waiting.resource << ": " << waiting.position.ahead
                      << " clients ahead in the queue\n";
        },
        [](const redlock::lease_extended& lease) { std::cerr << lease.resource << ": extended\n"; },
        [](const redlock::lease_lost& lease)
        { std::cerr << lease.resource << ": lost, " << lease.reason.message() << '\n'; },
        [](const redlock::lease_released& lease)
        { std::cerr << lease.resource << ": released, " << lease.result.message() << '\n'; },
        [](const redlock::events_dropped& gap)
        { std::cerr << gap.count << " events were dropped, because this log is too slow\n"; },
        [](const redlock::master_quarantined& quarantine)
        { std::cerr << quarantine.name << " is in quarantine: " << to_string(quarantine.why) << '\n'; },
        [](const redlock::master_armed& armed) { std::cerr << armed.name << " votes again\n"; }};
    std::visit(line, what);
}

/// The values that a metrics endpoint would show. Events are delivered one at a time, on the observer's executor: a
/// thread that reads these values concurrently needs atomics or a mutex.
struct counters
{
    std::size_t masters_up = 0;
    std::size_t masters_down = 0;
    std::size_t risks = 0;
    std::size_t rounds_won = 0;
    std::size_t rounds_lost = 0;
    std::size_t queued = 0; // Includes each change of a position.
    std::size_t extended = 0;
    std::size_t extensions_failed = 0;
    std::size_t lost = 0;
    std::size_t released = 0;
    std::size_t unconfirmed = 0;
    std::size_t dropped = 0;
    std::size_t quarantined = 0; // Only in guarded mode, like the next one.
    std::size_t armed = 0;
};

void count(counters& metrics, const redlock::event& what)
{
    const overloaded counter{
        [&](const redlock::master_up&) { ++metrics.masters_up; },
        [&](const redlock::master_down&) { ++metrics.masters_down; },
        [&](const redlock::master_warning&) { ++metrics.risks; },
        [&](const redlock::round_decided& round)
        {
            const bool failed = round.report.result.failed();
            if (round.report.operation == redlock::operation::acquire)
            {
                ++(failed ? metrics.rounds_lost : metrics.rounds_won);
            }
            else if (round.report.operation == redlock::operation::extend && failed)
            {
                ++metrics.extensions_failed; // A warning: the lease is lost if the next ones fail, too.
            }
        },
        [&](const redlock::acquire_queued&) { ++metrics.queued; },
        [&](const redlock::lease_extended&) { ++metrics.extended; },
        [&](const redlock::lease_lost&) { ++metrics.lost; },
        [&](const redlock::lease_released& lease)
        { ++(lease.result ? metrics.unconfirmed : metrics.released); },
        [&](const redlock::events_dropped& gap) { metrics.dropped += gap.count; },
        [&](const redlock::master_quarantined&) { ++metrics.quarantined; },
        [&](const redlock::master_armed&) { ++metrics.armed; }};
    std::visit(counter, what);
}

/// Something to observe. One master is down from the start.
asio::awaitable<void> work(redlock::lock_manager& locks)
{
    redlock::lease lease = co_await locks.async_acquire("nightly-report", 10s);
    co_await lease.async_extend(10s);
    const auto token = asio::as_tuple(asio::deferred);
    co_await lease.async_release(token);
    co_await locks.async_shutdown(token);
}

void rethrow(std::exception_ptr failure)
{
    if (failure)
    {
        std::rethrow_exception(failure);
    }
}

int main()
{
    try
    {
        std::vector<throwaway_server> servers(3);
        servers[0].kill();

        counters metrics;
        redlock::config options;
        options.masters = masters_of(servers);
        options.node_timeout = 500ms; // Ten times the default: this machine may be slow.
        asio::thread_pool logging{1}; // Outlives the manager.
        options.observer.executor = logging.get_executor(); // A write to a terminal or a disk may take long.
        options.observer.on_event = [&metrics](const redlock::event& what)
        {
            log(what);
            count(metrics, what);
        };

        asio::io_context io;
        redlock::lock_manager locks{io, options};
        asio::co_spawn(io, work(locks), rethrow);
        io.run();
        logging.join(); // The last events have been counted.

        std::cout << metrics.masters_up << " masters came up, " << metrics.masters_down
                  << " didn't or went down, " << metrics.risks << " are at risk; " << metrics.rounds_won
                  << " rounds were won, " << metrics.rounds_lost << " lost; " << metrics.extended
                  << " leases extended, " << metrics.released << " released\n";
        const bool as_it_was = metrics.masters_up == 2 && metrics.rounds_won == 1 && metrics.extended == 1 &&
                               metrics.released == 1 && metrics.dropped == 0;
        return as_it_was ? 0 : 1;
    }
    catch (const std::exception& failure)
    {
        std::cerr << "observer: " << failure.what() << '\n';
        return 1;
    }
}
