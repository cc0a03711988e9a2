// SPDX-License-Identifier: BSL-1.0
// Tests of a body that runs under a lock: its result, its exceptions, and its cancellation after each step.
#include "simulation.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace redlock::test
{

namespace
{

/// Connections that don't answer are kept, not replaced.
config patient(const simulation& sim)
{
    config with = sim.options();
    with.response_timeout = 1min;
    return with;
}

outcome_ptr begun(simulation& sim, lock_manager& locks, job& body, keep_options with)
{
    const outcome_ptr work = sim.with_lock(locks, "stock", with, body);
    REQUIRE(sim.run_until([&] { return body.held != nullptr; }, 1s));
    sim.run_until_idle();
    return work;
}

void hang_all(simulation& sim)
{
    for (const auto& each : sim.masters())
    {
        each->hang();
    }
}

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

struct allocations
{
    std::size_t made = 0;
    std::size_t freed = 0;
};

/// Allocates from the heap, and counts allocations.
template <class T>
struct counting_allocator
{
    using value_type = T;
    explicit counting_allocator(allocations& of) : counted{&of} {}
    template <class Other>
    counting_allocator(const counting_allocator<Other>& other) : counted{other.counted}
    {
    }

    T* allocate(std::size_t count)
    {
        ++counted->made;
        return std::allocator<T>{}.allocate(count);
    }
    void deallocate(T* pointer, std::size_t count)
    {
        ++counted->freed;
        std::allocator<T>{}.deallocate(pointer, count);
    }
    template <class Other>
    bool operator==(const counting_allocator<Other>& other) const
    {
        return counted == other.counted;
    }

    allocations* counted;
};

/// A result type with as few operations as possible.
struct ticket
{
    explicit ticket(int value) : number{std::make_unique<int>(value)} {}

    std::unique_ptr<int> number;
};

} // namespace

TEST_CASE("an exception of a body is passed on unchanged, even after a loss or a failed release")
{
    const bool lost = GENERATE(false, true);
    const bool confirmed = GENERATE(true, false);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    job body{.throws = std::make_exception_ptr(std::runtime_error{"mine"})};
    body.works = lost ? body.works : clock::duration{1s};
    const outcome_ptr work = begun(sim, locks, body, {.ttl = 10s, .max_hold = 5s});
    sim.run_for(100ms);
    if (!confirmed)
    {
        hang_all(sim);
    }
    REQUIRE(sim.finish(work));
    CHECK((body.cancelled_at != clock::time_point{}) == lost);
    REQUIRE(work->thrown);
    CHECK(is_its_own(work->thrown));
}

TEST_CASE("the result of a body is passed on, even if the release can't be confirmed")
{
    const bool confirmed = GENERATE(true, false);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const auto body = [&sim](redlock::lease&) -> asio::awaitable<std::string>
    {
        std::string result = "done";
        co_await sim.pause(1s);
        co_return result;
    };
    std::exception_ptr thrown = std::make_exception_ptr(std::runtime_error{"mine"});
    std::string result;
    auto done = [&](std::exception_ptr what, std::string returned)
    {
        thrown = what;
        result = std::move(returned);
    };
    locks.async_with_lock("stock", {.ttl = 10s, .max_hold = 5s}, body, done);
    sim.run_for(900ms);
    if (!confirmed)
    {
        hang_all(sim);
    }
    sim.run_for(200ms);
    CHECK(!thrown);
    CHECK(result == "done");
    CHECK(sim.run_until_no_keys(confirmed ? 0s : 10s));
}

TEST_CASE("a body may return a type without copy and default constructor, and take no argument")
{
    const bool held_by_other = GENERATE(false, true);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    if (held_by_other)
    {
        sim.master(0).set("lock:stock", "another", 1h);
        sim.master(1).set("lock:stock", "another", 1h);
    }
    const auto body = []() -> asio::awaitable<ticket>
    {
        ticket result{42};
        co_return result;
    };
    std::exception_ptr thrown;
    std::optional<ticket> result;
    auto done = [&](std::exception_ptr what, std::optional<ticket> returned)
    {
        thrown = what;
        result = std::move(returned);
    };
    locks.async_with_lock("stock", {.ttl = 10s, .max_hold = 5s, .max_rounds = 1}, body, done);
    sim.run_for(1s);
    CHECK(!thrown == !held_by_other);
    REQUIRE(result.has_value() == !held_by_other);
    CHECK((held_by_other || *result->number == 42));
}

TEST_CASE("a body without a token gives its result to the coroutine that awaits it")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const auto body = [](redlock::lease& held) -> asio::awaitable<std::string>
    {
        std::string result{held.resource()};
        co_return result;
    };
    const auto ticket_body = []() -> asio::awaitable<ticket>
    {
        ticket result{42};
        co_return result;
    };
    std::string resource;
    std::optional<ticket> number;
    const auto run = [&]() -> asio::awaitable<void>
    {
        resource = co_await locks.async_with_lock("stock", {.ttl = 10s, .max_hold = 5s}, body);
        number = co_await locks.async_with_lock("s", {.ttl = 10s, .max_hold = 5s}, ticket_body);
    };
    bool done = false;
    auto ended = [&](std::exception_ptr thrown) { done = !thrown; };
    asio::awaitable<void> running = run();
    asio::co_spawn(locks.get_executor(), std::move(running), ended);
    REQUIRE(sim.run_until([&] { return done; }, 1s));
    CHECK(resource == "stock");
    CHECK(*number.value().number == 42);
}

TEST_CASE("an operation with a body has its memory from its handler's allocator, and returns it before it is "
          "called")
{
    const bool held_by_other = GENERATE(false, true);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    if (held_by_other)
    {
        sim.master(0).set("lock:stock", "another", 1h);
        sim.master(1).set("lock:stock", "another", 1h);
    }
    allocations counted;
    bool done = false;
    std::size_t left = 0;
    auto handler = [&](std::exception_ptr)
    {
        done = true;
        left = counted.made - counted.freed;
    };
    const auto body = [&](redlock::lease&) -> asio::awaitable<void> { co_await sim.pause(1s); };
    // The signal may outlive the operation and its memory.
    asio::cancellation_signal cancel;
    const keep_options with{.ttl = 10s, .max_hold = 5s, .max_rounds = 1};
    auto cancellable = asio::bind_cancellation_slot(cancel.slot(), std::move(handler));
    locks.async_with_lock(
        "stock", with, body,
        asio::bind_allocator(counting_allocator<void*>{counted}, std::move(cancellable)));
    REQUIRE(sim.run_until([&] { return done; }, 2s));
    // For the operation itself and the acquire; then for the loss and the release.
    CHECK(counted.made >= (held_by_other ? 2U : 4U));
    CHECK(left == 0);
    CHECK(counted.made == counted.freed);
    cancel.emit(asio::cancellation_type::terminal);
    CHECK_NOTHROW(sim.run_for(1s));
}

TEST_CASE("a lease that is lost before its body could begin ends with the reason", "[scenario-96]")
{
    const error_code why = GENERATE(
        make_error_code(errc::lease_lost), make_error_code(errc::hold_limit_reached),
        make_error_code(errc::closed));
    const bool released = GENERATE(false, true);
    CAPTURE(why, released);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager(patient(sim));
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

TEST_CASE("a body that throws before its first suspension releases its lease")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
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
        "stock", {.ttl = 10s, .max_hold = 5s}, body, [&](std::exception_ptr what) { thrown = what; });
    CHECK_NOTHROW(sim.run_for(1s));
    CHECK(sim.keys() == 0);
    REQUIRE(thrown);
    CHECK(is_its_own(thrown));
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
    lock_manager locks = sim.make_connected_manager(patient(sim));
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
