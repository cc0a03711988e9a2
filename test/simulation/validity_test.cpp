// SPDX-License-Identifier: BSL-1.0
// Tests of how long a lease is valid, on a clock that jumps when the machine sleeps or the process is stopped.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace redlock::test
{

namespace
{

/// Runs until the answers of a quorum have arrived in the process, and none of them has been read.
void run_until_answered(simulation& sim, clock::duration trip)
{
    const clock::time_point answered = sim.now() + trip;
    REQUIRE(sim.run_until([&] { return sim.now() == answered; }, trip));
}

} // namespace

TEST_CASE("the validity is the ttl less the elapsed time and the drift", "[scenario-14][scenario-15]")
{
    simulation sim{3};
    config options = sim.options();
    options.drift_factor = GENERATE(0.0, 0.01, 0.5);
    lock_manager locks = sim.make_connected_manager(options);
    const auto ttl = GENERATE(100ms, 10s, 24h);
    const auto slow = GENERATE(0us, 1234us);
    for (const auto& each : sim.masters())
    {
        each->network = {.there = slow, .back = 2 * slow};
    }
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = ttl});
    REQUIRE(sim.finish(got));
    REQUIRE(!got->error);
    const clock::duration drift =
        std::chrono::duration_cast<clock::duration>(ttl * options.drift_factor) + 2ms;
    CHECK(got->at - began == 3 * slow);
    CHECK(got->lease.valid_until() == began + ttl - drift);
    CHECK(got->lease.remaining() == ttl - 3 * slow - drift);
    CHECK(got->report.validity == ttl - 3 * slow - drift);
    // To the nanosecond, and while the key is still there.
    sim.run_until_idle();
    sim.world().jump(got->lease.valid_until() - 1ns - sim.now());
    CHECK(got->lease.valid());
    sim.world().jump(1ns);
    CHECK_FALSE(got->lease.valid());
    CHECK(got->lease.remaining() == 0ns);
    CHECK(sim.keys() == 3);
}

TEST_CASE("a lease is not valid at the first look after a sleep", "[scenario-13]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(got->lease.valid());
    sim.world().jump(9s);
    CHECK(got->lease.valid());
    sim.world().jump(1s);
    CHECK_FALSE(got->lease.valid());
    // It can't be extended either, because another client may have held the resource meanwhile.
    const outcome_ptr extended = sim.extend(got->lease, 10s);
    REQUIRE(sim.finish(extended));
    CHECK(extended->error == errc::lease_lost);
    CHECK_FALSE(got->lease.valid());
}

TEST_CASE("the time for which answers waited to be read reduces the validity", "[scenario-2]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    run_until_answered(sim, 200us);
    REQUIRE_FALSE(got->done);
    sim.world().jump(4s);
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    CHECK(got->lease.valid_until() == began + 10s - 102ms);
    CHECK(got->report.validity == 10s - 102ms - 4s - 200us);
}

TEST_CASE("a quorum that is counted after the ttl yields no lease", "[scenario-16][scenario-33]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 0ms});
    run_until_answered(sim, 200us);
    sim.world().jump(GENERATE(clock::duration{9898ms} - 200us, clock::duration{10s}, clock::duration{1h}));
    REQUIRE(sim.finish(got));
    CHECK(got->error);
    CHECK(!got->lease);
    CHECK(got->report.validity == 0ns);
    CHECK(sim.run_until_no_keys(1s));
    for (const auto& each : sim.masters())
    {
        CHECK(each->count("release") == 1);
    }
}

TEST_CASE("answers that leave no more than min_validity yield no lease", "[scenario-16]")
{
    simulation sim{3};
    config options = sim.options();
    options.node_timeout = 100ms;
    lock_manager locks = sim.make_connected_manager(options);
    for (const auto& each : sim.masters())
    {
        each->network = {.there = 90ms, .back = 0ms};
    }
    const clock::time_point began = sim.now();
    const bool kept = GENERATE(false, true);
    const outcome_ptr got =
        kept ? sim.acquire_kept(
                   locks, "stock", {.ttl = 1s, .max_hold = 1h, .wait = 0ms, .min_validity = 898ms})
             : sim.acquire(locks, "stock", {.ttl = 1s, .wait = 0ms, .min_validity = 898ms});
    REQUIRE(sim.finish(got));
    // 1000 − 90 − 12 ms of drift remain, which isn't more than min_validity.
    CHECK(got->error == errc::validity_exhausted);
    CHECK(got->at - began == 90ms);
    CHECK(got->report.count(vote::granted) >= 2);
    sim.run_until_idle();
    CHECK(sim.keys() == 0);
    for (const auto& each : sim.masters())
    {
        CHECK(each->count("release") == 1);
    }
}

TEST_CASE(
    "a quorum without enough validity is released on all masters, and the acquire continues", "[scenario-33]")
{
    simulation sim{3};
    config options = sim.options();
    options.node_timeout = 900ms;
    lock_manager locks = sim.make_connected_manager(options);
    for (const auto& each : sim.masters())
    {
        each->network = {.there = 800ms, .back = 0ms};
    }
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 1s, .min_validity = 200ms});
    sim.run_for(790ms);
    CHECK_FALSE(got->done);
    for (const auto& each : sim.masters())
    {
        each->network = {.there = 1ms, .back = 1ms};
    }
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    CHECK(got->report.rounds == 2);
    CHECK(got->report.validity > 200ms);
    CHECK(sim.master(0).count("release") == 1);
}

} // namespace redlock::test
