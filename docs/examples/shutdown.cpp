// SPDX-License-Identifier: BSL-1.0
// A graceful shutdown at SIGTERM or SIGINT: example_shutdown drop|keep <limit in ms> <master>...
// With `keep` instead of `drop`, a part of the program doesn't release its lease when that is lost.
#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr redlock::keep_options keeping{.ttl = 5s, .max_hold = redlock::no_limit};

/// Ends the work of the manager at a signal, within this limit.
asio::awaitable<void>
shut_down_at_signal(asio::io_context& io, redlock::lock_manager& locks, std::chrono::milliseconds limit)
{
    const auto executor = co_await asio::this_coro::executor;
    asio::signal_set signals{executor, SIGINT, SIGTERM};
    co_await signals.async_wait(asio::use_awaitable);

    asio::steady_timer timer{executor, limit};
    auto both = asio::experimental::make_parallel_group(
        locks.async_shutdown(asio::deferred), timer.async_wait(asio::deferred));
    const auto [order, unconfirmed, timer_ended] =
        co_await both.async_wait(asio::experimental::wait_for_one{}, asio::use_awaitable);
    if (order[0] == 1)
    {
        std::cout << "shutdown: the limit was reached" << std::endl;
        io.stop();
    }
    else
    {
        std::cout << "shutdown: " << (unconfirmed ? redlock::error_name(unconfirmed) : "released")
                  << std::endl;
    }
}

/// Stands for work that takes unexpectedly long.
asio::awaitable<void> work()
{
    std::cout << "job: begun" << std::endl;
    asio::steady_timer step{co_await asio::this_coro::executor, 1h};
    co_await step.async_wait(asio::use_awaitable);
}

void show(std::string_view who, redlock::error_code why)
{
    std::cout << who << ": " << redlock::error_name(why) << std::endl;
}

asio::awaitable<void> be_job(redlock::lock_manager& locks)
{
    try
    {
        co_await locks.async_with_lock("nightly-report", keeping, work);
    }
    catch (const redlock::lock_error& error)
    {
        show("job", error.code());
    }
}

/// Waits for the lock that the job holds.
asio::awaitable<void> wait_for_job(redlock::lock_manager& locks)
{
    try
    {
        const redlock::acquire_options patient{.ttl = 5s, .wait = redlock::no_limit};
        redlock::lease lease = co_await locks.async_acquire("nightly-report", patient);
    }
    catch (const redlock::lock_error& error)
    {
        show("waiting", error.code());
    }
}

/// A lease outside of `async_with_lock`. The shutdown waits until it is destroyed, or its validity ends.
asio::awaitable<void> be_leader(redlock::lock_manager& locks, redlock::lease& lease, bool drops)
{
    try
    {
        lease = co_await locks.async_acquire_kept("leader", keeping);
    }
    catch (const redlock::lock_error& error)
    {
        show("leader", error.code());
        co_return;
    }
    std::cout << "leader: begun" << std::endl;
    const auto [no_loss, why] = co_await lease.async_wait_lost(asio::as_tuple(asio::deferred));
    show("leader", no_loss ? no_loss : why);
    if (drops)
    {
        lease = {};
    }
}

void rethrow(std::exception_ptr failure)
{
    if (failure)
    {
        std::rethrow_exception(failure);
    }
}

int main(int argc, char** argv)
{
    const std::string_view how = argc > 1 ? argv[1] : "";
    if (argc < 4 || (how != "drop" && how != "keep"))
    {
        std::cerr << "usage: " << argv[0] << " drop|keep <limit in ms> <master>...\n";
        return 64;
    }
    try
    {
        redlock::config options;
        options.masters = {argv + 3, argv + argc};
        options.node_timeout = 500ms; // Ten times the default: this machine may be slow.
        asio::io_context io;
        redlock::lock_manager locks{io, options};
        redlock::lease leader;
        asio::co_spawn(
            io, shut_down_at_signal(io, locks, std::chrono::milliseconds{std::stoi(argv[2])}), rethrow);
        asio::co_spawn(io, be_job(locks), rethrow);
        asio::co_spawn(io, wait_for_job(locks), rethrow);
        asio::co_spawn(io, be_leader(locks, leader, how == "drop"), rethrow);
        io.run();
    }
    catch (const std::exception& failure)
    {
        std::cerr << argv[0] << ": " << failure.what() << '\n';
        return 1;
    }
}
