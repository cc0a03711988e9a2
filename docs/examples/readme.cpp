// SPDX-License-Identifier: BSL-1.0
// The program of README.md: example_readme redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <exception>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// The work. If the lock is about to be lost, the work is cancelled where it awaits.
asio::awaitable<void> settle(redlock::lease& lease)
{
    if (lease.valid()) // Check this before each effect that needs the lock.
    {
        std::puts("invoice 42 is locked");
    }
    co_return;
}

asio::awaitable<void> run(redlock::lock_manager& locks)
{
    // Acquires the lock, extends it while `settle` runs, and releases it after that.
    const redlock::keep_options options{.ttl = 10s, .max_hold = 5min};
    co_await locks.async_with_lock("invoice:42", options, settle);
    // Its result doesn't matter: a key that wasn't released expires with its ttl.
    co_await locks.async_shutdown(asio::as_tuple(asio::deferred));
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
    try
    {
        const std::vector<redlock::master> masters{argv + 1, argv + argc};
        asio::io_context io;
        redlock::lock_manager locks{io, {.masters = masters}};
        asio::co_spawn(io, run(locks), rethrow);
        io.run();
    }
    catch (const std::exception& failure)
    {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
}
