// SPDX-License-Identifier: BSL-1.0
// A long job in steps that keeps its lock, and stops when it loses it: example_job coroutine 20 <master>...
// With `thread` instead of `coroutine`, the work is done by a plain thread, which can't be cancelled from outside.
#include <redlock/redlock.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <cstdlib>
#include <exception>
#include <future>
#include <iostream>
#include <string_view>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// The exit codes of the program, after sysexits.h; 76 is a protocol error there.
enum exit_code
{
    done = 0,
    failed = 1,
    usage = 64,
    no_quorum = 69,
    held_by_other = 75,
    lost = 76,
    hold_limit = 77
};

constexpr auto time_of_a_step = 200ms; // Short compared with stop_margin: a step that has started ends soon.

/// A short ttl keeps the wait of other clients short if this process dies. It doesn't limit the length of the job: that
/// is the purpose of max_hold, whose value depends on the job.
constexpr redlock::keep_options keeping{.ttl = 3s, .max_hold = 10min, .wait = 30s, .stop_margin = 500ms};

/// The progress of the job. What it needs in order to resume would be stored with it.
struct progress
{
    int steps = 0;
    int finished = 0;

    /// The external effect of a step, which must not happen without the lock.
    void record()
    {
        ++finished;
        std::cout << "step " << finished << " of " << steps << " is done" << std::endl;
    }
    void stopped() const
    {
        // Quick, and without effects that need the lock: another client may have it in a moment.
        std::cout << "stopped in step " << finished + 1 << ": " << finished << " of " << steps << " are done"
                  << std::endl;
    }
};

/// Is cancelled where it awaits. Therefore it never spends long on what can't be cancelled, and checks the lease before
/// it changes something.
asio::awaitable<void> work(redlock::lease& lease, progress& job)
{
    asio::steady_timer step{co_await asio::this_coro::executor};
    try
    {
        while (job.finished < job.steps)
        {
            step.expires_after(time_of_a_step); // Stands for the work.
            co_await step.async_wait(asio::deferred);
            if (!lease.valid())
            {
                throw redlock::system_error{redlock::errc::lease_lost};
            }
            job.record();
        }
    }
    catch (const redlock::system_error&)
    {
        job.stopped();
        throw;
    }
}

asio::awaitable<void> run_as_coroutine(redlock::lock_manager& locks, progress& job)
{
    // Extended in the background; `work` is cancelled 500 ms before the lease expires.
    co_await locks.async_with_lock(
        "nightly-report", keeping,
        [&](redlock::lease& lease) -> asio::awaitable<void> { co_await work(lease, job); });
}

/// The same without a coroutine: a thread that checks regularly whether it may continue.
void run_as_thread(redlock::lock_manager& locks, progress& job)
{
    redlock::lease lease = locks.async_acquire_kept("nightly-report", keeping, asio::use_future).get();
    std::future<redlock::error_code> loss = lease.async_wait_lost(asio::use_future);
    while (job.finished < job.steps)
    {
        // Stands for the work. One that computes would call `loss.wait_for(0s)` now and then.
        const bool is_lost = loss.wait_for(time_of_a_step) == std::future_status::ready;
        if (is_lost || !lease.valid())
        {
            job.stopped();
            throw redlock::system_error{is_lost ? loss.get() : redlock::errc::lease_lost};
        }
        job.record();
    }
    lease.async_release(asio::use_future).wait();
}

exit_code exit_code_of(redlock::error_code why)
{
    if (why == redlock::errc::lease_lost)
    {
        return lost;
    }
    if (why == redlock::errc::hold_limit_reached)
    {
        return hold_limit;
    }
    if (why == redlock::errc::held_by_other)
    {
        return held_by_other;
    }
    return why == redlock::errc::no_quorum ? no_quorum : failed;
}

exit_code run(redlock::lock_manager& locks, asio::thread_pool& pool, std::string_view how, progress job)
{
    try
    {
        if (how == "coroutine")
        {
            asio::co_spawn(pool, run_as_coroutine(locks, job), asio::use_future).get();
        }
        else
        {
            run_as_thread(locks, job);
        }
        return done;
    }
    catch (const redlock::system_error& failure)
    {
        const exit_code result = exit_code_of(failure.code());
        std::cerr << "job: " << (result == lost ? "lost the lock: " : "") << failure.what() << '\n';
        return result;
    }
}

int main(int argc, char** argv)
{
    const std::string_view how = argc > 1 ? argv[1] : "";
    const int steps = argc > 2 ? std::atoi(argv[2]) : 0;
    if (argc < 4 || steps < 1 || (how != "coroutine" && how != "thread"))
    {
        std::cerr << "usage: " << argv[0] << " coroutine|thread <number of steps> <master>...\n";
        return usage;
    }
    try
    {
        redlock::config options;
        options.masters = {argv + 3, argv + argc};
        options.node_timeout = 500ms; // Ten times the default: this machine may be slow.
        asio::thread_pool pool{2};
        redlock::lock_manager locks{pool, options};
        const exit_code result = run(locks, pool, how, progress{.steps = steps});

        // Whether the shutdown is confirmed doesn't affect the job: `wait` instead of `get`, which would throw.
        locks.async_shutdown(asio::use_future).wait();
        pool.join();
        return result;
    }
    catch (const std::exception& failure)
    {
        std::cerr << argv[0] << ": " << failure.what() << '\n';
        return failed;
    }
}
