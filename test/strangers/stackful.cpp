// SPDX-License-Identifier: BSL-1.0
// Stackful coroutines: errors as exceptions or as codes, a body, and a wait that is cancelled.
#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/spawn.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

static constexpr redlock::acquire_options patient{.ttl = 10s, .wait = 5s};

static bool use_codes(redlock::lock_manager& locks, asio::yield_context yield)
{
    redlock::error_code error;
    redlock::lease held = locks.async_acquire("codes", patient, yield[error]);
    const redlock::inspection seen = locks.async_inspect("codes", yield);
    const bool is_mine = !error && seen.holder() == held.owner_id();
    const redlock::lease second = locks.async_try_acquire("codes", {.ttl = 10s}, yield[error]);
    const bool is_held = error == redlock::errc::held_by_other && !second;
    held.async_extend(20s, yield[error]);
    const bool is_extended = !error && held.remaining() > 10s;
    held.async_release(yield[error]);
    return is_mine && is_held && is_extended && !error;
}

static bool use_exceptions(redlock::lock_manager& locks, asio::yield_context yield)
{
    const redlock::lease held = locks.async_acquire("exceptions", patient, redlock::with_report(yield));
    int refusals = 0;
    try
    {
        const redlock::lease none = locks.async_try_acquire("exceptions", {.ttl = 10s}, yield);
    }
    catch (const redlock::system_error& refused)
    {
        refusals += refused.code() == redlock::errc::held_by_other ? 1 : 0;
    }
    try
    {
        const redlock::lease none =
            locks.async_try_acquire("exceptions", {.ttl = 10s}, redlock::with_report(yield));
    }
    catch (const redlock::lock_error& refused)
    {
        refusals += refused.resource() == "exceptions" ? 1 : 0;
    }
    return held.valid() && refusals == 2;
}

static bool run_body(redlock::lock_manager& locks, asio::yield_context yield)
{
    const auto answers = [](redlock::lease& held) -> asio::awaitable<int> { co_return held.valid() ? 7 : 0; };
    const int answer = locks.async_with_lock("body", {.ttl = 10s, .max_hold = 1min}, answers, yield);
    bool is_called = false;
    const auto calls = [&is_called]() -> asio::awaitable<void>
    {
        is_called = true;
        co_return;
    };
    locks.async_with_lock("body", {.ttl = 10s, .max_hold = 1min}, calls, yield);
    const auto throws = []() -> asio::awaitable<void>
    {
        throw std::runtime_error{"of the body"};
        co_return;
    };
    try
    {
        locks.async_with_lock("body", {.ttl = 10s, .max_hold = 1min}, throws, yield);
    }
    catch (const std::runtime_error& thrown)
    {
        return answer == 7 && is_called && thrown.what() == std::string{"of the body"};
    }
    return false;
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
        if (well == 4)
        {
            locks.async_shutdown([&](redlock::error_code error) { closed = !error; });
        }
    };
    asio::spawn(
        io, [&](asio::yield_context yield) { return use_codes(locks, yield); }, count);
    asio::spawn(
        io, [&](asio::yield_context yield) { return use_exceptions(locks, yield); }, count);
    asio::spawn(
        io, [&](asio::yield_context yield) { return run_body(locks, yield); }, count);

    asio::cancellation_signal stop;
    const auto wait_in_vain = [&](asio::yield_context yield)
    {
        const redlock::lease held = locks.async_acquire("waited for", patient, yield);
        // A coroutine reacts to terminal only, unless it asks for more.
        asio::steady_timer soon{io, 50ms};
        soon.async_wait([&stop](redlock::error_code) { stop.emit(asio::cancellation_type::terminal); });
        redlock::error_code error;
        const redlock::lease none =
            locks.async_acquire("waited for", {.ttl = 10s, .wait = redlock::no_limit}, yield[error]);
        return error == asio::error::operation_aborted && held.valid();
    };
    asio::spawn(io, wait_in_vain, asio::bind_cancellation_slot(stop.slot(), count));
    io.run_for(30s);
    std::printf("%d of 4, %s\n", well, closed ? "closed" : "not closed");
    return well == 4 && closed ? 0 : 1;
}
