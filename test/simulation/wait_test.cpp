// SPDX-License-Identifier: BSL-1.0
// Tests of what `wait` promises: when an acquire ends at the latest, and that it ends with the right error.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace redlock::test
{

TEST_CASE("a held lock is never reported as no_quorum", "[acquire][scenario-98]")
{
    constexpr std::size_t tries = 500; // Of each of twenty: ten thousand.
    simulation sim{5, static_cast<std::uint64_t>(GENERATE(range(1, 21)))};
    lock_manager locks = sim.make_connected_manager();
    for (const auto& each : sim.masters())
    {
        each->network = {.there = 1ms, .back = 1ms, .jitter = 4ms};
        each->set("lock:stock", "another");
    }
    const std::size_t dead = 1 + sim.world().random_below(2);
    for (std::size_t index = 0; index < dead; ++index)
    {
        sim_master& one = sim.master(sim.world().random_below(5));
        const bool hangs = sim.world().random_below(2) == 0;
        one.door = hangs ? entrance::silent : entrance::refuses;
        one.break_connections();
    }
    sim.run_for(100ms);
    std::size_t wrong = 0;
    for (std::size_t each = 0; each < tries; ++each)
    {
        const std::chrono::milliseconds wait{sim.world().random_below(60)};
        const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = wait});
        REQUIRE(sim.finish(got));
        wrong += got->error == errc::held_by_other ? 0U : 1U;
    }
    CHECK(wrong == 0);
}

TEST_CASE("an acquire ends with its wait and one node timeout at the latest", "[acquire][scenario-98]")
{
    constexpr auto node_timeout = 700ms;
    simulation sim{3, static_cast<std::uint64_t>(GENERATE(range(1, 21)))};
    config options = sim.options();
    options.node_timeout = node_timeout;
    lock_manager holder = sim.make_connected_manager();
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 600s});
    REQUIRE(sim.finish(held));
    lock_manager locks = sim.make_manager(options);
    SECTION("masters that are slow")
    {
        REQUIRE(sim.finish(sim.try_acquire(locks, "another", {.ttl = 60s})));
        for (const auto& each : sim.masters())
        {
            each->network = {.there = 200ms, .back = 200ms, .jitter = 100ms};
        }
    }
    SECTION("masters that are slow from the start")
    {
        for (const auto& each : sim.masters())
        {
            each->network = {.there = 200ms, .back = 200ms, .jitter = 100ms};
        }
    }
    SECTION("masters that hang occasionally")
    {
        REQUIRE(sim.finish(sim.try_acquire(locks, "another", {.ttl = 60s})));
        for (const auto& each : sim.masters())
        {
            sim_master& one = *each;
            const std::chrono::milliseconds pause{sim.world().random_below(3000)};
            sim.world().at(sim.now() + pause, event_kind::timer, [&one] { one.hang(); });
            sim.world().at(sim.now() + pause + 900ms, event_kind::timer, [&one] { one.resume(); });
        }
    }
    SECTION("masters that are silent")
    {
        for (const auto& each : sim.masters())
        {
            each->door = entrance::silent;
        }
    }
    for (const bool known_to_be_wanted : {false, true})
    {
        CAPTURE(known_to_be_wanted);
        const std::chrono::milliseconds wait{sim.world().random_below(3000)};
        const clock::time_point began = sim.now();
        const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = wait});
        REQUIRE(sim.finish(got));
        CHECK(got->error);
        CHECK(got->at - began <= wait + node_timeout);
    }
    for (const auto& each : sim.masters())
    {
        each->resume();
        each->door = entrance::open;
        each->network = {};
    }
}

TEST_CASE("the first round does not wait for masters that refused the connection", "[acquire][scenario-56]")
{
    simulation sim{5};
    const std::size_t refusing = GENERATE(3U, 4U, 5U);
    for (std::size_t index = 0; index < refusing; ++index)
    {
        sim.master(index).door = entrance::refuses;
    }
    for (std::size_t index = refusing; index < 5; ++index)
    {
        sim.master(index).door = entrance::silent;
    }
    lock_manager locks = sim.make_manager();
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    CHECK(got->at - began < 10ms);
    CHECK(got->report.masters()[0].reason == asio::error::connection_refused);
}

TEST_CASE(
    "a master that connects after a quorum doesn't prolong the wait for others", "[acquire][scenario-56]")
{
    simulation sim{5};
    sim.master(3).network = {.there = 4ms, .back = 0ms}; // Several round trips until it is connected.
    sim.master(4).door = entrance::silent;
    lock_manager locks = sim.make_manager();
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    CHECK(got->report.masters()[3].vote != vote::unsent);
    // The node timeout, counted from the quorum, and a few round trips.
    CHECK(got->at - began >= 50ms);
    CHECK(got->at - began < 54ms);
}

TEST_CASE(
    "an acquire whose wait ends between two readings of the clock is refused with a reason",
    "[acquire][queue]")
{
    constexpr auto wait = 20ms;
    simulation sim{5};
    // Others were seen to wait, so that the first round waits for a grant.
    const bool known = GENERATE(true, false);
    lock_manager holder = sim.make_connected_manager();
    const auto outside = std::make_shared<virtual_environment>(sim.environment().shared_world(), 1);
    for (std::size_t index = 0; index < sim.masters().size(); ++index)
    {
        outside->put(host_of(index), sim.master(index));
    }
    lock_manager locks = sim.make_manager(sim.options(), outside);
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(held));
    const outcome_ptr other = known ? sim.acquire(locks, "stock", {.ttl = 60s, .wait = 1h}) : outcome_ptr{};
    sim.run_for(100ms);
    if (GENERATE(true, false))
    {
        // From now on there is no queue master, and the acquire backs off.
        for (const auto& each : sim.masters())
        {
            each->refuse("ask", "-NOPERM this user has no permissions to run the 'zadd' command\r\n");
        }
    }
    for (std::size_t reading = 1; reading <= 40; ++reading)
    {
        CAPTURE(reading);
        const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = wait});
        outside->jump_at_reading(reading, wait);
        REQUIRE(sim.finish(got));
        CHECK(got->error == errc::held_by_other);
        CHECK(got->report.rounds >= 1);
        sim.run_for(100ms);
    }
}

} // namespace redlock::test
