// SPDX-License-Identifier: BSL-1.0
// The library as an application uses it.
#include "harness/redlock_client.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench
{

namespace
{

// The replies of the minority arrive within this time. Only the scheduler can delay them.
constexpr std::chrono::milliseconds drain_time{20};
constexpr std::chrono::seconds state_timeout{30};

} // namespace

config config_with_long_timeout(std::span<const test::server> masters)
{
    config options = config_for(masters);
    options.node_timeout = std::chrono::seconds{1};
    return options;
}

asio::awaitable<void> release(lease& held)
{
    error_code unconfirmed;
    co_await held.async_release(asio::redirect_error(asio::use_awaitable, unconfirmed));
}

asio::awaitable<void> shut_down(lock_manager& locks)
{
    error_code ignored;
    co_await locks.async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
}

redlock_client::redlock_client(const config& options) : locks_{io_, options} {}

run_record redlock_client::run(const workload& load)
{
    run_record done;
    stopwatch watch{done, load};
    for (std::size_t worker = 0; worker < load.workers; ++worker)
    {
        tasks_.start(acquire_and_release(worker, watch, done));
    }
    tasks_.finish();
    watch.finish();
    drain();
    return done;
}

asio::awaitable<void>
redlock_client::acquire_and_release(std::size_t worker, stopwatch& watch, run_record& done)
{
    const std::string resource = resource_of("invoice", worker);
    stopwatch::clock::time_point start{};
    while (watch.begin_pair(start))
    {
        std::string name{resource};
        lease held = co_await locks_.async_acquire(std::move(name), ttl);
        watch.end_acquire(start);
        try
        {
            co_await held.async_release();
        }
        catch (const system_error& problem)
        {
            // A machine busy with other work occasionally stalls for longer than the node timeout.
            if (problem.code() != errc::unconfirmed)
            {
                throw;
            }
            ++done.unconfirmed;
        }
    }
}

void redlock_client::await_disconnected(std::size_t masters)
{
    const auto deadline = std::chrono::steady_clock::now() + state_timeout;
    report last;
    do
    {
        if (std::chrono::steady_clock::now() > deadline)
        {
            throw std::runtime_error{
                "the connections to the masters did not reach the expected state; the last "
                "round:\n" +
                last.to_string()};
        }
        tasks_.start(probe(last));
        tasks_.finish();
        drain();
    } while (last.count(vote::unsent) != masters);
}

asio::awaitable<void> redlock_client::probe(report& out)
{
    std::string name = resource_of("invoice", 0);
    // Released by its destructor: a master that is restarting may not confirm the release.
    const lease held = co_await locks_.async_acquire(std::move(name), ttl, out);
}

void redlock_client::drain()
{
    io_.restart();
    io_.run_for(drain_time);
}

} // namespace redlock::bench
