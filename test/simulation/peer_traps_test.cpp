// SPDX-License-Identifier: BSL-1.0
// Traps into which the queues of other lock libraries fell. The tags name their issues: redisson-1104 is
// https://github.com/redisson/redisson/issues/1104.
#include "simulation.hpp"
#include "waiting_clients.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

/// The longest interval between two questions of the first client in the queue.
constexpr clock::duration heartbeat = 300ms;

/// Releases the lease, and returns the time until this client has acquired the resource.
clock::duration hand_over(simulation& sim, lease& from, const outcome_ptr& to)
{
    const clock::time_point began = sim.now();
    const outcome_ptr released = sim.release(from);
    REQUIRE(sim.finish(to, 2s));
    REQUIRE(!to->error);
    return to->at - began;
}

} // namespace

TEST_CASE(
    "dead clients in the queue delay none of those after them",
    "[queue][redisson-1104][redisson-1353][redisson-4595]")
{
    simulation sim{5};
    waiting_clients with{sim, 9, sim.options()};
    // The first, the last, and some in the middle; they are gone without a command.
    for (const std::size_t dead : {8U, 5U, 4U, 2U, 0U})
    {
        with.managers.erase(with.managers.begin() + static_cast<std::ptrdiff_t>(dead));
        with.waits.erase(with.waits.begin() + static_cast<std::ptrdiff_t>(dead));
    }
    sim.run_for(10ms);
    lease held = std::move(with.held);
    for (const outcome_ptr& next : with.waits)
    {
        CHECK(hand_over(sim, held, next) == 2 * trip);
        held = std::move(next->lease);
    }
}

TEST_CASE("clients that try and give up again and again move no other client back", "[queue][redisson-2099]")
{
    simulation sim{5};
    waiting_clients with{sim, 2, sim.options()};
    std::vector<std::size_t> ahead;
    config observed = sim.options();
    observed.observer.on_event = [&](const event& what)
    {
        if (const auto* queued = std::get_if<acquire_queued>(&what))
        {
            ahead.push_back(queued->position.ahead);
        }
    };
    lock_manager third = sim.make_connected_manager(observed);
    const outcome_ptr waits = sim.acquire(third, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(5ms);
    lock_manager restless = sim.make_connected_manager();
    for (int times = 0; times < 100; ++times)
    {
        const outcome_ptr gives_up = sim.acquire(restless, "stock", {.ttl = 60s, .wait = 20ms});
        REQUIRE(sim.finish(gives_up));
        REQUIRE(gives_up->error);
    }
    CHECK(ahead == std::vector<std::size_t>{2});
    with.waits.push_back(waits);
    lease held = std::move(with.held);
    for (const outcome_ptr& next : with.waits)
    {
        CHECK(hand_over(sim, held, next) == 2 * trip);
        held = std::move(next->lease);
    }
}

TEST_CASE("a living client keeps its position for as long as it waits", "[queue][redisson-3004]")
{
    simulation sim{3};
    waiting_clients with{sim, 3, sim.options(), 1h};
    sim.run_for(10min);
    lease held = std::move(with.held);
    for (const outcome_ptr& next : with.waits)
    {
        CHECK(hand_over(sim, held, next) == 2 * trip);
        held = std::move(next->lease);
        sim.run_for(1min);
    }
}

TEST_CASE(
    "a release at any moment while a client enters the queue is not missed",
    "[queue][redisson-3018][redisson-4744][redisson-5070]")
{
    simulation sim{5};
    // Before its first SETs arrive, up to the refusal of its question.
    const auto after = 25us * GENERATE(range(0, 50));
    lock_manager holder = sim.make_connected_manager();
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(held));
    const outcome_ptr waits = sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(after);
    const outcome_ptr released = sim.release(held->lease);
    REQUIRE(sim.finish(waits, 10ms));
    CHECK(!waits->error);
}

TEST_CASE("a release wakes one of many waiting clients", "[queue][redisson-763][consul-7523]")
{
    constexpr std::size_t many = 20;
    simulation sim{5};
    waiting_clients with{sim, many, sim.options()};
    sim_master& queue_master = queue_master_of(sim, "stock");
    lease held = std::move(with.held);
    for (const outcome_ptr& next : with.waits)
    {
        queue_master.forget_log();
        CHECK(hand_over(sim, held, next) == 2 * trip);
        // Heartbeats of the others may fall into this time, but not of many.
        CHECK(queue_master.count("ask") <= 2);
        held = std::move(next->lease);
    }
}

TEST_CASE("a subscription that fails causes no busy loop", "[queue][rueidis-602]")
{
    simulation sim{3};
    config options = sim.options();
    const bool closes = GENERATE(false, true);
    for (const auto& each : sim.masters())
    {
        each->answer(
            "SUBSCRIBE",
            closes ? scripted_answer{.closes = true}
                   : scripted_answer{.bytes = "-NOPERM this user has no permissions to access one of the "
                                              "channels\r\n"},
            10'000);
    }
    lock_manager holder = sim.make_manager(options);
    lock_manager locks = sim.make_manager(options);
    sim.run_for(1s);
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 60s, .wait = 100ms});
    const outcome_ptr waits = sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(1s);
    for (const auto& each : sim.masters())
    {
        each->forget_log();
    }
    sim.run_for(10s);
    CHECK(held->done);
    // Both managers, at each master: a reconnect every 0.2 s, or one poll of the first client every 25 ms.
    CHECK(sim.count("SUBSCRIBE") <= 2 * 3 * 50);
    CHECK(sim.count("ask") <= 500);
    CHECK(sim.count("SET") <= 500);
}

TEST_CASE("a lock that expires is passed on to the first waiting client at once", "[queue][redisson-3730]")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    lock_manager others = sim.make_connected_manager();
    // The holder has died. Not a multiple of the heartbeat.
    for (const auto& each : sim.masters())
    {
        each->set("lock:stock", "a dead client's", 1130ms);
    }
    const clock::time_point expires = sim.now() + 1130ms;
    const outcome_ptr first = sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(5ms);
    const outcome_ptr second = sim.acquire(others, "stock", {.ttl = 60s, .wait = no_limit});
    REQUIRE(sim.finish(first, 2s));
    CHECK(!first->error);
    CHECK(first->at - expires <= 3ms + 2 * trip);
    CHECK(hand_over(sim, first->lease, second) == 2 * trip);
}

TEST_CASE("a lock that is flushed is acquired within a heartbeat", "[queue][redisson-3829]")
{
    simulation sim{5};
    waiting_clients with{sim, 3, sim.options()};
    sim.run_for(1s);
    for (const auto& each : sim.masters())
    {
        each->flush_all();
    }
    const auto granted = [&]
    {
        return std::any_of(
            with.waits.begin(), with.waits.end(), [](const outcome_ptr& each) { return each->done; });
    };
    CHECK(sim.run_until(granted, heartbeat + 2 * trip));
}

} // namespace redlock::test
