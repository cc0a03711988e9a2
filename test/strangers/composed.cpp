// SPDX-License-Identifier: BSL-1.0
// Operations composed of the library's, groups of them, and coroutines that yield.
#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/coro.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/version.hpp>

#if BOOST_ASIO_VERSION >= 103200
#include <boost/asio/bind_immediate_executor.hpp>
#include <boost/asio/cancel_after.hpp>
#endif

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

static constexpr redlock::acquire_options patient{.ttl = 10s, .wait = 5s};
static constexpr redlock::acquire_options endless{.ttl = 10s, .wait = redlock::no_limit};

/// Acquires, extends and releases, as one operation of a state machine.
struct touch
{
    redlock::lock_manager& locks;
    std::string resource;
    std::unique_ptr<redlock::lease> held{};
    int step = 0;

    template <class Self>
    void operator()(Self& self, redlock::error_code error = {})
    {
        if (error || step == 3)
        {
            self.complete(error, step);
        }
        else if (step++ == 0)
        {
            locks.async_acquire(resource, patient, std::move(self));
        }
        else
        {
            redlock::lease& mine = *held;
            step == 2 ? mine.async_extend(20s, std::move(self)) : mine.async_release(std::move(self));
        }
    }
    template <class Self>
    void operator()(Self& self, redlock::error_code error, redlock::lease won)
    {
        held = std::make_unique<redlock::lease>(std::move(won));
        (*this)(self, error);
    }
};

template <class Token>
auto async_touch(redlock::lock_manager& locks, std::string resource, Token&& token)
{
    return asio::async_compose<Token, void(redlock::error_code, int)>(
        touch{locks, std::move(resource)}, token, locks.get_executor());
}

static asio::awaitable<bool> compose(redlock::lock_manager& locks)
{
    const int steps = co_await async_touch(locks, "composed", asio::use_awaitable);
    const redlock::inspection seen = co_await locks.async_inspect("composed", asio::use_awaitable);
    co_return steps == 3 && seen.holder().empty();
}

/// Locks a number of resources at once, by a group whose size isn't known to the compiler.
static asio::awaitable<bool> lock_all(redlock::lock_manager& locks)
{
    using operation = decltype(locks.async_acquire("", patient, asio::deferred));
    std::vector<operation> all;
    for (int number = 0; number < 5; ++number)
    {
        all.push_back(locks.async_acquire("shard " + std::to_string(number), patient, asio::deferred));
    }
    auto [order, errors, leases] = co_await asio::experimental::make_parallel_group(std::move(all))
                                       .async_wait(asio::experimental::wait_for_all{}, asio::use_awaitable);
    std::size_t valid = 0;
    for (const redlock::lease& each : leases)
    {
        valid += each.valid() ? 1U : 0U;
    }
    co_return order.size() == 5 && valid == 5;
}

/// The first of two locks that is free.
static asio::awaitable<bool> lock_either(redlock::lock_manager& locks)
{
    const redlock::lease taken = co_await locks.async_acquire("left", patient, asio::use_awaitable);
    auto [order, left_error, left, right_error, right] =
        co_await asio::experimental::make_parallel_group(
            locks.async_acquire("left", endless, asio::deferred),
            locks.async_acquire("right", endless, asio::deferred))
            .async_wait(asio::experimental::wait_for_one_success{}, asio::use_awaitable);
    co_return order[0] == 1 && left_error == asio::error::operation_aborted && !left && !right_error &&
        right.valid() && taken.valid();
}

/// Yields the owner ids of one lease after the other.
static asio::experimental::coro<std::string> owners(asio::io_context& io, redlock::lock_manager& locks)
{
    static_cast<void>(io); // Has the executor of the coroutine.
    for (int round = 0; round < 3; ++round)
    {
        redlock::lease held = co_await locks.async_acquire("in turn", patient, asio::deferred);
        co_yield std::string{held.owner_id()};
        co_await held.async_release(asio::deferred);
    }
}

static asio::experimental::coro<void, bool> count_owners(asio::io_context& io, redlock::lock_manager& locks)
{
    auto each = owners(io, locks);
    std::vector<std::string> seen;
    while (const auto owner = co_await each)
    {
        seen.push_back(*owner);
    }
    co_return seen.size() == 3 && seen[0] != seen[1] && seen[1] != seen[2];
}

int main(int argc, char** argv)
{
    const std::vector<std::string> urls(argv + 1, argv + argc);
    asio::io_context io;
    redlock::config options;
    options.masters.assign(urls.begin(), urls.end());
    options.node_timeout = 500ms;
    redlock::lock_manager locks{io, options};

    int well = 0;
    bool closed = false;
    const auto count = [&](std::exception_ptr thrown, bool good)
    {
        well += !thrown && good ? 1 : 0;
        if (well == 5)
        {
            locks.async_shutdown([&](redlock::error_code error) { closed = !error; });
        }
    };
    asio::co_spawn(io, compose(locks), count);
    asio::co_spawn(io, lock_all(locks), count);
    asio::co_spawn(io, lock_either(locks), count);
    asio::experimental::coro<void, bool> counting = count_owners(io, locks);
    counting.async_resume(count);
#if BOOST_ASIO_VERSION >= 103200
    redlock::lease held;
    const auto waited = [&](redlock::error_code error, const redlock::lease& second)
    { count({}, error == asio::error::operation_aborted && !second && held.valid()); };
    const auto won = [&](redlock::error_code, redlock::lease first)
    {
        held = std::move(first);
        locks.async_acquire("held", endless, asio::cancel_after(20ms, waited));
    };
    locks.async_acquire("held", patient, asio::bind_immediate_executor(io.get_executor(), won));
#else
    count({}, true);
#endif
    io.run_for(30s);
    std::printf("%d of 5, %s\n", well, closed ? "closed" : "not closed");
    return well == 5 && closed ? 0 : 1;
}
