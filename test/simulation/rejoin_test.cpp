// SPDX-License-Identifier: BSL-1.0
// Tests of how a kept lease spreads again over masters that were away, or came back empty.
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

outcome_ptr kept(simulation& all, lock_manager& locks)
{
    const outcome_ptr got = all.acquire_kept(locks, "r", kept_on);
    REQUIRE(all.finish(got));
    REQUIRE(!got->error);
    all.run_until_idle();
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
void run_until_extended(simulation& all, std::size_t times, std::size_t master = 0)
{
    REQUIRE(all.run_until([&] { return all.master(master).count("extend") == times; }, 1min));
    all.run_until_idle();
}

std::size_t sets(simulation& all)
{
    std::size_t count = 0;
    for (const auto& each : all.masters())
    {
        count += each->count("SET");
    }
    return count;
}

} // namespace

TEST_CASE(
    "a master that was away at the acquire gets the key at the next extension, and counts", "[scenario-27]")
{
    simulation all{5};
    lock_manager locks = all.make_connected_manager();
    leave(all.master(3));
    leave(all.master(4));
    all.run_until_idle();
    const outcome_ptr got = kept(all, locks);
    CHECK(all.keys() == 3);
    come_back_empty(all.master(3));
    come_back_empty(all.master(4));
    all.run_for(1s);
    CHECK(all.keys() == 3); // Not before a quorum has confirmed.
    run_until_extended(all, 1);
    for (const std::size_t index : {3U, 4U})
    {
        const received& joined = all.master(index).last("SET");
        CHECK(
            joined.words ==
            command{"SET", "lock:r", std::string{got->lease.owner_id()}, "NX", "PX", "10000"});
        CHECK(joined.at > all.master(index).last("extend").at);
        CHECK(all.master(index).expiry("lock:r") == whole_milliseconds(joined.at) + 10s);
    }
    // From now on the others may go.
    leave(all.master(0));
    leave(all.master(1));
    all.run_for(1min);
    CHECK(got->lease.valid());
    const outcome_ptr released = all.release(got->lease);
    REQUIRE(all.finish(released));
    CHECK(!released->error);
    CHECK(all.master(3).count("release") == 1);
    CHECK(all.run_until_no_keys());
}

TEST_CASE("masters that restart empty one after the other don't wear a kept lease away", "[scenario-27]")
{
    const int seed = GENERATE(range(1, 4));
    simulation all{5, static_cast<std::uint64_t>(seed)};
    lock_manager locks = all.make_connected_manager();
    lock_manager others = all.make_connected_manager();
    const outcome_ptr got = kept(all, locks);
    const outcome_ptr rival = all.acquire(others, "r", {.ttl = 10s, .wait = no_limit});
    for (std::size_t time = 0; time < 20; ++time)
    {
        sim_master& master = all.master(time % 5);
        master.restart("run " + std::to_string(time), false);
        const auto is_back = [&] { return master.value("lock:r") == got->lease.owner_id(); };
        REQUIRE(all.run_until(is_back, 20s));
    }
    CHECK(got->lease.valid());
    CHECK_FALSE(rival->done);
    got->lease = {};
    REQUIRE(all.finish(rival));
    CHECK(!rival->error);
}

TEST_CASE("a rejoined key is released, also if that can't happen at once", "[scenario-27]")
{
    simulation all{5};
    lock_manager locks = all.make_connected_manager();
    leave(all.master(4));
    all.run_until_idle();
    const outcome_ptr got = kept(all, locks);
    come_back_empty(all.master(4));
    run_until_extended(all, 1);
    REQUIRE(all.master(4).value("lock:r") == got->lease.owner_id());
    all.master(4).door = entrance::refuses;
    all.master(4).break_connections();
    all.run_until_idle();
    const outcome_ptr released = all.release(got->lease);
    REQUIRE(all.finish(released));
    CHECK(!released->error);
    all.run_for(3s);
    CHECK(all.master(4).count("release") == 0);
    all.master(4).door = entrance::open;
    all.run_for(1s);
    CHECK(all.master(4).count("release") == 1);
    CHECK(all.keys() == 0);
}

TEST_CASE("without a quorum no master gets the key", "[scenario-27]")
{
    simulation all{5};
    lock_manager locks = all.make_connected_manager();
    const outcome_ptr got = kept(all, locks);
    const clock::time_point until = got->lease.valid_until();
    // Two say yes, two lost it, one doesn't answer.
    all.master(0).remove("lock:r");
    all.master(1).remove("lock:r");
    all.master(2).hang();
    all.run_until(until - 2s);
    CHECK(got->lease.valid());
    CHECK(all.master(0).count("extend") > 3);
    CHECK(sets(all) == 5);
    SECTION("nor once it is lost")
    {
        all.run_until(until - 1s);
        CHECK_FALSE(got->lease.valid());
        all.master(2).resume();
        all.run_for(1min);
        CHECK(sets(all) == 5);
    }
    SECTION("nor once it is released")
    {
        got->lease = {};
        all.run_for(0ms);
        all.master(2).resume();
        all.run_for(1min);
        CHECK(sets(all) == 5);
        CHECK(all.keys() == 0);
    }
    SECTION("but when the quorum comes back, they do")
    {
        all.master(2).resume();
        all.run_until(until - 1s);
        CHECK(all.keys() == 5);
        CHECK(got->lease.valid());
    }
}

TEST_CASE("a master that reports after the loss or the release that it has no key gets none", "[scenario-27]")
{
    const bool is_released = GENERATE(false, true);
    simulation all{3};
    config options = all.options();
    options.response_timeout = 1min;
    lock_manager locks = all.make_connected_manager(options);
    const outcome_ptr got = all.acquire_kept(locks, "r", {.ttl = 10s, .max_hold = 5s});
    REQUIRE(all.finish(got));
    const outcome_ptr watch = all.wait_lost(got->lease);
    all.master(2).remove("lock:r");
    all.master(2).link().hold_replies();
    run_until_extended(all, 1);
    if (is_released)
    {
        got->lease = {};
        all.run_for(1s);
    }
    else
    {
        REQUIRE(all.finish(watch));
    }
    CHECK(watch->done);
    all.master(2).link().let_go_of_replies();
    all.run_for(100ms);
    CHECK(sets(all) == 3);
    CHECK(all.keys() == (is_released ? 0 : 2));
}

TEST_CASE("a rival's key on a minority stays where it is", "[scenario-27]")
{
    simulation all{5};
    lock_manager locks = all.make_connected_manager();
    const outcome_ptr got = kept(all, locks);
    all.master(0).set("lock:r", "a rival", 1min);
    all.run_for(30s);
    CHECK(got->lease.valid());
    CHECK(all.master(0).value("lock:r") == "a rival");
    all.run_for(40s); // It has lapsed.
    CHECK(all.master(0).value("lock:r") == got->lease.owner_id());
}

TEST_CASE("a master that forgot its scripts keeps the key of a kept lease all the same", "[scenario-49]")
{
    const std::size_t count = GENERATE(1U, 2U, 5U);
    simulation all{5};
    lock_manager locks = all.make_connected_manager();
    const outcome_ptr got = kept(all, locks);
    for (std::size_t index = 5 - count; index < 5; ++index)
    {
        // Also one whose answers come last, when the others have decided already.
        all.master(index).flush_scripts();
        all.master(index).network.back = 1ms;
    }
    all.run_for(1min);
    CHECK(got->lease.valid());
    CHECK(all.keys() == 5);
}

} // namespace redlock::test
