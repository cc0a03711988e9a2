// SPDX-License-Identifier: BSL-1.0
// Tests of a body that runs under a lock: its result, its exceptions, and its cancellation behind every single step.
#include "simulation.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace redlock::test
{

namespace
{

/// Connections that don't answer are kept: no new ones come in their place.
config patient(const simulation& all)
{
    config with = all.options();
    with.dead_after = 1min;
    return with;
}

outcome_ptr begun(simulation& all, lock_manager& locks, job& body, keep_options with)
{
    const outcome_ptr work = all.with_lock(locks, "r", with, body);
    REQUIRE(all.run_until([&] { return body.held != nullptr; }, 1s));
    all.run_until_idle();
    return work;
}

void hang_all(simulation& all)
{
    for (const auto& each : all.masters())
    {
        each->hang();
    }
}

bool is_its_own(const std::exception_ptr& thrown)
{
    try
    {
        std::rethrow_exception(thrown);
    }
    catch (const std::runtime_error& error)
    {
        return error.what() == std::string{"mine"};
    }
    catch (...)
    {
        return false;
    }
}

} // namespace

TEST_CASE("what a body throws comes through unchanged, also after a loss, whatever the release says")
{
    const bool lost = GENERATE(false, true);
    const bool confirmed = GENERATE(true, false);
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    job body{.throws = std::make_exception_ptr(std::runtime_error{"mine"})};
    body.works = lost ? body.works : clock::duration{1s};
    const outcome_ptr work = begun(all, locks, body, {.ttl = 10s, .max_hold = 5s});
    all.run_for(100ms);
    if (!confirmed)
    {
        hang_all(all);
    }
    REQUIRE(all.finish(work));
    CHECK((body.cancelled_at != clock::time_point{}) == lost);
    REQUIRE(work->thrown);
    CHECK(is_its_own(work->thrown));
}

TEST_CASE("what a body returns comes through, also when its release can't be confirmed")
{
    const bool confirmed = GENERATE(true, false);
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    const auto body = [&all](redlock::lease&) -> asio::awaitable<std::string>
    {
        std::string result = "done";
        co_await all.pause(1s);
        co_return result;
    };
    std::exception_ptr thrown = std::make_exception_ptr(std::runtime_error{"mine"});
    std::string result;
    auto done = [&](std::exception_ptr what, std::string returned)
    {
        thrown = what;
        result = std::move(returned);
    };
    locks.async_with_lock("r", {.ttl = 10s, .max_hold = 5s}, body, done);
    all.run_for(900ms);
    if (!confirmed)
    {
        hang_all(all);
    }
    all.run_for(200ms);
    CHECK(!thrown);
    CHECK(result == "done");
    CHECK(all.run_until_no_keys(confirmed ? 0s : 10s));
}

TEST_CASE("a body that gives the lease back by itself goes on undisturbed")
{
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    bool ended = false;
    const auto body = [&](redlock::lease& held) -> asio::awaitable<void>
    {
        constexpr auto token = asio::as_tuple(asio::use_awaitable);
        co_await held.async_release(token);
        const bool undisturbed = co_await all.pause(1s);
        ended = undisturbed;
    };
    std::exception_ptr thrown;
    bool done = false;
    locks.async_with_lock(
        "r", {.ttl = 10s, .max_hold = 5s}, body,
        [&](std::exception_ptr what)
        {
            done = true;
            thrown = what;
        });
    REQUIRE(all.run_until([&] { return done; }, 2s));
    CHECK(ended);
    CHECK(!thrown);
}

TEST_CASE("a body that throws before it waits for anything has thrown, and holds nothing")
{
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    const bool in_coroutine = GENERATE(true, false);
    const auto work = [](redlock::lease&) -> asio::awaitable<void>
    {
        const bool always = true;
        if (always)
        {
            throw std::runtime_error{"mine"};
        }
        co_return;
    };
    const auto body = [&](redlock::lease& held)
    {
        if (!in_coroutine)
        {
            throw std::runtime_error{"mine"};
        }
        return work(held);
    };
    std::exception_ptr thrown;
    locks.async_with_lock(
        "r", {.ttl = 10s, .max_hold = 5s}, body, [&](std::exception_ptr what) { thrown = what; });
    CHECK_NOTHROW(all.run_for(1s));
    CHECK(all.keys() == 0);
    REQUIRE(thrown);
    CHECK(is_its_own(thrown));
}

TEST_CASE("a body that can't be cancelled ends with the loss, when it ends")
{
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    job body{.works = 30s, .deaf = true};
    const clock::time_point began = all.now();
    const outcome_ptr work = begun(all, locks, body, {.ttl = 10s, .max_hold = 5s});
    REQUIRE(all.finish(work));
    CHECK(body.cancelled_at == clock::time_point{});
    CHECK(body.ended_at == began + 30s + 200us);
    CHECK(work->error == errc::hold_limit_reached);
}

TEST_CASE("a body that ended just before the loss has not lost its lease")
{
    simulation all{3};
    lock_manager locks = all.make_connected_manager(patient(all));
    // The loss would come 10 s less the drift and the margin behind the first SET, which took 200 us.
    job body{.works = 10s - 102ms - 1s - 200us - 1us};
    const outcome_ptr work = begun(all, locks, body, {.ttl = 10s, .max_hold = no_limit});
    const outcome_ptr watch = all.wait_lost(*body.held);
    const clock::time_point lost_at = body.held->valid_until() - 1s;
    hang_all(all);
    REQUIRE(all.finish(work));
    CHECK(body.ended_at == lost_at - 1us);
    // The release was on its way when the loss would have been declared.
    CHECK(work->at == body.ended_at + 50ms);
    CHECK(!work->thrown);
    CHECK(watch->at == body.ended_at);
    CHECK(watch->error == errc::not_held);
    CHECK(!watch->why);
}

TEST_CASE("a body isn't begun under a lease that lapsed before it could be", "[scenario-1]")
{
    const bool later = GENERATE(false, true);
    std::size_t at = 0;
    for (bool more = true; more; ++at)
    {
        CAPTURE(later, at);
        simulation all{3};
        lock_manager locks = all.make_connected_manager();
        job body{.called_later = later};
        const outcome_ptr work = all.with_lock(locks, "r", {.ttl = 10s, .max_hold = no_limit}, body);
        for (std::size_t steps = 0; steps < at; ++steps)
        {
            REQUIRE(all.step());
        }
        more = body.starts == 0;
        all.world().jump(1h);
        all.run_for(1s);
        CHECK((body.starts == 0 || body.was_valid));
        CHECK((body.starts == 1 || work->error));
    }
    CHECK(at > 8);
}

TEST_CASE(
    "an operation with a body that is cancelled behind any step ends at once", "[scenario-21][scenario-22]")
{
    const bool taken = GENERATE(false, true);
    std::size_t at = 0;
    for (bool more = true; more; ++at)
    {
        CAPTURE(at);
        simulation all{3};
        lock_manager locks = all.make_manager();
        if (taken)
        {
            all.master(0).set("lock:r", "another", 1ms);
            all.master(1).set("lock:r", "another", 1ms);
        }
        job body{};
        const outcome_ptr work = all.with_lock(locks, "r", {.ttl = 60s, .max_hold = no_limit}, body);
        for (std::size_t steps = 0; steps < at; ++steps)
        {
            REQUIRE(all.step());
        }
        const clock::time_point cancelled_at = all.now();
        more = body.starts == 0;
        work->cancel.emit(asio::cancellation_type::terminal);
        CHECK(all.finish(work, 10ms));
        CHECK(work->error == asio::error::operation_aborted);
        CHECK((body.starts == 0 || body.cancelled_at == cancelled_at));
        CHECK(all.run_until_no_keys(2s));
    }
    CHECK(at > 30);
}

TEST_CASE("a body is cancelled when its manager goes, and may go with its execution context")
{
    const bool context = GENERATE(false, true);
    simulation all{3};
    std::optional<lock_manager> locks{all.make_connected_manager()};
    job body{.stops_in = 30s};
    const outcome_ptr work = begun(all, *locks, body, {.ttl = 10s, .max_hold = no_limit});
    const clock::time_point went = all.now();
    locks.reset();
    all.run_for(5s);
    CHECK(body.cancelled_at == went);
    CHECK_FALSE(work->done);
    if (context)
    {
        all.destroy_context();
        CHECK_FALSE(body.ended);
        return;
    }
    REQUIRE(all.finish(work));
    CHECK(body.ended_at == went + 30s);
    CHECK(work->error == asio::error::operation_aborted);
    for (const auto& each : all.masters())
    {
        CHECK(each->count("extend") == 0);
        CHECK(each->count("release") == 0);
    }
}

} // namespace redlock::test
