// SPDX-License-Identifier: BSL-1.0
// The library at a glance: a lock that is acquired, used and released, and one that is kept for as long as a job runs.
// The masters are given on the command line.
#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

void log(std::string_view error, std::string_view words)
{
    std::cerr << error << ": " << words << '\n';
}

asio::awaitable<void> settle(redlock::lock_manager& locks)
{
    redlock::lease lease = co_await locks.async_acquire("invoice:42", 10s);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(lease.remaining());
    std::cout << "settling invoice 42; the lock is ours for " << left.count() << " ms\n";
    // ... the work ...
    const auto [unconfirmed] = co_await lease.async_release(asio::as_tuple(asio::deferred));
    if (unconfirmed)
    {
        log("invoice 42 is settled", unconfirmed.message());
    }
}

/// A job of unknown length. It can be cancelled wherever it awaits.
asio::awaitable<void> build_report(redlock::lease& lease)
{
    asio::steady_timer work{co_await asio::this_coro::executor};
    for (int page = 1; page <= 3; ++page)
    {
        work.expires_after(20ms);
        co_await work.async_wait(asio::deferred);
        std::cout << "page " << page << " of " << lease.resource() << '\n';
    }
}

asio::awaitable<void> report(redlock::lock_manager& locks)
{
    // Extended in the background; the body is cancelled before the lease expires.
    co_await locks.async_with_lock(
        "nightly-report", {.ttl = 10s, .max_hold = 2h},
        [&](redlock::lease& lease) -> asio::awaitable<void> { co_await build_report(lease); });
}

/// Logs an error of the lock; an exception of the body reaches the caller.
asio::awaitable<void> report_or_log(redlock::lock_manager& locks)
{
    const redlock::keep_options options{.ttl = 10s, .max_hold = 2h};
    const auto body = [](redlock::lease& lease) -> asio::awaitable<void> { co_await build_report(lease); };
    try
    {
        co_await locks.async_with_lock("invoice:42", options, body);
    }
    catch (const redlock::lock_error& error)
    {
        log(redlock::error_name(error.code()), error.what());
    }
}

/// One attempt. Returns false if another client holds the lock, which then does the job.
asio::awaitable<bool> report_unless_busy(redlock::lock_manager& locks)
{
    const redlock::keep_options once{.ttl = 10s, .max_hold = 2h, .max_rounds = 1};
    try
    {
        co_await locks.async_with_lock("nightly-report", once, build_report);
        co_return true;
    }
    catch (const redlock::lock_error& error)
    {
        if (error.code() != redlock::errc::held_by_other)
        {
            throw;
        }
    }
    co_return false;
}

asio::awaitable<void> serve(redlock::lock_manager& locks)
{
    co_await settle(locks);
    co_await report(locks);
    co_await report_or_log(locks);
    const bool reported = co_await report_unless_busy(locks);
    redlock::lease busy = co_await locks.async_acquire("nightly-report", 1min);
    const bool reported_twice = co_await report_unless_busy(locks);
    if (!reported || reported_twice)
    {
        throw std::logic_error{"one attempt takes a free lock, and no other one"};
    }
    co_await locks.async_shutdown(asio::as_tuple(asio::deferred));
}

/// Rethrows from `io.run()` what `asio::detached` would ignore.
void rethrow(std::exception_ptr failure)
{
    if (failure)
    {
        std::rethrow_exception(failure);
    }
}

int main(int argc, char** argv)
{
    if (argc < 2)
    {
        std::cerr << "usage: " << argv[0] << " <master>...\n"
                  << "a master is redis://[[user]:password@]host[:port][/db] or unix:///path[?db=n]\n";
        return 64;
    }
    try
    {
        asio::io_context io;
        const std::vector<redlock::master> masters{argv + 1, argv + argc};
        redlock::lock_manager locks{io, redlock::config{.masters = masters}};
        asio::co_spawn(io, serve(locks), rethrow);
        io.run();
    }
    catch (const std::exception& failure)
    {
        std::cerr << argv[0] << ": " << failure.what() << '\n';
        return 1;
    }
}
