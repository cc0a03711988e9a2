// SPDX-License-Identifier: BSL-1.0
// Managers, io_contexts, leases and operations destroyed in every order; LeakSanitizer's findings count, too.
#include "integration/fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

using namespace redlock::test;
using namespace std::chrono_literals;
using redlock::errc;

namespace
{

/// Is at an arbitrary point of its loop when its io_context is destroyed.
asio::awaitable<void>
never_ends(redlock::lock_manager& locks, std::string resource, std::vector<redlock::lease>& kept)
{
    const redlock::acquire_options options{.ttl = long_ttl, .wait = redlock::no_limit};
    for (;;)
    {
        redlock::lease lease = co_await locks.async_acquire(resource, options);
        co_await lease.async_extend(2 * long_ttl);
        if (kept.size() < 5)
        {
            kept.push_back(std::move(lease));
            // Leases that are kept block the other coroutines for the rest of the test.
            continue;
        }
        co_await lease.async_release();
    }
}

/// Never resumed; only the test owns it.
asio::awaitable<void> not_started(redlock::lock_manager& locks)
{
    redlock::lease lease = co_await locks.async_acquire("stock", long_ttl);
    co_await lease.async_release();
}

} // namespace

TEST_CASE("operations in progress when their manager is destroyed end with operation_aborted")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease extended = own.win("a");
    redlock::lease released = own.win("b");
    for (server& each : servers)
    {
        REQUIRE(becomes(each, "lock:b", released.owner_id()));
        each.stop();
    }
    std::future<acquired> acquire = start_acquire(own.locks(), "c", {.ttl = long_ttl});
    std::future<finished> extend_it = start_extend(extended, 2 * long_ttl);
    std::future<finished> extend_it_again = start_extend(extended, 2 * long_ttl);
    std::future<finished> release_it = start_release(released);
    own.destroy_manager();
    CHECK(take(std::move(acquire), "the acquire").error == aborted);
    CHECK(take(std::move(extend_it), "the extension").error == aborted);
    CHECK(take(std::move(extend_it_again), "the second extension").error == aborted);
    CHECK(take(std::move(release_it), "the release").error == aborted);
    // The leases remain usable, without effect.
    CHECK(extend(extended, long_ttl).error == errc::closed);
    CHECK(release(extended).error == errc::closed);
    CHECK(extended.resource() == "a");
}

TEST_CASE("a shutdown in progress when its manager is destroyed ends with operation_aborted")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    const redlock::lease lease = own.win("stock");
    for (server& each : servers)
    {
        each.stop();
    }
    std::future<redlock::error_code> shutdown = start_shutdown(own.locks());
    own.destroy_manager();
    CHECK(take(std::move(shutdown), "the shutdown") == aborted);
}

TEST_CASE("a destroyed manager leaves its keys to their ttl, and its connections are closed")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    const redlock::lease lease = own.win("stock");
    REQUIRE(becomes(servers[0], "lock:stock", lease.owner_id()));
    own.destroy_manager();
    for (server& each : servers)
    {
        CHECK(comes_true(each, [&] { return info_number(each, "clients", "connected_clients") == 1; }));
    }
    CHECK(servers[0].command({"GET", "lock:stock"}) == lease.owner_id());
    CHECK(lease.valid());
}

TEST_CASE("many releases that were begun aren't lost with their manager", "[scenario-111]")
{
    constexpr std::size_t many = 700;
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    std::vector<redlock::lease> held;
    for (std::size_t number = 0; number < many; ++number)
    {
        held.push_back(own.win("stock-" + std::to_string(number)));
    }
    SECTION("dropped") {}
    SECTION("released")
    {
        for (redlock::lease& each : held)
        {
            each.async_release(asio::detached);
        }
    }
    held.clear();
    own.destroy_manager();
    for (server& each : servers)
    {
        CHECK(comes_true(each, [&] { return info_number(each, "clients", "connected_clients") == 1; }));
        CHECK(each.command({"DBSIZE"}) == 0);
    }
}

TEST_CASE("a manager works after a move, and move assignment destroys the previous one")
{
    std::vector<server> servers = start_servers(1);
    event_loop loop;
    redlock::lock_manager first{loop.context(), unhurried(servers)};
    redlock::lock_manager second{std::move(first)};
    redlock::lease lease = acquire(second, "stock", {.ttl = long_ttl}).lease;
    CHECK(lease.valid());
    redlock::lock_manager third{loop.context(), unhurried(servers)};
    redlock::lease other = acquire(third, "s", {.ttl = long_ttl}).lease;
    third = std::move(second);
    CHECK(release(other).error == errc::closed);
    CHECK_FALSE(release(lease).error);
    CHECK_FALSE(acquire(third, "stock", {.ttl = long_ttl}).error);
}

TEST_CASE("everything may outlive an io_context that was stopped with operations in progress")
{
    const bool manager_outlives = GENERATE(false, true);
    CAPTURE(manager_outlives);
    std::vector<server> servers = start_servers(3);
    std::vector<redlock::lease> kept;
    std::optional<asio::awaitable<void>> suspended;
    auto io = std::make_unique<asio::io_context>();
    auto locks = std::make_unique<redlock::lock_manager>(*io, unhurried(servers));
    suspended.emplace(not_started(*locks));
    auto deferred =
        locks->async_acquire("deferred", redlock::acquire_options{.ttl = long_ttl}, asio::deferred);
    redlock::lease lease;
    locks->async_acquire(
        "mine", long_ttl, [&](redlock::error_code, redlock::lease won) { lease = std::move(won); });
    for (int index = 0; index < 50; ++index)
    {
        asio::awaitable<void> one = never_ends(*locks, "stock" + std::to_string(index % 10), kept);
        asio::co_spawn(*io, std::move(one), asio::detached);
    }
    // The coroutines stop wherever they are.
    while ((!lease || kept.size() < 5) && io->run_one_for(patience) > 0)
    {
    }
    REQUIRE(lease);
    REQUIRE(kept.size() == 5);
    auto deferred_extension = lease.async_extend(2 * long_ttl);
    io->stop();
    if (!manager_outlives)
    {
        locks.reset();
    }
    io.reset();

    // Operations that are started now find the manager or its io_context destroyed.
    std::promise<redlock::error_code> acquired_late;
    std::move(deferred)([&](redlock::error_code error, redlock::lease) { acquired_late.set_value(error); });
    CHECK(take(acquired_late.get_future(), "an acquire without an io_context") == errc::closed);
    std::promise<redlock::error_code> extended_late;
    std::move(deferred_extension)([&](redlock::error_code error) { extended_late.set_value(error); });
    CHECK(take(extended_late.get_future(), "an extension without an io_context") == errc::closed);
    if (manager_outlives)
    {
        CHECK(acquire(*locks, "stock", {.ttl = long_ttl}).error == errc::closed);
        CHECK(shut_down(*locks) == errc::closed);
    }
    CHECK(release(lease).error == errc::closed);
    CHECK(lease.resource() == "mine");
    CHECK(lease.valid());
    kept.clear();
}

TEST_CASE("an io_context that never ran may be destroyed")
{
    server at;
    redlock::lease lease;
    redlock::report report;
    {
        asio::io_context io;
        redlock::lock_manager locks{io, unhurried({address_of(at)})};
        locks.async_acquire(
            "stock", long_ttl, report,
            [&](redlock::error_code, redlock::lease won) { lease = std::move(won); });
        locks.async_shutdown([](redlock::error_code) {});
    }
    CHECK_FALSE(lease);
}

TEST_CASE("leases may be destroyed on any thread while their io_context is destroyed", "[threads]")
{
    std::vector<server> servers = start_servers(1);
    for (int time = 0; time < 20; ++time)
    {
        std::vector<redlock::lease> leases;
        auto own = std::make_unique<client>(unhurried(servers), 2);
        for (int index = 0; index < 20; ++index)
        {
            leases.push_back(own->win(std::to_string(time) + "/" + std::to_string(index)));
        }
        std::promise<void> go;
        std::thread dropper{[&, start = go.get_future()]() mutable
                            {
                                start.wait();
                                while (!leases.empty())
                                {
                                    leases.pop_back();
                                }
                            }};
        go.set_value();
        own.reset();
        dropper.join();
        CHECK(leases.empty());
    }
}

TEST_CASE("each of the leases that threads destroy at the same time is released", "[threads]")
{
    constexpr std::size_t threads = 3;
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers), 2};
    own.wait_for_masters();
    for (std::size_t time = 0; time < 100; ++time)
    {
        std::array<std::vector<redlock::lease>, threads> held;
        for (std::size_t index = 0; index < 4 * threads; ++index)
        {
            held[index % threads].push_back(own.win(std::to_string(time) + "/" + std::to_string(index)));
        }
        std::vector<std::thread> droppers;
        for (std::vector<redlock::lease>& each : held)
        {
            droppers.emplace_back(
                [&each]
                {
                    while (!each.empty())
                    {
                        each.pop_back();
                        std::this_thread::yield();
                    }
                });
        }
        for (std::thread& each : droppers)
        {
            each.join();
        }
        // No later lease is destroyed, along with which one of these could be released.
        REQUIRE(comes_true(servers[0], [&] { return servers[0].command({"DBSIZE"}) == 0; }));
    }
}

TEST_CASE("a shutdown releases every lease before it ends")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    std::vector<redlock::lease> leases;
    for (int index = 0; index < 100; ++index)
    {
        leases.push_back(own.win("stock" + std::to_string(index)));
    }
    CHECK_FALSE(shut_down(own.locks()));
    for (server& each : servers)
    {
        CHECK(each.command({"DBSIZE"}) == 0);
    }
    for (redlock::lease& each : leases)
    {
        CHECK_FALSE(each.valid());
        CHECK_FALSE(each);
    }
    CHECK(release(leases[0]).error == errc::not_held);
    CHECK(extend(leases[0], long_ttl).error == errc::not_held);
}

TEST_CASE("after a shutdown every operation returns closed, a second shutdown too")
{
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers)};
    own.wait_for_masters();
    std::future<redlock::error_code> first = start_shutdown(own.locks());
    std::future<redlock::error_code> second = start_shutdown(own.locks());
    CHECK_FALSE(take(std::move(first), "the first shutdown"));
    CHECK(take(std::move(second), "the second shutdown") == errc::closed);
    CHECK(shut_down(own.locks()) == errc::closed);
    const acquired refused = own.acquire("stock", {.ttl = long_ttl});
    CHECK(refused.error == errc::closed);
    CHECK(refused.report.result == errc::closed);
    CHECK(own.try_acquire("stock", {.ttl = long_ttl}).error == errc::closed);
    CHECK(
        comes_true(servers[0], [&] { return info_number(servers[0], "clients", "connected_clients") == 1; }));
}

TEST_CASE("a shutdown ends operations in progress with closed, and releases what they had acquired")
{
    std::vector<server> servers = start_servers(3);
    for (server& each : servers)
    {
        REQUIRE(each.command({"SET", "lock:taken", "another client"}) == "OK");
    }
    client own{unhurried(servers)};
    own.wait_for_masters();
    std::vector<std::future<acquired>> waiting;
    for (int index = 0; index < 20; ++index)
    {
        waiting.push_back(start_acquire(own.locks(), "taken", {.ttl = long_ttl, .wait = redlock::no_limit}));
    }
    CHECK_FALSE(shut_down(own.locks()));
    for (std::future<acquired>& each : waiting)
    {
        CHECK(take(std::move(each), "an acquire").error == errc::closed);
    }
    for (server& each : servers)
    {
        CHECK(each.command({"GET", "lock:taken"}) == "another client");
        // The queue's key expires after the last client's slot, if an acquire came to ask for one.
        const bool has_queue = each.command({"EXISTS", "lock:taken:redlock-line"}) == 1;
        CHECK(each.command({"DBSIZE"}) == (has_queue ? 2 : 1));
    }
}

TEST_CASE("a shutdown ends even if masters are down or hang, and reports an unconfirmed release", "[patient]")
{
    const bool hang = GENERATE(false, true);
    const std::size_t missing = GENERATE(1U, 2U);
    CAPTURE(hang, missing);
    std::vector<server> servers = start_servers(3);
    redlock::config options = unhurried(servers);
    options.response_timeout = 500ms;
    options.probe_interval = 100ms;
    client own{options};
    own.wait_for_masters();
    acquired held = own.acquire("stock", {.ttl = long_ttl, .wait = redlock::no_limit});
    REQUIRE_FALSE(held.error);
    for (server& each : servers)
    {
        REQUIRE(becomes(each, "lock:stock", held.lease.owner_id()));
    }
    for (std::size_t index = 0; index < missing; ++index)
    {
        if (hang)
        {
            servers[index].stop();
        }
        else
        {
            servers[index].kill();
        }
    }
    const redlock::error_code ended = shut_down(own.locks());
    CHECK(ended == (missing == 1 ? redlock::error_code{} : redlock::error_code{errc::unconfirmed}));
    CHECK(servers[2].command({"EXISTS", "lock:stock"}) == 0);
    CHECK_FALSE(held.lease.valid());
}
