// SPDX-License-Identifier: BSL-1.0
// Bodies under a kept lock, on real masters with real faults.
#include "integration/fixture.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <exception>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

config five(const std::vector<server>& servers)
{
    config options = reaching(servers);
    // A slow machine mustn't make these tests fail.
    options.node_timeout = 200ms;
    return options;
}

/// Runs until it is cancelled.
asio::awaitable<void> work_for_ever()
{
    asio::steady_timer forever{co_await asio::this_coro::executor};
    forever.expires_at(std::chrono::steady_clock::time_point::max());
    co_await forever.async_wait(asio::use_awaitable);
}

/// Starts async_with_lock on the loop and returns the future of its result. `body` must outlive the operation.
template <class Body>
std::future<error_code> start(event_loop& loop, lock_manager& locks, keep_options options, Body& body)
{
    auto result = std::make_shared<std::promise<error_code>>();
    std::future<error_code> future = result->get_future();
    asio::post(
        loop.context(),
        [&locks, options, &body, result]
        {
            auto call = [&body](lease& held) -> asio::awaitable<void> { co_await body(held); };
            locks.async_with_lock(
                "job", options, call,
                [result](std::exception_ptr thrown) { result->set_value(error_of(thrown)); });
        });
    return future;
}

bool has_key(server& on)
{
    return on.command({"EXISTS", "lock:job"}).integer == 1;
}

std::size_t count_keys(std::vector<server>& servers)
{
    return static_cast<std::size_t>(std::count_if(servers.begin(), servers.end(), has_key));
}

} // namespace

TEST_CASE(
    "a job keeps its lock while masters are killed and restarted empty, one after the other",
    "[threads][patient]")
{
    std::vector<server> servers = start_servers(5);
    event_loop loop;
    lock_manager locks{loop.context(), five(servers)};
    lock_manager other{loop.context(), five(servers)};

    std::promise<std::string> started;
    std::promise<void> finish;
    bool stayed_valid = true;
    auto body = [&](lease& held) -> asio::awaitable<void>
    {
        started.set_value(std::string{held.owner_id()});
        asio::steady_timer pause{co_await asio::this_coro::executor};
        std::future<void> finished = finish.get_future();
        while (finished.wait_for(0s) != std::future_status::ready)
        {
            stayed_valid = stayed_valid && held.valid();
            pause.expires_after(5ms);
            co_await pause.async_wait(asio::use_awaitable);
        }
    };
    std::future<error_code> ended =
        start(loop, locks, {.ttl = 3s, .max_hold = redlock::no_limit, .wait = 30s}, body);
    const std::string owner = take(started.get_future(), "the start of the body");

    // It was acquired as soon as a quorum of masters was ready; after the first extension all of them have it. The
    // other client's attempts may leave a key on one of them for a moment.
    bool rival_came_in = false;
    const auto wait_for_key = [&](server& on)
    {
        const auto give_up = std::chrono::steady_clock::now() + patience;
        while (!(on.command({"GET", "lock:job"}) == owner))
        {
            REQUIRE(std::chrono::steady_clock::now() < give_up);
            const acquired tried = try_acquire(other, "job", {.ttl = 3s});
            rival_came_in = rival_came_in || !tried.error;
        }
    };
    for (server& each : servers)
    {
        wait_for_key(each);
    }
    for (server& each : servers)
    {
        each.kill();
        each.restart();
        wait_for_key(each);
    }
    finish.set_value();
    CHECK(take(std::move(ended), "the end of the job") == error_code{});
    CHECK(stayed_valid);
    CHECK_FALSE(rival_came_in);

    const acquired after = acquire(other, "job", {.ttl = 3s, .wait = 30s});
    CHECK(after.error == error_code{});
}

TEST_CASE("a body is cancelled before its lease can expire if a quorum hangs", "[threads][patient]")
{
    std::vector<server> servers = start_servers(5);
    event_loop loop;
    lock_manager locks{loop.context(), five(servers)};

    std::promise<void> started;
    clock::time_point valid_until{};
    clock::time_point cancelled{};
    auto body = [&](lease& held) -> asio::awaitable<void>
    {
        valid_until = held.valid_until();
        started.set_value();
        try
        {
            co_await work_for_ever();
        }
        catch (const system_error&)
        {
            cancelled = clock::now();
            throw;
        }
    };
    // The margin is large enough for a slow machine, and no extension is due before the masters are stopped.
    const keep_options options{
        .ttl = 20s, .max_hold = redlock::no_limit, .wait = 30s, .extend_every = 1s, .stop_margin = 15s};
    std::future<error_code> ended = start(loop, locks, options, body);
    take(started.get_future(), "the start of the body");
    for (std::size_t hung = 0; hung < 3; ++hung)
    {
        servers[hung].stop();
    }
    CHECK(take(std::move(ended), "the loss") == errc::lease_lost);
    CHECK(cancelled < valid_until + 20s);
    CHECK(cancelled > valid_until - 20s);
}

TEST_CASE("a body's own exception is passed on, and its lock is released", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    event_loop loop;
    lock_manager locks{loop.context(), five(servers)};
    auto body = [](lease&) -> asio::awaitable<void>
    {
        const error_code own = make_error_code(boost::system::errc::no_space_on_device);
        throw system_error{own};
        co_return;
    };
    std::future<error_code> ended = start(loop, locks, {.ttl = 10s, .max_hold = 1min, .wait = 30s}, body);
    CHECK(take(std::move(ended), "the exception") == boost::system::errc::no_space_on_device);
    for (server& each : servers)
    {
        CHECK_FALSE(has_key(each));
    }
}

TEST_CASE("a body that exceeds max_hold is cancelled with hold_limit_reached", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    event_loop loop;
    lock_manager locks{loop.context(), five(servers)};
    auto body = [](lease&) -> asio::awaitable<void> { co_await work_for_ever(); };
    std::future<error_code> ended = start(loop, locks, {.ttl = 10s, .max_hold = 300ms, .wait = 30s}, body);
    CHECK(take(std::move(ended), "the limit") == errc::hold_limit_reached);
}

TEST_CASE("a key that was deleted cancels the body at the next extension", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    event_loop loop;
    lock_manager locks{loop.context(), five(servers)};
    std::promise<void> started;
    auto body = [&](lease&) -> asio::awaitable<void>
    {
        started.set_value();
        co_await work_for_ever();
    };
    const keep_options options{.ttl = 60s, .max_hold = redlock::no_limit, .wait = 30s, .extend_every = 200ms};
    std::future<error_code> ended = start(loop, locks, options, body);
    take(started.get_future(), "the start of the body");
    for (server& each : servers)
    {
        each.command({"SET", "lock:job", "another client"});
    }
    CHECK(take(std::move(ended), "the loss") == errc::lease_lost);
    for (server& each : servers)
    {
        CHECK(each.command({"GET", "lock:job"}) == "another client");
    }
}

TEST_CASE(
    "a shutdown releases nothing until a body that is stopping has ended [scenario-58]",
    "[threads][scenario-58]")
{
    std::vector<server> servers = start_servers(3);
    event_loop loop;
    lock_manager locks{loop.context(), five(servers)};
    std::promise<void> started;
    bool key_was_there = false;
    auto body = [&](lease&) -> asio::awaitable<void>
    {
        started.set_value();
        try
        {
            co_await work_for_ever();
        }
        catch (const system_error&)
        {
            // The body is cancelled; this is the time that it takes to stop.
            key_was_there = count_keys(servers) >= quorum_of(servers.size());
            throw;
        }
    };
    std::future<error_code> ended =
        start(loop, locks, {.ttl = 60s, .max_hold = redlock::no_limit, .wait = 30s}, body);
    take(started.get_future(), "the start of the body");
    CHECK(shut_down(locks) == error_code{});
    CHECK(take(std::move(ended), "the end of the body") == errc::closed);
    CHECK(key_was_there);
    for (server& each : servers)
    {
        CHECK_FALSE(has_key(each));
    }
}

TEST_CASE("a lease that can't be kept is refused before anything is sent", "[threads]")
{
    std::vector<server> servers = start_servers(1);
    event_loop loop;
    lock_manager locks{loop.context(), five(servers)};
    bool ran = false;
    auto body = [&](lease&) -> asio::awaitable<void>
    {
        ran = true;
        co_return;
    };
    const keep_options too_tight{.ttl = 1s, .max_hold = redlock::no_limit, .extend_every = 900ms};
    CHECK(take(start(loop, locks, too_tight, body), "the refusal") == errc::invalid_schedule);
    CHECK(
        take(start(loop, locks, {.ttl = 10s, .max_hold = 0ms}, body), "the refusal") ==
        errc::invalid_max_hold);
    CHECK_FALSE(ran);
}

} // namespace redlock::test
