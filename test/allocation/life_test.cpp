// SPDX-License-Identifier: BSL-1.0
// Failed allocations in the life of a manager with simulated masters. docs/errors.md says what has to happen.
#include "allocation/fallible_run.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch_test_macros.hpp>

#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <utility>
#include <variant>

namespace redlock::test
{

namespace
{

constexpr acquire_options ten_seconds{.ttl = 10s};

/// A manager that is connected to all masters.
class subject
{
  public:
    explicit subject(std::size_t max_operations = 1, observer to = {})
    {
        // Asio creates it at its first use, by pthread_once, which no exception may leave.
        [[maybe_unused]] const asio::execution_context& first =
            asio::query(asio::system_executor{}, asio::execution::context);
        config options = sim.options();
        options.max_operations = max_operations; // An operation that stays counted is noticed by the next.
        options.observer = std::move(to);
        locks.emplace(sim.make_connected_manager(options));
    }

    /// Ends the scenario: no handler is lost, no key is left, and nothing else.
    void shut_down()
    {
        outcome_ptr shut;
        call([&] { shut = sim.shut_down(*locks); });
        finish(sim, shut);
        expect(!shut->error, "a shutdown has failed");
        expect(sim.keys() == 0, "a key is left");
        expect(sim.environment().streams() == 0, "a connection is left");
    }

    simulation sim{3};
    std::optional<lock_manager> locks;
};

error_code code_of(const std::exception_ptr& thrown)
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
    catch (const std::bad_alloc&)
    {
        expect(has_failed(), "bad_alloc without a failed allocation");
    }
    return {};
}

/// Returns the exception with which it ended. Cancels it when `until` is true. Asio's coroutines may let bad_alloc leave
/// run(); nothing may be lost by that either.
template <class Body>
std::exception_ptr
run_with_lock(subject& with, time_limit max_hold, const Body& body, const bool* until = nullptr)
{
    allow_escape();
    const keep_options options{.ttl = 10s, .max_hold = max_hold};
    bool done = false;
    std::exception_ptr thrown;
    asio::cancellation_signal cancel;
    const auto ended = [&](std::exception_ptr why)
    {
        done = true;
        thrown = std::move(why);
    };
    call(
        [&] {
            with.locks->async_with_lock(
                "stock", options, body, asio::bind_cancellation_slot(cancel.slot(), ended));
        });
    if (until != nullptr)
    {
        expect(run(with.sim, [&] { return *until || done; }), "no body and no handler");
        in_background([&] { cancel.emit(asio::cancellation_type::terminal); });
    }
    expect(run(with.sim, [&] { return done; }), "a handler was lost");
    expect(with.sim.run_until_no_keys(), "a key is left");
    return thrown;
}

/// The failures in calls are reported, those in handlers end the program. Asio crashes when it creates a strand and
/// has no memory for the second or third allocation (strand_executor_service::create_implementation in Boost 1.81).
void check(const endings& seen, int crashes = 0)
{
    CHECK(seen.crashed <= crashes);
    CHECK(seen.reported > 0);
    CHECK(seen.terminated > 0);
}

} // namespace

TEST_CASE("no failed allocation loses a handler: acquire, extend, release, shutdown", "[allocation]")
{
    check(fail_each_allocation(
        []
        {
            subject with;
            outcome_ptr won;
            call([&] { won = with.sim.acquire(*with.locks, "stock", ten_seconds); });
            finish(with.sim, won);
            expect(won->lease.valid(), "a free resource wasn't acquired");
            outcome_ptr extended;
            call([&] { extended = with.sim.extend(won->lease, 20s); });
            finish(with.sim, extended);
            expect(!extended->error, "an extension has failed");
            outcome_ptr released;
            call([&] { released = with.sim.release(won->lease); });
            finish(with.sim, released);
            expect(!released->error, "a release has failed");
            with.shut_down();
        }));
}

TEST_CASE("failed allocations while the first connections are established", "[allocation]")
{
    const endings seen = fail_each_allocation(
        []
        {
            simulation sim{3};
            const lock_manager locks = sim.make_manager(sim.options());
            expect(run(sim, [&] { return connected(sim); }), "a master isn't connected");
        });
    CHECK(seen.terminated > 0);
    CHECK(seen.reported == 0);
    CHECK(seen.crashed == 0);
}

TEST_CASE("a manager whose construction fails leaves nothing behind", "[allocation]")
{
    const endings seen = fail_each_allocation(
        []
        {
            simulation sim{3};
            std::optional<lock_manager> locks;
            const bool created = call_once([&] { locks.emplace(sim.make_manager(sim.options())); });
            // Nothing may connect in its name.
            sim.run_for(created ? 0s : 1min);
            expect(created || sim.environment().streams() == 0, "a connection without a manager");
            expect(created || sim.environment().alarms() == 0, "an alarm without a manager");
        });
    CHECK(seen.reported > 0);
    CHECK(seen.terminated == 0);
    CHECK(seen.coped_with == 0);
    CHECK(seen.crashed == 0);
}

TEST_CASE("failed allocations under with_lock lose no handler and leave no key", "[allocation]")
{
    const endings seen = fail_each_allocation(
        []
        {
            subject with{3};
            const auto extends = [](lease& held) -> asio::awaitable<void>
            {
                const asio::use_awaitable_t<> token{};
                co_await held.async_extend(20s, token);
            };
            const std::exception_ptr thrown = run_with_lock(with, no_limit, extends);
            expect(has_failed() || !thrown, "a body has failed");
            with.shut_down();
        });
    check(seen, 2);
}

TEST_CASE("failed allocations under with_lock: a loss and a cancellation reach the body", "[allocation]")
{
    const endings seen = fail_each_allocation(
        []
        {
            subject with{3};
            bool began = false;
            const auto waits = [&began](lease& held) -> asio::awaitable<void>
            {
                began = true;
                const asio::use_awaitable_t<> token{};
                co_await held.async_wait_lost(token);
            };
            std::exception_ptr thrown = run_with_lock(with, 5s, waits);
            expect(code_of(thrown) == errc::hold_limit_reached || has_failed(), "the limit wasn't noticed");
            began = false;
            thrown = run_with_lock(with, no_limit, waits, &began);
            expect(code_of(thrown) == asio::error::operation_aborted || has_failed(), "it wasn't cancelled");
            with.shut_down();
        });
    check(seen, 4);
}

TEST_CASE("failed allocations in a failed acquire and in its exception", "[allocation]")
{
    check(fail_each_allocation(
        []
        {
            subject with;
            for (const auto& each : with.sim.masters())
            {
                each->set("lock:stock", "of another client", 1h);
            }
            bool done = false;
            std::exception_ptr thrown;
            const auto handler = [&](std::exception_ptr why, const lease&)
            {
                done = true;
                thrown = std::move(why);
            };
            call([&] { with.locks->async_try_acquire("stock", {.ttl = 10s}, with_report(handler)); });
            expect(run(with.sim, [&] { return done; }), "a handler was lost");
            expect(thrown != nullptr, "a lock of another client was acquired");
            outcome_ptr cancelled;
            call([&] { cancelled = with.sim.acquire(*with.locks, "stock", {.ttl = 10s, .wait = no_limit}); });
            run(with.sim, [&] { return with.sim.count("ask") > 0; });
            call([&] { cancelled->cancel.emit(asio::cancellation_type::all); });
            finish(with.sim, cancelled);
            expect(cancelled->error == asio::error::operation_aborted, "a cancellation was lost");
            for (const auto& each : with.sim.masters())
            {
                each->remove("lock:stock");
            }
            with.shut_down();
        }));
}

TEST_CASE("failed allocations with an observer lose no event", "[allocation]")
{
    check(fail_each_allocation(
        []
        {
            std::size_t released = 0;
            std::size_t up = 0;
            const auto count = [&](const event& what)
            {
                released += std::holds_alternative<lease_released>(what) ? 1U : 0U;
                up += std::holds_alternative<master_up>(what) ? 1U : 0U;
            };
            subject with{1, {.on_event = count}};
            outcome_ptr won;
            call([&] { won = with.sim.acquire(*with.locks, "stock", ten_seconds); });
            finish(with.sim, won);
            outcome_ptr done;
            call([&] { done = with.sim.release(won->lease); });
            finish(with.sim, done);
            with.shut_down();
            run(with.sim, [&] { return released == 1; });
            expect(released == 1 && up == 3, "an event was lost");
        }));
}

TEST_CASE("failed allocations while connections break and are established again", "[allocation]")
{
    check(fail_each_allocation(
        []
        {
            subject with;
            outcome_ptr won;
            call([&] { won = with.sim.acquire(*with.locks, "stock", ten_seconds); });
            finish(with.sim, won);
            for (const auto& each : with.sim.masters())
            {
                each->break_connections();
                each->forget_log();
            }
            expect(run(with.sim, [&] { return connected(with.sim); }), "a master isn't connected again");
            outcome_ptr done;
            call([&] { done = with.sim.release(won->lease); });
            finish(with.sim, done);
            with.shut_down();
        }));
}

TEST_CASE("a lease that is destroyed while memory is short is released", "[allocation]")
{
    const endings seen = fail_each_allocation(
        []
        {
            subject with{2};
            const keep_options options{.ttl = 10s, .max_hold = no_limit};
            const outcome_ptr kept = with.sim.acquire_kept(*with.locks, "kept", options);
            with.sim.finish(kept);
            // The destructor reports nothing, so it has to cope with the failure.
            expect(call_once([&] { kept->lease = {}; }), "a destructor has thrown");
            expect(with.sim.run_until_no_keys(10min), "a destroyed lease is kept for ever");
        });
    CHECK(seen.coped_with > 0);
    CHECK(seen.crashed == 0);
}

TEST_CASE("a lease whose release couldn't begin is still held, and released when destroyed", "[allocation]")
{
    const endings seen = fail_each_allocation(
        []
        {
            subject with{2};
            const keep_options options{.ttl = 10s, .max_hold = no_limit};
            const outcome_ptr kept = with.sim.acquire_kept(*with.locks, "kept", options);
            with.sim.finish(kept);
            outcome_ptr released;
            if (!call_once([&] { released = with.sim.release(kept->lease); }))
            {
                expect(kept->lease.valid(), "a release that has not begun has ended the lease");
                kept->lease = {};
            }
            expect(with.sim.run_until_no_keys(10min), "a lease is kept for ever");
            expect(!released || released->done, "a handler was lost");
        });
    CHECK(seen.reported > 0);
}

TEST_CASE("a call that has no memory may destroy a handler that owns a lease", "[allocation]")
{
    check(fail_each_allocation(
        []
        {
            subject with;
            outcome_ptr won;
            outcome_ptr other;
            call([&] { won = with.sim.acquire(*with.locks, "stock", ten_seconds); });
            finish(with.sim, won);
            call([&] { other = with.sim.acquire(*with.locks, "other", ten_seconds); });
            finish(with.sim, other);
            bool ended = false;
            auto handler = [&ended, owned = std::move(other->lease)](error_code)
            { ended = !owned.owner_id().empty(); };
            // The lease that it owns is handed back to the manager by its destructor.
            if (call_once([&] { won->lease.async_extend(20s, std::move(handler)); }))
            {
                expect(run(with.sim, [&] { return ended; }), "a handler was lost");
            }
            with.shut_down();
        }));
}

TEST_CASE("a completion for another executor isn't lost for lack of memory", "[allocation]")
{
    check(fail_each_allocation(
        []
        {
            subject with;
            asio::io_context other;
            const auto strand = asio::make_strand(other);
            int called = 0;
            lease held;
            const auto acquired = [&](error_code, lease won)
            {
                ++called;
                held = std::move(won);
            };
            call([&]
                 { with.locks->async_acquire("stock", ten_seconds, asio::bind_executor(strand, acquired)); });
            expect(
                run(
                    with.sim, [&] { return called == 1; }, &other),
                "a handler was lost");
            const auto released = [&](error_code) { ++called; };
            call([&] { held.async_release(asio::bind_executor(strand, released)); });
            expect(
                run(
                    with.sim, [&] { return called == 2; }, &other),
                "a handler was lost");
            with.shut_down();
        }));
}

} // namespace redlock::test
