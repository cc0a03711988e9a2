// SPDX-License-Identifier: BSL-1.0
// The library as a user has it.
#include "redlock_client.hpp"

#include <boost/asio/co_spawn.hpp>

#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench
{

namespace
{

// The answers of the minority come within this time: they are there, but for the scheduler's turn.
constexpr std::chrono::milliseconds afterglow{20};
constexpr std::chrono::seconds patience{30};

} // namespace

config config_for(std::span<const test::server> masters)
{
    config options;
    for (const test::server& master : masters)
    {
        options.masters.emplace_back(master.url());
    }
    return options;
}

redlock_client::redlock_client(std::span<const test::server> masters) : locks_{io_, config_for(masters)} {}

stretch redlock_client::run(const work& what)
{
    stretch done;
    finish(acquire_and_release(what, done));
    return done;
}

asio::awaitable<void> redlock_client::acquire_and_release(const work& what, stretch& done)
{
    stopwatch watch{done, what};
    do
    {
        std::string name{resource};
        watch.begin_acquire();
        lease held = co_await locks_.async_acquire(std::move(name), ttl);
        watch.end_acquire();
        try
        {
            co_await held.async_release();
        }
        catch (const system_error& problem)
        {
            // A machine that is busy with something else stands still for longer than the node timeout now and then.
            if (problem.code() != errc::unconfirmed)
            {
                throw;
            }
            ++done.unconfirmed;
        }
    } while (watch.goes_on());
    watch.finish();
}

void redlock_client::await_unconnected(std::size_t masters)
{
    const auto deadline = std::chrono::steady_clock::now() + patience;
    report last;
    do
    {
        if (std::chrono::steady_clock::now() > deadline)
        {
            throw std::runtime_error{
                "the masters didn't come to the state that was waited for; the last round:\n" +
                last.to_string()};
        }
        finish(probe(last));
    } while (last.count(vote::unsent) != masters);
}

asio::awaitable<void> redlock_client::probe(report& out)
{
    std::string name{resource};
    // Released when it goes: while masters come back, nobody may be there yet to confirm it.
    const lease held = co_await locks_.async_acquire(std::move(name), ttl, out);
}

void redlock_client::finish(asio::awaitable<void> task)
{
    std::exception_ptr failure;
    auto ended = [&](std::exception_ptr error)
    {
        failure = error;
        io_.stop();
    };
    asio::co_spawn(io_, std::move(task), ended);
    io_.restart();
    io_.run();
    io_.restart();
    io_.run_for(afterglow);
    if (failure)
    {
        std::rethrow_exception(failure);
    }
}

} // namespace redlock::bench
