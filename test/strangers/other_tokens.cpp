// SPDX-License-Identifier: BSL-1.0
// Completion tokens that change the arguments of a handler, promises, type-erased handlers, and a channel of leases.
#include <redlock/redlock.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/as_single.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/promise.hpp>
#include <boost/asio/experimental/use_promise.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prepend.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

using lease_channel = asio::experimental::channel<void(redlock::error_code, redlock::lease)>;

static constexpr redlock::acquire_options patient{.ttl = 10s, .wait = 5s};

/// The reader of a channel gets the lease with which the sender has begun.
static asio::awaitable<bool> hand_over(redlock::lock_manager& locks, asio::io_context& io)
{
    lease_channel jobs{io, 1};
    redlock::lease begun = co_await locks.async_acquire("handed over", patient);
    const std::string owner{begun.owner_id()};
    co_await jobs.async_send(redlock::error_code{}, std::move(begun), asio::use_awaitable);
    redlock::lease received = co_await jobs.async_receive(asio::use_awaitable);
    const bool is_same = received.valid() && received.owner_id() == owner;
    co_await received.async_release(asio::use_awaitable);
    co_return is_same;
}

static asio::awaitable<bool> use_promises(redlock::lock_manager& locks)
{
    auto first = locks.async_acquire("promised", patient, asio::experimental::use_promise);
    auto second = locks.async_acquire("promised as well", patient, asio::experimental::use_promise);
    // Boost 1.81 hands over an empty lease if the promise is awaited before.
    asio::steady_timer pause{co_await asio::this_coro::executor};
    while (!first.completed() || !second.completed())
    {
        pause.expires_after(1ms);
        co_await pause.async_wait(asio::use_awaitable);
    }
    const redlock::lease one = co_await std::move(first)(asio::use_awaitable);
    const redlock::lease other = co_await std::move(second)(asio::use_awaitable);
    const auto [error, seen] =
        co_await locks.async_inspect("promised", asio::experimental::as_single(asio::use_awaitable));
    co_return !error && other.valid() && seen.holder() == one.owner_id();
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
    const auto count = [&](bool good)
    {
        well += good ? 1 : 0;
        if (well == 5)
        {
            locks.async_shutdown([&](redlock::error_code error) { closed = !error; });
        }
    };
    locks.async_acquire(
        "numbered", patient,
        asio::prepend(
            [&](int number, redlock::error_code error, redlock::lease held)
            {
                count(number == 42 && !error && held.valid());
                const auto kept = std::make_shared<redlock::lease>(std::move(held));
                kept->async_release(asio::append(
                    [&](redlock::error_code released, const std::shared_ptr<redlock::lease>& of)
                    { count(!released && !of->valid()); },
                    kept));
            },
            42));
    asio::any_completion_handler<void(redlock::error_code, redlock::lease)> erased{
        [&](redlock::error_code error, const redlock::lease& held) { count(!error && held.valid()); }};
    locks.async_acquire("type-erased", patient, std::move(erased));
    const auto ended = [&](std::exception_ptr thrown, bool good) { count(!thrown && good); };
    asio::co_spawn(io, hand_over(locks, io), ended);
    asio::co_spawn(io, use_promises(locks), ended);
    io.run_for(30s);
    std::printf("%d of 5, %s\n", well, closed ? "closed" : "not closed");
    return well == 5 && closed ? 0 : 1;
}
