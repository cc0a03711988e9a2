// SPDX-License-Identifier: BSL-1.0
// The program of README.md: example_readme redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
#include <redlock/redlock.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <exception>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> settle(redlock::lock_manager& locks)
{
    redlock::lease lease = co_await locks.async_acquire("invoice:42", 10s);
    // The work. lease.valid() returns false once the lock has expired.
    std::puts("invoice 42 is locked");
    co_await lease.async_release();
    co_await locks.async_shutdown();
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
    const std::vector<redlock::master> masters{argv + 1, argv + argc};
    asio::io_context io;
    redlock::lock_manager locks{io, {.masters = masters}};
    asio::co_spawn(io, settle(locks), rethrow);
    io.run();
}
