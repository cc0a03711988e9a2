// SPDX-License-Identifier: BSL-1.0
// The program of docs/tutorial.md, a job of one second for each page: example_tutorial 20 redis://127.0.0.1:7001 ...
#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> print_report(int pages)
{
    asio::steady_timer work{co_await asio::this_coro::executor};
    for (int page = 1; page <= pages; ++page)
    {
        work.expires_after(1s);
        co_await work.async_wait(asio::deferred);
        std::cout << "page " << page << std::endl;
    }
}

asio::awaitable<void> run(redlock::lock_manager& locks, int pages)
{
    const redlock::keep_options options{.ttl = 3s, .max_hold = 5min, .wait = 1min};
    const auto body = [pages]() -> asio::awaitable<void> { co_await print_report(pages); };
    try
    {
        std::cout << "waiting for the lock" << std::endl;
        co_await locks.async_with_lock("nightly-report", options, body);
        std::cout << "done" << std::endl;
    }
    catch (const redlock::lock_error& error)
    {
        std::cout << redlock::error_name(error.code()) << std::endl;
    }
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
    if (argc < 3)
    {
        std::cerr << "usage: " << argv[0] << " <pages> <master>...\n";
        return 64;
    }
    const int pages = std::atoi(argv[1]);
    const std::vector<redlock::master> masters{argv + 2, argv + argc};
    asio::io_context io;
    redlock::lock_manager locks{io, {.masters = masters}};
    asio::co_spawn(io, run(locks, pages), rethrow);
    io.run();
}
