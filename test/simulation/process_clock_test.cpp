// SPDX-License-Identifier: BSL-1.0
// Tests of the clocks of processes and masters, which may differ from the true time.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <memory>

namespace redlock::test
{

namespace
{

constexpr clock::time_point start{std::chrono::hours{100}};

} // namespace

TEST_CASE("a clock shows the true time until its rate is changed or it jumps")
{
    process_clock one;
    CHECK(one.shown_at(start) == start);
    one.set_rate(start, 10'000);
    CHECK(one.shown_at(start) == start);
    CHECK(one.shown_at(start + 1s) == start + 1010ms);
    one.jump(start + 1s, -5s);
    CHECK(one.shown_at(start + 2s) == start + 2020ms - 5s);
    one.set_rate(start + 2s, -500'000);
    CHECK(one.shown_at(start + 4s) == start + 3020ms - 5s);
}

TEST_CASE("when_shown is the earliest true time at which a clock shows a time")
{
    const auto rate =
        GENERATE(as<std::int64_t>{}, -999'999, -500'000, -5'000, -1, 0, 1, 5'000, 300'000, 9'000'000);
    process_clock one;
    one.set_rate(start, rate);
    for (const clock::duration ahead : {1ns, 2ns, 999'999ns, 10'000'019ns, 3'599'999'999'967ns})
    {
        const clock::time_point when = one.when_shown(start + ahead);
        CHECK(one.shown_at(when) >= start + ahead);
        CHECK(one.shown_at(when - 1ns) < start + ahead);
    }
    CHECK(one.when_shown(start - 1s) == start);
    CHECK(one.when_shown(clock::time_point::max()) == clock::time_point::max());
}

TEST_CASE("an alarm fires by the clock of its process, even if that is changed meanwhile")
{
    simulation sim{1};
    const auto outside = std::make_shared<virtual_environment>(sim.environment().shared_world());
    outside->put("10.0.0.1", sim.master(0));
    lock_manager locks = sim.make_manager(sim.options(), outside);
    sim.run_until_idle();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    const outcome_ptr lost = sim.wait_lost(got->lease);
    sim.run_for(1s);
    const clock::duration left = got->lease.remaining();
    const clock::time_point from = sim.now();
    SECTION("it runs faster")
    {
        outside->set_rate(1'000'000);
        REQUIRE(sim.finish(lost));
        CHECK(sim.now() == from + (left + 1ns) / 2);
    }
    SECTION("it runs slower")
    {
        outside->set_rate(-500'000);
        REQUIRE(sim.finish(lost));
        CHECK(sim.now() == from + left * 2);
    }
    SECTION("it jumps")
    {
        const auto by = GENERATE(as<clock::duration>{}, 3s, -3s);
        outside->jump(by);
        REQUIRE(sim.finish(lost));
        CHECK(sim.now() == from + left - by);
    }
    CHECK(got->lease.remaining() == 0ns);
}

TEST_CASE("keys expire by the clock of their master, in whole milliseconds, and not a moment before")
{
    simulation sim{1};
    sim_master& master = sim.master(0);
    sim.world().jump(400us);
    master.set("k", "v", 10ms);
    sim.world().jump(10'599us);
    CHECK(master.value("k") == "v");
    sim.world().jump(1us);
    CHECK(!master.value("k"));

    master.clock_of_its_own().set_rate(sim.now(), 1'000'000);
    master.set("k", "v", 10ms);
    sim.world().jump(6ms);
    CHECK(!master.value("k"));

    master.set("k", "v", 10ms);
    master.clock_of_its_own().jump(sim.now(), 11ms);
    CHECK(!master.value("k"));
}

TEST_CASE("a restart gives back what is on disk")
{
    simulation sim{1};
    sim_master& master = sim.master(0);
    master.set("old", "1");
    sim.world().jump(3s);
    master.set("old", "2");
    master.set("new", "3");
    sim.world().jump(500ms);
    SECTION("all of it")
    {
        master.restart("again");
        CHECK(master.value("old") == "2");
        CHECK(master.value("new") == "3");
    }
    SECTION("but the last second")
    {
        master.on_disk = persistence::everysec;
        master.restart("again");
        CHECK(master.value("old") == "1");
        CHECK(!master.value("new"));
    }
    SECTION("nothing")
    {
        master.on_disk = persistence::none;
        master.restart("again");
        CHECK(master.key_count() == 0);
    }
    SECTION("a stale replica's")
    {
        master.promote_stale_replica("again", 600ms);
        CHECK(master.value("old") == "1");
        CHECK(!master.value("new"));
    }
    SECTION("after everything was flushed, what was flushed")
    {
        master.flush_all();
        CHECK(master.key_count() == 0);
        master.lose_writes_of(500ms);
        CHECK(master.value("new") == "3");
    }
    SECTION("without one that was evicted")
    {
        CHECK(master.evict(0));
        CHECK(!master.value("new"));
        CHECK(master.evict(7));
        CHECK(!master.evict(0));
    }
}

} // namespace redlock::test
