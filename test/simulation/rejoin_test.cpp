// SPDX-License-Identifier: BSL-1.0
// Tests of rejoining: a kept lease sets its key again on masters that were away or restarted empty.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <string>

namespace redlock::test
{

namespace
{

constexpr keep_options kept_on{.ttl = 10s, .max_hold = no_limit};

outcome_ptr kept_lease(simulation& sim, lock_manager& locks)
{
    const outcome_ptr got = sim.acquire_kept(locks, "stock", kept_on);
    REQUIRE(sim.finish(got));
    REQUIRE(!got->error);
    sim.run_until_idle();
    return got;
}

void leave(sim_master& master)
{
    master.door = entrance::refuses;
    master.restart("gone " + master.run_id, false);
}

void come_back_empty(sim_master& master)
{
    // Its run id is new, and no other master's.
    master.restart("after " + master.run_id, false);
    master.door = entrance::open;
}

/// Runs until one master has had a number of extensions, and everything that follows from them has happened.
void run_until_extended(simulation& sim, std::size_t times, std::size_t master = 0)
{
    REQUIRE(sim.run_until([&] { return sim.master(master).count("extend") == times; }, 1min));
    sim.run_until_idle();
}

} // namespace

TEST_CASE(
    "a master that was away at the acquire gets the key at the next extension, and counts", "[scenario-27]")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    leave(sim.master(3));
    leave(sim.master(4));
    sim.run_until_idle();
    const outcome_ptr got = kept_lease(sim, locks);
    CHECK(sim.keys() == 3);
    come_back_empty(sim.master(3));
    come_back_empty(sim.master(4));
    sim.run_for(1s);
    CHECK(sim.keys() == 3); // Not before a quorum has confirmed.
    run_until_extended(sim, 1);
    for (const std::size_t index : {3U, 4U})
    {
        const received& joined = sim.master(index).last("SET");
        CHECK(
            joined.words ==
            command{"SET", "lock:stock", std::string{got->lease.owner_id()}, "NX", "PX", "10000"});
        CHECK(joined.at > sim.master(index).last("extend").at);
        CHECK(sim.master(index).expiry("lock:stock") == whole_milliseconds(joined.at) + 10s);
    }
    // From now on the other masters may fail.
    leave(sim.master(0));
    leave(sim.master(1));
    sim.run_for(1min);
    CHECK(got->lease.valid());
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    CHECK(sim.master(3).count("release") == 1);
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a kept lease survives masters that restart empty one after the other", "[scenario-27]")
{
    const int seed = GENERATE(range(1, 4));
    simulation sim{5, static_cast<std::uint64_t>(seed)};
    lock_manager locks = sim.make_connected_manager();
    lock_manager others = sim.make_connected_manager();
    const outcome_ptr got = kept_lease(sim, locks);
    const outcome_ptr rival = sim.acquire(others, "stock", {.ttl = 10s, .wait = no_limit});
    for (std::size_t time = 0; time < 20; ++time)
    {
        sim_master& master = sim.master(time % 5);
        master.restart("run " + std::to_string(time), false);
        const auto is_back = [&] { return master.value("lock:stock") == got->lease.owner_id(); };
        REQUIRE(sim.run_until(is_back, 20s));
    }
    CHECK(got->lease.valid());
    CHECK_FALSE(rival->done);
    got->lease = {};
    REQUIRE(sim.finish(rival));
    CHECK(!rival->error);
}

TEST_CASE(
    "a rejoined key lasts as long as the validity of an earlier, longer extension",
    "[scenario-27][scenario-108]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = kept_lease(sim, locks);
    const auto longest = GENERATE(1s, 60s);
    const outcome_ptr extended = sim.extend(got->lease, longest);
    REQUIRE(sim.finish(extended));
    REQUIRE(!extended->error);
    for (const std::size_t index : {0U, 1U})
    {
        sim_master& master = sim.master(index);
        master.restart("run " + std::to_string(index), false);
        REQUIRE(sim.run_until([&] { return master.value("lock:stock") == got->lease.owner_id(); }, 20s));
        CHECK(master.expiry("lock:stock").value() >= got->lease.valid_until());
        CHECK(master.expiry("lock:stock").value() <= got->lease.valid_until() + longest / 50 + 1s);
    }
}

TEST_CASE("a rejoined key is released, even if that isn't possible at once", "[scenario-27]")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    leave(sim.master(4));
    sim.run_until_idle();
    const outcome_ptr got = kept_lease(sim, locks);
    come_back_empty(sim.master(4));
    run_until_extended(sim, 1);
    REQUIRE(sim.master(4).value("lock:stock") == got->lease.owner_id());
    sim.master(4).door = entrance::refuses;
    sim.master(4).break_connections();
    sim.run_until_idle();
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    sim.run_for(3s);
    CHECK(sim.master(4).count("release") == 0);
    sim.master(4).door = entrance::open;
    sim.run_for(1s);
    CHECK(sim.master(4).count("release") == 1);
    CHECK(sim.keys() == 0);
}

TEST_CASE("without a quorum no master gets the key", "[scenario-27]")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = kept_lease(sim, locks);
    const clock::time_point until = got->lease.valid_until();
    // Two say yes, two lost it, one doesn't answer.
    sim.master(0).remove("lock:stock");
    sim.master(1).remove("lock:stock");
    sim.master(2).hang();
    sim.run_until(until - 2s);
    CHECK(got->lease.valid());
    CHECK(sim.master(0).count("extend") > 3);
    CHECK(sim.count("SET") == 5);
    SECTION("nor after the loss")
    {
        sim.run_until(until - 1s);
        CHECK_FALSE(got->lease.valid());
        sim.master(2).resume();
        sim.run_for(1min);
        CHECK(sim.count("SET") == 5);
    }
    SECTION("nor after the release")
    {
        got->lease = {};
        sim.run_for(0ms);
        sim.master(2).resume();
        sim.run_for(1min);
        CHECK(sim.count("SET") == 5);
        CHECK(sim.keys() == 0);
    }
    SECTION("but after the quorum has returned")
    {
        sim.master(2).resume();
        sim.run_until(until - 1s);
        CHECK(sim.keys() == 5);
        CHECK(got->lease.valid());
    }
}

TEST_CASE("a master that reports after the loss or the release that it has no key gets none", "[scenario-27]")
{
    const bool is_released = GENERATE(false, true);
    simulation sim{3};
    config options = sim.options();
    options.response_timeout = 1min;
    lock_manager locks = sim.make_connected_manager(options);
    const outcome_ptr got = sim.acquire_kept(locks, "stock", {.ttl = 10s, .max_hold = 5s});
    REQUIRE(sim.finish(got));
    const outcome_ptr watch = sim.wait_lost(got->lease);
    sim.master(2).remove("lock:stock");
    sim.master(2).link().hold_replies();
    run_until_extended(sim, 1);
    if (is_released)
    {
        got->lease = {};
        sim.run_for(1s);
    }
    else
    {
        REQUIRE(sim.finish(watch));
    }
    CHECK(watch->done);
    sim.master(2).link().let_go_of_replies();
    sim.run_for(100ms);
    CHECK(sim.count("SET") == 3);
    CHECK(sim.keys() == (is_released ? 0 : 2));
}

TEST_CASE("another client's key on a minority is not changed", "[scenario-27]")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = kept_lease(sim, locks);
    sim.master(0).set("lock:stock", "a rival", 1min);
    sim.run_for(30s);
    CHECK(got->lease.valid());
    CHECK(sim.master(0).value("lock:stock") == "a rival");
    sim.run_for(40s); // The lease has expired.
    CHECK(sim.master(0).value("lock:stock") == got->lease.owner_id());
}

TEST_CASE("a master that forgot the scripts still keeps the key of a kept lease", "[scenario-49]")
{
    const std::size_t count = GENERATE(1U, 2U, 5U);
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = kept_lease(sim, locks);
    for (std::size_t index = 5 - count; index < 5; ++index)
    {
        // Also one whose answers come last, when the others have decided already.
        sim.master(index).flush_scripts();
        sim.master(index).network.back = 1ms;
    }
    sim.run_for(1min);
    CHECK(got->lease.valid());
    CHECK(sim.keys() == 5);
}

} // namespace redlock::test
