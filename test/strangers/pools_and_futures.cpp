// SPDX-License-Identifier: BSL-1.0
// Several threads: a pool, futures, strands, other executors for handlers, promises, and a body that returns a value to a
// thread that blocks.
#include <redlock/redlock.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/consign.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

int main(int argc, char** argv)
{
    try
    {
        const std::vector<std::string> urls(argv + 1, argv + argc);
        asio::thread_pool pool{4};
        redlock::config options;
        options.masters.assign(urls.begin(), urls.end());
        options.node_timeout = 500ms;
        redlock::lock_manager of_pool{pool, options};
        redlock::lock_manager of_strand{asio::any_io_executor{asio::make_strand(pool)}, options};

        // A future of a lease, and of a body's result.
        redlock::lease held = of_pool.async_acquire("future", 10s, asio::use_future).get();
        held.async_release(asio::use_future).get();
        std::future<std::string> text = of_strand.async_with_lock(
            "future", {.ttl = 3s, .max_hold = 1min},
            [](redlock::lease& lease) -> asio::awaitable<std::string>
            { co_return std::string{lease.owner_id()}; },
            asio::use_future);
        bool well = text.get().size() >= 16;

        // Handlers on a strand, on the system executor, and with something to keep alive.
        const auto strand = asio::make_strand(pool.get_executor());
        std::atomic<int> called{0};
        std::promise<void> all_called;
        const auto count = [&](redlock::error_code error, redlock::lease lease)
        {
            if (error || !lease)
            {
                std::printf("%s\n", error.message().c_str());
            }
            if (++called == 3)
            {
                all_called.set_value();
            }
        };
        of_pool.async_acquire("on a strand", 10s, asio::bind_executor(strand, count));
        of_pool.async_acquire("on the system", 10s, asio::bind_executor(asio::system_executor{}, count));
        of_pool.async_acquire("consigned", 10s, asio::consign(count, std::make_shared<int>(1)));
        all_called.get_future().get();

        // Threads that share a manager, and one counter under one lock.
        int counter = 0;
        std::vector<std::thread> threads;
        for (int thread = 0; thread < 3; ++thread)
        {
            threads.emplace_back(
                [&]
                {
                    for (int round = 0; round < 5; ++round)
                    {
                        redlock::lease lease =
                            of_pool
                                .async_acquire(
                                    "counter", {.ttl = 10s, .wait = redlock::no_limit}, asio::use_future)
                                .get();
                        ++counter;
                        lease.async_release(asio::use_future).get();
                    }
                });
        }
        for (std::thread& each : threads)
        {
            each.join();
        }
        well = well && counter == 15;

        // Detached: nobody waits for the end.
        asio::co_spawn(
            pool,
            [&of_pool]() -> asio::awaitable<void>
            {
                co_await of_pool.async_with_lock(
                    "detached", {.ttl = 3s, .max_hold = 1min},
                    [](redlock::lease&) -> asio::awaitable<void> { co_return; });
            },
            asio::detached);
        of_strand.async_shutdown(asio::use_future).get();
        of_pool.async_shutdown(asio::use_future).get();
        pool.join();
        return well ? 0 : 1;
    }
    catch (const std::exception& error)
    {
        std::printf("%s\n", error.what());
        return 1;
    }
}
