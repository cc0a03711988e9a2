// SPDX-License-Identifier: BSL-1.0
// Without coroutines: plain threads that block on futures, while a thread pool does the input and output.
#include "throwaway_servers.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <exception>
#include <future>
#include <iostream>
#include <thread>

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr int threads = 4;
constexpr int rounds_of_each = 5;

/// Increments a number that only the lock protects. `get` returns the result of the operation, or throws: with the report as
/// its text.
void count_up(redlock::lock_manager& locks, int& number)
{
    for (int round = 0; round < rounds_of_each; ++round)
    {
        const redlock::acquire_options patient{.ttl = 10s, .wait = redlock::no_limit};
        auto held = locks.async_acquire("number", patient, redlock::with_report(asio::use_future));
        redlock::lease lease = held.get();
        ++number;
        lease.async_release(asio::use_future).wait(); // `get` would throw if the release isn't confirmed.
    }
}

int main()
{
    try
    {
        const std::vector<throwaway_server> servers(3);
        asio::thread_pool pool{2};
        redlock::config options;
        options.masters = masters_of(servers);
        options.node_timeout = 500ms;   // Ten times the default: this machine may be slow.
        options.retry_delay_max = 50ms; // Held only for a moment, so retrying soon is worthwhile.
        redlock::lock_manager locks{pool, options};

        int number = 0;
        std::vector<std::future<void>> workers;
        for (int index = 0; index < threads; ++index)
        {
            workers.push_back(std::async(std::launch::async, [&] { count_up(locks, number); }));
        }
        for (std::future<void>& worker : workers)
        {
            worker.get();
        }
        locks.async_shutdown(asio::use_future).wait();
        pool.join();

        std::cout << threads << " threads counted to " << number << " together\n";
        return number == threads * rounds_of_each ? 0 : 1;
    }
    catch (const std::exception& failure)
    {
        std::cerr << "futures: " << failure.what() << '\n';
        return 1;
    }
}
