// SPDX-License-Identifier: BSL-1.0
// Guarded mode on real masters: tokens, the commands on the wire, and the wait queue.
#include "integration/guarded_masters.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// g++ doesn't match the operator new of an awaitable's promise with its operator delete.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

asio::awaitable<std::uint64_t> token_in_coroutine(lock_manager& locks)
{
    lease held = co_await locks.async_acquire("stock", long_ttl, asio::use_awaitable);
    const std::uint64_t token = held.fencing_token().value_or(0);
    co_await held.async_release(asio::use_awaitable);
    co_return token;
}

std::uint64_t token_by_callback(lock_manager& locks)
{
    std::promise<std::uint64_t> promise;
    std::future<std::uint64_t> future = promise.get_future();
    locks.async_acquire(
        "stock", long_ttl,
        [&](error_code error, lease held)
        { promise.set_value(error ? 0 : held.fencing_token().value_or(0)); });
    return take(std::move(future), "an acquire with a callback"); // The lease was released by its destructor.
}

std::uint64_t token_by_future(lock_manager& locks)
{
    lease held = take(locks.async_acquire("stock", long_ttl, asio::use_future), "an acquire with a future");
    const std::uint64_t token = held.fencing_token().value_or(0);
    release(held);
    return token;
}

/// The tokens of clients that wait for a resource, in the order of their leases.
class token_order
{
  public:
    void add(const lease& held)
    {
        const std::lock_guard lock{mutex_};
        tokens_.push_back(held.fencing_token().value_or(0));
    }
    std::vector<std::uint64_t> tokens() const
    {
        const std::lock_guard lock{mutex_};
        return tokens_;
    }

  private:
    mutable std::mutex mutex_;
    std::vector<std::uint64_t> tokens_;
};

bool is_queued(const event_log& of)
{
    const std::vector<event> events = of.events();
    return std::any_of(
        events.begin(), events.end(),
        [](const event& each) { return std::holds_alternative<acquire_queued>(each); });
}

} // namespace

TEST_CASE("guarded: a lease is acquired, extended and released, and each has a larger token", "[threads]")
{
    guarded_masters masters{GENERATE(1U, 3U, 5U), long_ttl};
    client one{masters.options()};
    one.wait_for_masters();
    std::uint64_t last = 1000; // The floor.
    for (int time = 0; time < 20; ++time)
    {
        acquired got = one.acquire("stock", {.ttl = long_ttl / 2});
        INFO(got.report);
        REQUIRE(!got.error);
        const std::uint64_t token = got.lease.fencing_token().value();
        CHECK(token > last);
        CHECK(got.report.fencing_token == token);
        last = token;
        const clock::time_point valid_until = got.lease.valid_until();
        const finished extended = extend(got.lease, long_ttl);
        INFO(extended.report);
        CHECK(!extended.error);
        CHECK(got.lease.valid_until() > valid_until);
        CHECK(got.lease.fencing_token() == token);
        CHECK(one.try_acquire("stock", {.ttl = long_ttl}).error == errc::held_by_other);
        CHECK(!release(got.lease).error);
        CHECK(got.lease.fencing_token() == token);
    }
    const acquired refused = one.acquire("stock", {.ttl = long_ttl + 1ms});
    CHECK(refused.error == errc::invalid_ttl);
}

TEST_CASE("guarded: futures, coroutines and callbacks read the token of their lease", "[threads]")
{
    guarded_masters masters{3, long_ttl};
    client one{masters.options()};
    one.wait_for_masters();
    const std::uint64_t of_future = token_by_future(one.locks());
    const std::uint64_t of_coroutine = one.loop().run(token_in_coroutine(one.locks()));
    const std::uint64_t of_callback = token_by_callback(one.locks());
    const std::uint64_t last = token_by_future(one.locks());
    CHECK(of_future > 1000);
    CHECK(of_coroutine > of_future);
    CHECK(of_callback > of_coroutine);
    CHECK(last > of_callback);
}

TEST_CASE("guarded: a list or a group that isn't that of the masters is named, and needs no provisioning")
{
    guarded_masters masters{5, long_ttl};
    config options = masters.options();
    std::string detail = "its group has 5 masters, and this list 3";
    SECTION("a list that lacks two masters")
    {
        options.masters.erase(options.masters.begin() + 3, options.masters.end());
    }
    SECTION("another group")
    {
        options.guarded->group = "fedcba9876543210";
        detail = fmt::format("it belongs to group {}", guarded_masters::group);
    }
    client one{options};
    one.wait_for_masters();
    const acquired refused = one.acquire("stock", {.ttl = long_ttl, .max_rounds = 1});
    INFO(refused.report);
    CHECK(refused.error == errc::no_quorum);
    for (const master_report& each : refused.report.masters())
    {
        CHECK(each.reason == master_errc::other_group);
        CHECK(each.detail.view() == detail);
    }
}

TEST_CASE("guarded: an acquire without rivals is exactly one command to each master, and never a raise")
{
    constexpr int times = 10'000;
    guarded_masters masters{3, long_ttl};
    client one{masters.options()};
    one.wait_for_masters();
    redlock::lease warm = one.win("stock");
    REQUIRE(!release(warm).error);
    struct commands
    {
        long long evalsha, eval, set, hset;
    };
    const auto counted = [](server& at)
    {
        return commands{
            calls_of(at, "evalsha"), calls_of(at, "eval"), calls_of(at, "set"), calls_of(at, "hset")};
    };
    std::vector<commands> before;
    for (server& each : masters.servers())
    {
        // After the last command of the warm-up.
        REQUIRE(goes_away(each, "lock:stock"));
        before.push_back(counted(each));
    }
    for (int time = 0; time < times; ++time)
    {
        redlock::lease held = one.win("stock");
        CHECK(!release(held).error);
    }
    for (std::size_t master = 0; master < masters.size(); ++master)
    {
        server& at = masters.at(master);
        const commands& from = before[master];
        // Each lease is one command that grants, and one that releases.
        CHECK(comes_true(at, [&] { return calls_of(at, "evalsha") >= from.evalsha + 2 * times; }));
        const commands now = counted(at);
        CHECK(now.evalsha == from.evalsha + 2 * times);
        CHECK(now.eval == from.eval);
        // By the script that grants, and not by a raise.
        CHECK(now.set == from.set + times);
        CHECK(now.hset == from.hset + times);
    }
}

TEST_CASE("guarded: clients of several managers that wait in the queue get rising tokens", "[threads]")
{
    constexpr std::size_t waiters = 4;
    guarded_masters masters{3, long_ttl};
    client first{masters.options()};
    first.wait_for_masters();
    redlock::lease held = first.win("stock");
    std::vector<std::unique_ptr<client>> clients;
    token_order order;
    order.add(held);
    std::vector<std::thread> waiting;
    std::atomic<std::size_t> served{0};
    for (std::size_t each = 0; each < waiters; ++each)
    {
        clients.push_back(std::make_unique<client>(masters.options()));
        waiting.emplace_back(
            [&, &own = *clients.back()]
            {
                acquired got = own.acquire("stock", {.ttl = long_ttl, .wait = patience});
                if (!got.error)
                {
                    order.add(got.lease);
                    ++served;
                }
                release(got.lease);
            });
    }
    const auto all_queued = [&]
    {
        return std::all_of(
            clients.begin(), clients.end(), [](const auto& each) { return is_queued(each->events()); });
    };
    CHECK(comes_true(masters.at(0), all_queued));
    release(held);
    for (std::thread& each : waiting)
    {
        each.join();
    }
    CHECK(served == waiters);
    const std::vector<std::uint64_t> tokens = order.tokens();
    CHECK(std::is_sorted(tokens.begin(), tokens.end(), std::less_equal<>{}));
}

} // namespace redlock::test
