// SPDX-License-Identifier: BSL-1.0
// Coroutines with every way to await: the default token, deferred, as_tuple, redirect_error, a lock race with a timeout
// by operator||, groups of operations, and exceptions of each kind.
#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory_resource>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;

// Names that a program has for flags of its own. Templates of the library are compiled after them.
bool acquiring = false;
bool running = true;
bool over = false;

asio::awaitable<void> plain(redlock::lock_manager& locks)
{
    redlock::lease held = co_await locks.async_acquire("plain", 10s);
    co_await held.async_extend(10s);
    co_await held.async_release();
}

asio::awaitable<void> by_tuple(redlock::lock_manager& locks)
{
    auto [error, held] = co_await locks.async_acquire("tuple", 10s, asio::as_tuple(asio::use_awaitable));
    if (error)
    {
        throw redlock::system_error{error};
    }
    auto [released] = co_await held.async_release(asio::as_tuple(asio::deferred));
    if (released)
    {
        throw redlock::system_error{released};
    }
}

asio::awaitable<void> by_redirection(redlock::lock_manager& locks)
{
    redlock::error_code error;
    redlock::lease held =
        co_await locks.async_acquire("redirected", 10s, asio::redirect_error(asio::use_awaitable, error));
    if (error)
    {
        throw redlock::system_error{error};
    }
}

asio::awaitable<void> race(redlock::lock_manager& locks)
{
    redlock::lease first = co_await locks.async_acquire("race", 10s);
    asio::steady_timer timer{co_await asio::this_coro::executor, 20ms};
    auto result = co_await (
        locks.async_acquire("race", {.ttl = 10s, .wait = redlock::no_limit}, asio::use_awaitable) ||
        timer.async_wait(asio::use_awaitable));
    if (result.index() != 1)
    {
        throw std::runtime_error{"a held resource was acquired"};
    }
}

asio::awaitable<void> group(redlock::lock_manager& locks)
{
    auto [order, first_error, first, second_error, second] =
        co_await asio::experimental::make_parallel_group(
            locks.async_acquire("group:1", 10s, asio::deferred),
            locks.async_acquire("group:2", 10s, asio::deferred))
            .async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
    if (first_error || second_error || !first || !second || order.size() != 2)
    {
        throw std::runtime_error{"a group of two acquires failed"};
    }
}

asio::awaitable<int> body(redlock::lease& held)
{
    co_return held.valid() ? 42 : 0;
}

asio::awaitable<void> with_body(redlock::lock_manager& locks)
{
    const int answer = co_await locks.async_with_lock("body", {.ttl = 3s, .max_hold = 1min}, body);
    if (answer != 42)
    {
        throw std::runtime_error{"the body has a wrong result"};
    }
    try
    {
        co_await locks.async_with_lock(
            "body", {.ttl = 3s, .max_hold = 1min},
            [](redlock::lease&) -> asio::awaitable<void>
            {
                throw std::string{"an exception of the user"};
                co_return;
            });
    }
    catch (const std::string&)
    {
        co_return;
    }
    throw std::runtime_error{"the body's exception was lost"};
}

/// The memory of an operation with a body comes from a buffer.
asio::awaitable<void> with_own_memory(redlock::lock_manager& locks)
{
    std::array<std::byte, 65536> room{};
    std::pmr::monotonic_buffer_resource memory{room.data(), room.size(), std::pmr::null_memory_resource()};
    co_await locks.async_with_lock(
        "memory", {.ttl = 3s, .max_hold = 1min}, body,
        asio::bind_allocator(std::pmr::polymorphic_allocator<std::byte>{&memory}, asio::use_awaitable));
}

asio::awaitable<void> refused(redlock::lock_manager& locks)
{
    try
    {
        const redlock::lease none = co_await locks.async_acquire("", 10s);
    }
    catch (const redlock::lock_error& error)
    {
        if (error.code() == redlock::condition::misuse)
        {
            co_return;
        }
    }
    throw std::runtime_error{"an empty name was accepted"};
}

asio::awaitable<void> all(redlock::lock_manager& locks)
{
    co_await plain(locks);
    co_await by_tuple(locks);
    co_await by_redirection(locks);
    co_await race(locks);
    co_await group(locks);
    co_await with_body(locks);
    co_await with_own_memory(locks);
    co_await refused(locks);
    co_await locks.async_shutdown();
}

int main(int argc, char** argv)
{
    const std::vector<std::string> urls(argv + 1, argv + argc);
    asio::io_context io;
    redlock::config options;
    options.masters.assign(urls.begin(), urls.end());
    options.node_timeout = 500ms;
    redlock::lock_manager locks{io, options};
    int status = 1;
    asio::co_spawn(
        io, all(locks),
        [&](std::exception_ptr thrown)
        {
            try
            {
                if (thrown)
                {
                    std::rethrow_exception(thrown);
                }
                status = 0;
            }
            catch (const std::exception& error)
            {
                std::printf("%s\n", error.what());
            }
            io.stop();
        });
    io.run();
    return status;
}
