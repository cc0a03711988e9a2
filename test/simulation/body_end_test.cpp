// SPDX-License-Identifier: BSL-1.0
// Tests of a body whose lease ends: by its loss, by the body, or with the manager.
#include "bodies.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace redlock::test
{

namespace
{

/// Returns the code of a `system_error`; empty for success.
error_code error_in(const std::exception_ptr& thrown)
{
    try
    {
        if (thrown)
        {
            std::rethrow_exception(thrown);
        }
    }
    catch (const system_error& error)
    {
        return error.code();
    }
    return {};
}

} // namespace

TEST_CASE("a lease that is lost before its body could begin ends with the reason", "[scenario-96]")
{
    const error_code why = GENERATE(
        make_error_code(errc::lease_lost), make_error_code(errc::hold_limit_reached),
        make_error_code(errc::closed));
    const bool released = GENERATE(false, true);
    CAPTURE(why, released);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager(sim.patient_options());
    // The handler's executor is busy with something else.
    asio::io_context busy;
    bool ran = false;
    const auto body = [&](redlock::lease&) -> asio::awaitable<void>
    {
        ran = true;
        co_return;
    };
    std::optional<error_code> error;
    auto done = [&](std::exception_ptr thrown) { error = error_in(thrown); };
    const auto limit = why == errc::hold_limit_reached ? time_limit{2s} : time_limit{no_limit};
    locks.async_with_lock("stock", {.ttl = 10s, .max_hold = limit}, body, asio::bind_executor(busy, done));
    REQUIRE(sim.run_until([&] { return sim.keys() == 3; }, 1s));
    sim.run_for(1s);
    if (why == errc::lease_lost)
    {
        hang_all(sim);
    }
    const outcome_ptr shutdown = why == errc::closed ? sim.shut_down(locks) : nullptr;
    // A shutdown releases a lease that is still held at the end of its validity.
    sim.run_for(released ? 30s : 5s);
    if (why == errc::lease_lost && !released)
    {
        // The process was stopped: the loss is found by its deadline and by the clock at once.
        sim.world().jump(1h);
    }
    for (int turn = 0; turn < 100 && !error; ++turn)
    {
        busy.restart();
        busy.poll();
        sim.run_for(100ms);
    }
    CHECK(error == why);
    CHECK_FALSE(ran);
}

TEST_CASE("a shutdown waits for the body of a lease that was lost before")
{
    const bool by_masters = GENERATE(false, true);
    CAPTURE(by_masters);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    job what{.stops_in = 1s};
    const time_limit max_hold = by_masters ? time_limit{no_limit} : time_limit{3s};
    const outcome_ptr under = sim.with_lock(locks, "stock", {.ttl = 10s, .max_hold = max_hold}, what);
    if (by_masters)
    {
        sim.run_for(100ms);
        sim.master(0).remove("lock:stock");
        sim.master(1).remove("lock:stock");
    }
    REQUIRE(sim.run_until([&] { return what.cancelled_at != clock::time_point{}; }, 5s));
    const outcome_ptr down = sim.shut_down(locks);
    sim.run_for(500ms);
    CHECK_FALSE(what.ended);
    CHECK(sim.keys() == (by_masters ? 1 : 3));
    REQUIRE(sim.finish(down));
    CHECK_FALSE(down->error);
    CHECK(what.ended);
    CHECK(under->error == (by_masters ? errc::lease_lost : errc::hold_limit_reached));
    CHECK(down->at - what.ended_at <= 10ms);
    CHECK(sim.keys() == 0);
}

TEST_CASE("a shutdown that waits for a body can be cancelled at once, and continues", "[shutdown]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    job what{.stops_in = 5s};
    const outcome_ptr under = sim.with_lock(locks, "stock", {.ttl = 10s, .max_hold = no_limit}, what);
    sim.run_for(1s);
    const outcome_ptr down = sim.shut_down(locks);
    sim.run_for(1s);
    REQUIRE_FALSE(down->done);
    REQUIRE_FALSE(what.ended);
    down->cancel.emit(boost::asio::cancellation_type::terminal);
    sim.run_for(1us);
    REQUIRE(down->done);
    CHECK(down->error == boost::asio::error::operation_aborted);
    CHECK_FALSE(what.ended);
    CHECK(sim.keys() == 3);
    REQUIRE(sim.finish(under));
    CHECK(under->error == errc::closed);
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a shutdown keeps the keys of a disowned lease for its longest extension")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    job what{.stops_in = 20s};
    const outcome_ptr under = sim.with_lock(locks, "stock", {.ttl = 10s, .max_hold = no_limit}, what);
    sim.run_for(100ms);
    const outcome_ptr longer = sim.extend(*what.held, 60s);
    REQUIRE(sim.finish(longer));
    REQUIRE(!longer->error);
    sim.run_for(5s); // It was extended for 10 s since.
    REQUIRE(sim.count("extend") == 6);
    sim.master(0).remove("lock:stock");
    sim.master(1).remove("lock:stock");
    REQUIRE(sim.run_until([&] { return what.cancelled_at != clock::time_point{}; }, 5s));
    const outcome_ptr down = sim.shut_down(locks);
    sim.run_for(19s);
    CHECK_FALSE(what.ended);
    CHECK(sim.keys() == 1);
    REQUIRE(sim.finish(down));
    CHECK_FALSE(down->error);
    CHECK(what.ended);
    CHECK(under->error == errc::lease_lost);
    CHECK(sim.keys() == 0);
}

TEST_CASE("a body that notices the end of its lease before its cancellation ends with the reason")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const auto body = [&](redlock::lease& held) -> asio::awaitable<void>
    {
        bool goes_on = true;
        while (held.valid() && goes_on)
        {
            goes_on = co_await sim.pause(100us);
        }
    };
    std::optional<error_code> error;
    locks.async_with_lock(
        "stock", {.ttl = 10s, .max_hold = 5s}, body,
        [&](std::exception_ptr thrown) { error = error_in(thrown); });
    sim.run_for(7s);
    CHECK(error == errc::hold_limit_reached);
}

TEST_CASE("the text of a lost lease contains the votes of the last extension that failed")
{
    simulation sim{3};
    const bool observed = GENERATE(false, true);
    CAPTURE(observed);
    config options = sim.options();
    if (observed)
    {
        options.observer.on_event = [](const event&) {};
    }
    lock_manager locks = sim.make_connected_manager(options);
    std::string text;
    auto done = [&](std::exception_ptr thrown)
    {
        try
        {
            std::rethrow_exception(thrown);
        }
        catch (const lock_error& error)
        {
            text = error.what();
        }
    };
    lease* mine = nullptr;
    const auto body = [&](lease& of_lock) -> asio::awaitable<void>
    {
        mine = &of_lock;
        asio::steady_timer never{co_await asio::this_coro::executor, clock::duration::max()};
        co_await never.async_wait(asio::use_awaitable);
    };
    const std::string lost = make_error_code(errc::lease_lost).message();
    const auto hold = [&](time_limit longest)
    {
        locks.async_with_lock("stock", {.ttl = 500ms, .max_hold = longest}, body, done);
        sim.run_for(100ms);
        REQUIRE(sim.keys() == 3);
    };
    const auto contains = [&](std::string_view words) { return text.find(words) != std::string::npos; };

    SECTION("of masters that hang, and one that refuses")
    {
        hold(no_limit);
        sim.master(0).hang();
        sim.master(1).refuse("extend", "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
        REQUIRE(sim.run_until([&] { return !text.empty(); }, 1s));
        CAPTURE(text);
        CHECK(text.starts_with("stock: extend: lease lost (" + lost + "): 1 extended"));
        CHECK(contains("redis://10.0.0.1:6379: pending"));
        CHECK(contains("redis://10.0.0.2:6379: failed"));
        CHECK(contains("OOM command not allowed"));
    }
    SECTION("of masters that lost the key")
    {
        hold(no_limit);
        sim.master(1).remove("lock:stock");
        sim.master(2).set("lock:stock", "another", 1s);
        REQUIRE(sim.run_until([&] { return !text.empty(); }, 1s));
        CAPTURE(text);
        CHECK(text.starts_with("stock: extend: lease lost (" + lost + "): 1 extended, 2 not ours"));
        CHECK(contains("redis://10.0.0.2:6379: not ours"));
        CHECK(contains("redis://10.0.0.3:6379: not ours"));
    }
    SECTION("of masters that lost the key, while a later extension is pending")
    {
        hold(no_limit);
        sim.master(1).remove("lock:stock");
        sim.master(2).remove("lock:stock");
        for (const auto& each : sim.masters())
        {
            each->network = {.there = 20ms, .back = 20ms};
            each->forget_log();
        }
        REQUIRE(sim.run_until([&] { return sim.master(1).count("extend") == 1; }, 1s));
        mine->async_extend(500ms, [](error_code) {});
        REQUIRE(sim.run_until([&] { return !text.empty(); }, 1s));
        CAPTURE(text);
        CHECK(contains("1 extended, 2 not ours"));
    }
    SECTION("but not of one that fails after a later one succeeded")
    {
        hold(no_limit);
        sim.master(1).answer("extend", {.bytes = "-BUSY Redis is busy running a script.\r\n"});
        sim.master(2).hang();
        sim.master(1).forget_log();
        REQUIRE(sim.run_until([&] { return sim.master(1).count("extend") == 1; }, 1s));
        bool extended = false;
        mine->async_extend(500ms, [&](error_code error) { extended = !error; });
        sim.run_for(60ms); // A node timeout has passed.
        CHECK(extended);
        sim.world().jump(1h);
        REQUIRE(sim.run_until([&] { return !text.empty(); }, 1s));
        CHECK(text == "stock: " + lost);
    }
    SECTION("of masters that all refuse")
    {
        hold(no_limit);
        for (const auto& each : sim.masters())
        {
            each->refuse("extend", "-BUSY Redis is busy running a script.\r\n");
        }
        REQUIRE(sim.run_until([&] { return !text.empty(); }, 1s));
        CAPTURE(text);
        CHECK(text.starts_with("stock: " + lost + "\nextend: no quorum ("));
        CHECK(contains("redis://10.0.0.2:6379: failed"));

        // The next lease has a report of its own.
        for (const auto& each : sim.masters())
        {
            each->answer_as_usual();
        }
        sim.run_for(1s);
        text.clear();
        hold(no_limit);
        sim.world().jump(1h);
        REQUIRE(sim.run_until([&] { return !text.empty(); }, 1s));
        CHECK(text == "stock: " + lost);
    }
    SECTION("but not of one before the end of the hold")
    {
        hold(300ms);
        for (const auto& each : sim.masters())
        {
            each->refuse("extend", "-BUSY Redis is busy running a script.\r\n");
        }
        REQUIRE(sim.run_until([&] { return !text.empty(); }, 1s));
        CHECK(sim.master(0).count("extend") > 0);
        CHECK(text == "stock: " + make_error_code(errc::hold_limit_reached).message());
    }
    SECTION("but not of one before a success, after a pause of the process")
    {
        hold(no_limit);
        for (const auto& each : sim.masters())
        {
            each->answer("extend", {.bytes = "-BUSY Redis is busy running a script.\r\n"});
        }
        sim.run_for(400ms);
        sim.world().jump(1h);
        REQUIRE(sim.run_until([&] { return !text.empty(); }, 1s));
        CHECK(text == "stock: " + lost);
    }
}

TEST_CASE("a body that releases its lease is not cancelled")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    bool ended = false;
    const auto body = [&](redlock::lease& held) -> asio::awaitable<void>
    {
        constexpr auto token = asio::as_tuple(asio::use_awaitable);
        co_await held.async_release(token);
        const bool undisturbed = co_await sim.pause(1s);
        ended = undisturbed;
    };
    std::exception_ptr thrown;
    bool done = false;
    locks.async_with_lock(
        "stock", {.ttl = 10s, .max_hold = 5s}, body,
        [&](std::exception_ptr what)
        {
            done = true;
            thrown = what;
        });
    REQUIRE(sim.run_until([&] { return done; }, 2s));
    CHECK(ended);
    CHECK(!thrown);
}

TEST_CASE("a body may move its lease away, which ends the operation and not the lease")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const keep_options with{.ttl = 10s, .max_hold = no_limit};
    lease stored;
    const auto storing = [&](lease& held) -> asio::awaitable<void>
    {
        const int nothing = 0;
        stored = std::move(held);
        co_return static_cast<void>(nothing);
    };
    bool done = false;
    std::exception_ptr problem;
    auto ended = [&](std::exception_ptr thrown)
    {
        done = true;
        problem = std::move(thrown);
    };
    SECTION("into an object of the caller")
    {
        locks.async_with_lock("stock", with, storing, ended);
    }
    SECTION("in exchange for another one")
    {
        const outcome_ptr other = sim.acquire(locks, "other", {.ttl = 1h});
        REQUIRE(sim.finish(other));
        stored = std::move(other->lease);
        if (GENERATE(true, false))
        {
            const outcome_ptr released = sim.release(stored);
            REQUIRE(sim.finish(released));
        }
        const auto exchanging = [&](lease& held) -> asio::awaitable<void>
        {
            const int nothing = 0;
            std::swap(held, stored);
            co_return static_cast<void>(nothing);
        };
        locks.async_with_lock("stock", with, exchanging, ended);
    }
    SECTION("as the result")
    {
        const auto returning = [](lease& held) -> asio::awaitable<lease>
        {
            lease mine = std::move(held);
            co_return mine;
        };
        auto ended_with = [&](std::exception_ptr thrown, lease result)
        {
            stored = std::move(result);
            ended(std::move(thrown));
        };
        locks.async_with_lock("stock", with, returning, std::move(ended_with));
    }
    REQUIRE(sim.run_until([&] { return done; }, 1s));
    CHECK(!problem);
    // The lease is still extended.
    sim.run_for(1min);
    CHECK(stored.valid());
}

TEST_CASE("an operation whose body can't be cancelled reports the loss when the body ends")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    job body{.works = 30s, .ignores_cancellation = true};
    const clock::time_point began = sim.now();
    const outcome_ptr work = begun(sim, locks, body, {.ttl = 10s, .max_hold = 5s});
    REQUIRE(sim.finish(work));
    CHECK(body.cancelled_at == clock::time_point{});
    CHECK(body.ended_at == began + 30s + 200us);
    CHECK(work->error == errc::hold_limit_reached);
}

TEST_CASE("a body that ended just before the loss completes without an error")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager(sim.patient_options());
    // The loss would be declared 10 s, less the drift and the margin, after the first SET, which took 200 us.
    job body{.works = 10s - 102ms - 1s - 200us - 1us};
    const outcome_ptr work = begun(sim, locks, body, {.ttl = 10s, .max_hold = no_limit});
    const outcome_ptr watch = sim.wait_lost(*body.held);
    const clock::time_point lost_at = body.held->valid_until() - 1s;
    hang_all(sim);
    REQUIRE(sim.finish(work));
    CHECK(body.ended_at == lost_at - 1us);
    // The release was in flight when the loss would have been declared.
    CHECK(work->at == body.ended_at + 50ms);
    CHECK(!work->thrown);
    CHECK(watch->at == body.ended_at);
    CHECK(watch->error == errc::not_held);
    CHECK(!watch->why);
}

TEST_CASE("a body isn't started under a lease that expired before it could begin", "[scenario-1]")
{
    const bool later = GENERATE(false, true);
    std::size_t at = 0;
    for (bool more = true; more; ++at)
    {
        CAPTURE(later, at);
        simulation sim{3};
        lock_manager locks = sim.make_connected_manager();
        job body{.called_later = later};
        const outcome_ptr work = sim.with_lock(locks, "stock", {.ttl = 10s, .max_hold = no_limit}, body);
        for (std::size_t steps = 0; steps < at; ++steps)
        {
            REQUIRE(sim.step());
        }
        more = body.starts == 0;
        sim.world().jump(1h);
        sim.run_for(1s);
        CHECK((body.starts == 0 || body.was_valid));
        CHECK((body.starts == 1 || work->error));
    }
    CHECK(at > 8);
}

TEST_CASE(
    "an operation with a body that is cancelled after any step ends at once", "[scenario-21][scenario-22]")
{
    const bool taken = GENERATE(false, true);
    std::size_t at = 0;
    for (bool more = true; more; ++at)
    {
        CAPTURE(at);
        simulation sim{3};
        lock_manager locks = sim.make_manager();
        if (taken)
        {
            sim.master(0).set("lock:stock", "another", 1ms);
            sim.master(1).set("lock:stock", "another", 1ms);
        }
        job body{};
        const outcome_ptr work = sim.with_lock(locks, "stock", {.ttl = 60s, .max_hold = no_limit}, body);
        for (std::size_t steps = 0; steps < at; ++steps)
        {
            REQUIRE(sim.step());
        }
        const clock::time_point cancelled_at = sim.now();
        more = body.starts == 0;
        work->cancel.emit(asio::cancellation_type::terminal);
        CHECK(sim.finish(work, 10ms));
        CHECK(work->error == asio::error::operation_aborted);
        CHECK((body.starts == 0 || body.cancelled_at == cancelled_at));
        CHECK(sim.run_until_no_keys(2s));
    }
    CHECK(at > 30);
}

TEST_CASE("a body is cancelled when its manager is destroyed, and may be destroyed with its context")
{
    const bool context = GENERATE(false, true);
    simulation sim{3};
    std::optional<lock_manager> locks{sim.make_connected_manager()};
    job body{.stops_in = 30s};
    const outcome_ptr work = begun(sim, *locks, body, {.ttl = 10s, .max_hold = no_limit});
    const clock::time_point went = sim.now();
    locks.reset();
    sim.run_for(5s);
    CHECK(body.cancelled_at == went);
    CHECK_FALSE(work->done);
    if (context)
    {
        sim.destroy_context();
        CHECK_FALSE(body.ended);
        return;
    }
    REQUIRE(sim.finish(work));
    CHECK(body.ended_at == went + 30s);
    CHECK(work->error == asio::error::operation_aborted);
    for (const auto& each : sim.masters())
    {
        CHECK(each->count("extend") == 0);
        CHECK(each->count("release") == 0);
    }
}

} // namespace redlock::test
