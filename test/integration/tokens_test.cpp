// SPDX-License-Identifier: BSL-1.0
// Completion tokens of every kind, from any thread, and the executors of their handlers.
#include "integration/fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

// g++ doesn't match the operator new of an awaitable's promise with its operator delete.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

using namespace redlock::test;
using redlock::errc;

namespace
{

/// The results of a coroutine, for the test to check.
struct token_uses
{
    std::vector<std::string> wrong;

    void expect(bool right, std::string what)
    {
        if (!right)
        {
            wrong.push_back(std::move(what));
        }
    }
};

asio::awaitable<token_uses> use_every_token_of_a_coroutine(redlock::lock_manager& locks)
{
    token_uses found;
    // The default token throws.
    redlock::lease lease = co_await locks.async_acquire("stock", long_ttl);
    found.expect(lease.valid(), "deferred");
    redlock::error_code code;
    std::string text;
    try
    {
        redlock::lease second = co_await locks.async_try_acquire("stock", long_ttl);
        found.expect(false, "a second lease");
    }
    catch (const redlock::lock_error& error)
    {
        code = error.code();
        text = error.what();
        found.expect(error.resource() == "stock", "the resource of an exception");
    }
    found.expect(code == errc::held_by_other, "the error of a deferred operation, thrown");
    found.expect(text.starts_with("stock: acquire: held by another"), "the result in: " + text);
    for (const std::string_view part : {"denied of 3; 2 needed; node timeout ", "denied after "})
    {
        found.expect(text.find(part) != std::string::npos, std::string{part} + " in: " + text);
    }

    // Errors as values.
    std::tuple<redlock::error_code, redlock::lease> refused =
        co_await locks.async_try_acquire("stock", long_ttl, asio::as_tuple(asio::use_awaitable));
    found.expect(std::get<0>(refused) == errc::held_by_other, "as_tuple(use_awaitable)");
    refused = co_await locks.async_try_acquire("stock", long_ttl, asio::as_tuple(asio::deferred));
    found.expect(std::get<0>(refused) == errc::held_by_other, "as_tuple(deferred)");
    redlock::error_code redirected;
    redlock::lease none = co_await locks.async_try_acquire(
        "stock", long_ttl, asio::redirect_error(asio::use_awaitable, redirected));
    found.expect(redirected == errc::held_by_other && !none, "redirect_error");

    // A report in addition to a token.
    redlock::report report;
    co_await lease.async_extend(2 * long_ttl, report, asio::use_awaitable);
    found.expect(
        report.operation == redlock::operation::extend && report.rounds == 1, "a report of an extension");
    co_await lease.async_release(report);
    found.expect(report.operation == redlock::operation::release && !report.result, "a report of a release");

    // Created now and started later.
    auto later = locks.async_acquire("stock", redlock::acquire_options{.ttl = long_ttl});
    lease = co_await std::move(later);
    found.expect(lease.valid(), "a deferred operation with a name");
    co_await lease.async_release();
    co_await locks.async_shutdown();
    co_return found;
}

} // namespace

TEST_CASE("coroutines can use every Asio token")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    const token_uses found = own.loop().run(use_every_token_of_a_coroutine(own.locks()));
    CHECK(found.wrong == std::vector<std::string>{});
    for (server& each : servers)
    {
        CHECK(goes_away(each, "lock:stock"));
    }
}

TEST_CASE("futures work on a thread other than the manager's", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease lease = take(own.locks().async_acquire("stock", long_ttl, asio::use_future), "an acquire");
    CHECK(lease.valid());
    take(lease.async_extend(2 * long_ttl, asio::use_future), "an extend");
    take(lease.async_release(asio::use_future), "a release");
    take(own.locks().async_shutdown(asio::use_future), "a shutdown");
    CHECK_FALSE(lease);
}

// Without [threads]: the reference count of an exception_ptr is in the standard library, which ThreadSanitizer doesn't
// instrument.
TEST_CASE("a future throws the error of its operation")
{
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers)};
    own.wait_for_masters();
    const redlock::lease lease = own.win("stock");
    std::future<redlock::lease> refused = own.locks().async_try_acquire("stock", long_ttl, asio::use_future);
    redlock::error_code code;
    try
    {
        static_cast<void>(take(std::move(refused), "a try_acquire"));
    }
    catch (const redlock::system_error& error)
    {
        code = error.code();
    }
    CHECK(code == errc::held_by_other);
}

// Without [threads] for the same reason.
TEST_CASE("with_report makes every token complete with an exception that has the report as its text")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    const redlock::lease lease = own.win("stock");
    redlock::report report;
    // Of the caller's own, filled as well.
    std::future<redlock::lease> refused =
        own.locks().async_try_acquire("stock", long_ttl, report, redlock::with_report(asio::use_future));
    std::string text;
    try
    {
        static_cast<void>(take(std::move(refused), "a try_acquire"));
    }
    catch (const redlock::lock_error& error)
    {
        text = error.what();
        CHECK(error.code() == errc::held_by_other);
    }
    CHECK(text == "stock: " + report.to_string());

    const auto invalid = std::make_shared<std::promise<std::exception_ptr>>();
    own.locks().async_acquire(
        "stock", redlock::acquire_options{.ttl = std::chrono::milliseconds{3}},
        redlock::with_report([invalid](std::exception_ptr thrown, const redlock::lease&)
                             { invalid->set_value(std::move(thrown)); }));
    const std::exception_ptr thrown = take(invalid->get_future(), "an acquire with an invalid ttl");
    REQUIRE(thrown);
    CHECK_THROWS_WITH(std::rethrow_exception(thrown), Catch::Matchers::ContainsSubstring("3 ms"));

    // A token with a name is used again, and a handler may be move-only.
    const auto named = redlock::with_report(asio::use_future);
    for (int time = 0; time < 2; ++time)
    {
        CHECK_THROWS_AS(
            take(own.locks().async_try_acquire("stock", long_ttl, named), "a named token"),
            redlock::lock_error);
    }
    auto calls = std::make_shared<std::promise<void>>();
    auto counted = redlock::with_report(
        [calls, count = std::make_shared<std::atomic<int>>(0)](std::exception_ptr, const redlock::lease&)
        {
            if (count->fetch_add(1) == 1)
            {
                calls->set_value();
            }
        });
    own.locks().async_try_acquire("stock", long_ttl, counted);
    own.locks().async_try_acquire("stock", long_ttl, counted);
    take(calls->get_future(), "two calls of a handler with a name");
    auto moved = std::make_unique<std::promise<void>>();
    std::future<void> done = moved->get_future();
    own.locks().async_try_acquire(
        "stock", long_ttl,
        redlock::with_report([moved = std::move(moved)](std::exception_ptr, const redlock::lease&)
                             { moved->set_value(); }));
    take(std::move(done), "a move-only handler");

    // Around another adapter: the cancellation reaches the acquire.
    asio::cancellation_signal stop;
    std::future<redlock::lease> waiting = own.locks().async_acquire(
        "stock", redlock::acquire_options{.ttl = long_ttl, .wait = redlock::no_limit},
        redlock::with_report(asio::bind_cancellation_slot(stop.slot(), asio::use_future)));
    asio::post(own.loop().context(), [&stop] { stop.emit(asio::cancellation_type::terminal); });
    try
    {
        static_cast<void>(take(std::move(waiting), "a cancelled acquire"));
        FAIL("cancelled without an exception");
    }
    catch (const redlock::lock_error& error)
    {
        CHECK(error.code() == asio::error::operation_aborted);
    }

    redlock::lease won = take(
        own.locks().async_acquire_kept(
            "s", {.ttl = long_ttl, .max_hold = long_ttl}, redlock::with_report(asio::use_future)),
        "a kept lease");
    CHECK(won.valid());
    won = {};
    CHECK_FALSE(shut_down(own.locks()));
    try
    {
        static_cast<void>(
            take(own.locks().async_acquire("t", long_ttl, redlock::with_report(asio::use_future)), "closed"));
    }
    catch (const redlock::lock_error& error)
    {
        CHECK(error.code() == errc::closed);
        text.clear();
    }
    CHECK(text.empty());
}

TEST_CASE("a detached operation is carried out")
{
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    lease.async_release(asio::detached);
    CHECK(goes_away(servers[0], "lock:stock"));
    // The lease is destroyed with the handler's arguments, and released at once.
    own.locks().async_acquire("s", long_ttl, asio::detached);
    CHECK(comes_true(
        servers[0], [&] { return info_number(servers[0], "commandstats", "cmdstat_evalsha") == 2; }));
    CHECK(servers[0].command({"EXISTS", "lock:s"}) == 0);
}

namespace
{

/// Acquires, extends and releases its own resource repeatedly.
asio::awaitable<void>
go_round(redlock::lock_manager& locks, std::string resource, int times, std::atomic<int>& done)
{
    for (int time = 0; time < times; ++time)
    {
        redlock::lease lease = co_await locks.async_acquire(resource, long_ttl);
        co_await lease.async_extend(2 * long_ttl);
        if (time % 2 == 0)
        {
            co_await lease.async_release();
        }
        done.fetch_add(lease.resource() == resource ? 1 : 0);
    }
}

} // namespace

TEST_CASE(
    "hundreds of concurrent operations work on a manager in an io_context with several threads", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers), 4};
    own.wait_for_masters();
    std::atomic<int> done{0};
    std::vector<std::future<void>> rounds;
    for (int index = 0; index < 300; ++index)
    {
        asio::awaitable<void> one = go_round(own.locks(), "stock" + std::to_string(index), 6, done);
        rounds.push_back(asio::co_spawn(own.loop().context(), std::move(one), asio::use_future));
    }
    for (std::future<void>& each : rounds)
    {
        take(std::move(each), "300 coroutines that go round");
    }
    CHECK(done == 300 * 6);
    CHECK_FALSE(shut_down(own.locks()));
    for (server& each : servers)
    {
        CHECK(each.command({"DBSIZE"}) == 0);
    }
}

TEST_CASE("operations are started, and leases destroyed, on many threads at once", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers), 2};
    own.wait_for_masters();
    std::atomic<int> won{0};
    std::vector<std::thread> threads;
    for (int index = 0; index < 4; ++index)
    {
        threads.emplace_back(
            [&, index]
            {
                for (int time = 0; time < 50; ++time)
                {
                    const std::string resource = "stock" + std::to_string(index) + "/" + std::to_string(time);
                    const acquired result = own.try_acquire(resource, {.ttl = long_ttl});
                    won.fetch_add(result.lease.valid() && result.lease.remaining().count() > 0 ? 1 : 0);
                }
            });
    }
    for (std::thread& each : threads)
    {
        each.join();
    }
    CHECK(won == 200);
    for (server& each : servers)
    {
        CHECK(comes_true(each, [&] { return each.command({"DBSIZE"}) == 0; }));
    }
}

TEST_CASE("the observers of a lease can be called on other threads while it is extended", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    std::atomic<bool> stop{false};
    std::atomic<int> invalid{0};
    std::thread watcher{[&, &seen = std::as_const(lease)]
                        {
                            while (!stop)
                            {
                                invalid.fetch_add(seen.valid() && seen.resource() == "stock" ? 0 : 1);
                            }
                        }};
    for (int time = 0; time < 100; ++time)
    {
        CHECK_FALSE(extend(lease, 2 * long_ttl).error);
    }
    stop = true;
    watcher.join();
    CHECK(invalid == 0);
}

TEST_CASE("handlers run on the executor they are bound to", "[threads]")
{
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers), 3};
    own.wait_for_masters();
    const auto strand = asio::make_strand(own.loop().context());
    std::promise<std::vector<bool>> promise;
    std::vector<bool> there;
    const auto look = [&] { there.push_back(strand.running_in_this_thread()); };
    auto lease = std::make_shared<redlock::lease>();
    // Each starts the next one on the strand.
    const auto on_shutdown = [&](redlock::error_code) { look(), promise.set_value(there); };
    const auto on_release = [&](redlock::error_code)
    { look(), own.locks().async_shutdown(asio::bind_executor(strand, on_shutdown)); };
    const auto on_extend = [&](redlock::error_code)
    { look(), lease->async_release(asio::bind_executor(strand, on_release)); };
    const auto on_acquire = [&](redlock::error_code, redlock::lease won)
    {
        look();
        *lease = std::move(won);
        lease->async_extend(2 * long_ttl, asio::bind_executor(strand, on_extend));
    };
    own.locks().async_acquire("stock", long_ttl, asio::bind_executor(strand, on_acquire));
    CHECK(take(promise.get_future(), "four operations in a row") == std::vector<bool>(4, true));
}

TEST_CASE("a handler never runs inside the call that starts its operation, whatever the result")
{
    server at;
    event_loop loop;
    redlock::lock_manager locks{loop.context(), unhurried({address_of(at)})};
    redlock::lock_manager closed{loop.context(), unhurried({address_of(at)})};
    CHECK_FALSE(shut_down(closed));
    redlock::lease lease = acquire(locks, "held", {.ttl = long_ttl}).lease;
    redlock::lease empty;
    const asio::any_completion_executor erased{loop.context().get_executor()};

    using on_lease = std::function<void(redlock::error_code, redlock::lease)>;
    using on_status = std::function<void(redlock::error_code)>;
    const std::vector<std::function<void(on_lease, on_status)>> starts{
        [&](on_lease then, on_status) { locks.async_acquire("stock", long_ttl, std::move(then)); },
        [&](on_lease then, on_status) { locks.async_acquire("", long_ttl, std::move(then)); },
        [&](on_lease then, on_status)
        { locks.async_try_acquire("stock", std::chrono::milliseconds{0}, std::move(then)); },
        [&](on_lease then, on_status) { closed.async_acquire("stock", long_ttl, std::move(then)); },
        [&](on_lease, on_status then) { closed.async_shutdown(std::move(then)); },
        [&](on_lease, on_status then) { lease.async_extend(std::chrono::milliseconds{0}, std::move(then)); },
        [&](on_lease, on_status then) { lease.async_extend(2 * long_ttl, std::move(then)); },
        [&](on_lease, on_status then) { lease.async_release(std::move(then)); },
        [&](on_lease, on_status then) { lease.async_release(std::move(then)); },
        [&](on_lease, on_status then)
        { empty.async_release(asio::bind_executor(loop.context(), std::move(then))); },
        [&](on_lease, on_status then)
        { empty.async_extend(long_ttl, asio::bind_executor(loop.context(), std::move(then))); },
        [&](on_lease, on_status then) { empty.async_release(asio::bind_executor(erased, std::move(then))); },
        [&](on_lease, on_status then)
        { closed.async_shutdown(asio::bind_executor(erased, std::move(then))); },
        [&](on_lease, on_status then) { locks.async_shutdown(std::move(then)); },
    };
    for (std::size_t index = 0; index < starts.size(); ++index)
    {
        CAPTURE(index);
        const auto starting = std::make_shared<std::atomic<bool>>(true);
        const auto inside = std::make_shared<std::promise<bool>>();
        const auto then = [=](redlock::error_code, const auto&...) { inside->set_value(*starting); };
        const auto start = [&, starting, then]
        {
            // On the manager's own thread, where a handler could run at once; the flag is cleared after the call.
            starts[index](
                [then](redlock::error_code error, redlock::lease won) { then(error, won); },
                [then](redlock::error_code error) { then(error); });
            *starting = false;
        };
        asio::post(loop.context(), start);
        CHECK_FALSE(take(inside->get_future(), "an operation"));
    }
}

TEST_CASE(
    "a handler bound to another io_context keeps that running until the handler has run there", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    asio::io_context other;
    std::vector<std::thread::id> ran_on;
    redlock::lease lease;
    // Each switches from its io_context to the manager's and back.
    const auto on_release = [&](redlock::error_code) { ran_on.push_back(std::this_thread::get_id()); };
    const auto on_acquire = [&](redlock::error_code, redlock::lease won)
    {
        ran_on.push_back(std::this_thread::get_id());
        lease = std::move(won);
        lease.async_release(asio::bind_executor(other, on_release));
    };
    own.locks().async_acquire("stock", long_ttl, asio::bind_executor(other, on_acquire));
    // There is no other work that keeps it running.
    other.run_for(patience);
    CHECK(ran_on == std::vector<std::thread::id>(2, std::this_thread::get_id()));
    CHECK_FALSE(lease);
}
