// SPDX-License-Identifier: BSL-1.0
// Tests of guarded mode: a master's clock jumps while the client's machine stops, or the readings of the clocks say little.
#include "wrong_clocks.hpp"

#include <catch2/generators/catch_generators.hpp>

#include <vector>

namespace redlock::test
{

TEST_CASE("a short stop soon after a jump doesn't make a client forget it", "[guarded][scenario-4]")
{
    const auto later = GENERATE(50ms, 300ms, 900ms);
    const auto stop = GENERATE(20ms, 40ms);
    CAPTURE(later.count(), stop.count());
    held_by_two with;
    with.sim.master(1).clock_of_its_own().jump(with.sim.now(), 30s);
    with.run_until_noticed();
    with.sim.run_for(later);
    stand_still(with.sim, stop);
    with.check_no_other_holder([&] { with.sim.run_for(100ms); });
}

TEST_CASE("a young client doesn't take a jump for a part of a short stop", "[guarded][scenario-4]")
{
    const auto age = GENERATE(300ms, 1200ms, 1700ms, 2500ms);
    const int how = GENERATE(0, 1, 2);
    CAPTURE(age.count(), how);
    held_by_two with{age};
    simulation& sim = with.sim;
    switch (how)
    {
    case 0: // At once.
        sim.master(1).clock_of_its_own().jump(sim.now(), 30s);
        stand_still(sim, 40ms);
        break;
    case 1: // The first clock runs too fast.
        run_fast(sim, 0, 1s, 2ms);
        sim.master(1).clock_of_its_own().jump(sim.now(), 30s);
        break;
    default: // The second master is away meanwhile.
        send_away(sim.master(1));
        sim.run_for(100ms);
        stand_still(sim, 40ms);
        sim.run_for(2s);
        sim.master(1).clock_of_its_own().jump(sim.now(), 30s);
        sim.master(1).door = entrance::open;
        break;
    }
    with.run_until_noticed();
    with.check_no_other_holder([&] { sim.run_for(100ms); });
}

TEST_CASE("a master that was away during a stop votes when it returns", "[guarded][scenario-76]")
{
    guarded_simulation test{3};
    simulation& sim = test.sim;
    lock_manager locks = sim.make_connected_manager(test.group.options());
    sim.run_for(5s);
    send_away(sim.master(2));
    sim.run_for(1s);
    stand_still(sim, 500ms);
    sim.run_for(4s);
    sim.master(2).door = entrance::open;
    sim.run_for(4s);
    const outcome_ptr got = test.acquire(locks, {.ttl = 1s, .wait = 0ms});
    CHECK(!got->error);
    for (std::size_t index = 0; index < 3; ++index)
    {
        CHECK(got->report.masters()[index].reason == error_code{});
    }
}

TEST_CASE("a slow reading of another master hides no jump", "[guarded][scenario-4]")
{
    const auto offset = GENERATE(0ms, 250ms, 500ms, 750ms);
    const auto later = GENERATE(1400ms, 1800ms, 2200ms);
    CAPTURE(offset.count(), later.count());
    held_by_two with;
    simulation& sim = with.sim;
    sim.run_for(offset);
    sim.master(0).network.there = 1s;
    sim.run_for(1s);
    sim.master(0).network.there = 100us;
    sim.run_for(later);
    with.warnings = {};
    sim.master(1).clock_of_its_own().jump(sim.now(), 900ms);
    stand_still(sim, 40ms);
    with.run_until_noticed();
    with.check_no_other_holder([&] { sim.run_for(100ms); });
}

TEST_CASE("a large jump after a short stop leads to a quarantine", "[guarded][scenario-4]")
{
    guarded_simulation test{3};
    simulation& sim = test.sim;
    for (const std::size_t index : {1U, 2U})
    {
        sim.master(index).network.there = sim.master(index).network.back = 10ms;
    }
    const lock_manager locks = sim.make_connected_manager(test.group.options());
    sim.run_for(5s);
    stand_still(sim, 20ms); // It shows at the near master only.
    sim.run_for(4s);
    REQUIRE(sim.count("quarantine") == 0);
    sim.master(0).clock_of_its_own().jump(sim.now(), 30s);
    sim.run_for(4s);
    CHECK(test.group.is(0, core::marker_state::quarantine));
}

TEST_CASE(
    "a stop that a slow master shows only later puts no master into quarantine", "[guarded][scenario-76]")
{
    const auto slow = GENERATE(1500ms, 3000ms, 5000ms);
    const auto round_trip = GENERATE(400ms, 900ms);
    const auto offset = GENERATE(0ms, 300ms, 600ms);
    CAPTURE(slow.count(), round_trip.count(), offset.count());
    guarded_simulation test{3};
    simulation& sim = test.sim;
    const lock_manager locks = sim.make_connected_manager(test.group.options());
    sim.run_for(10s + offset);
    sim.master(0).network.there = sim.master(0).network.back = round_trip / 2;
    sim.run_for(1200ms);
    stand_still(sim, 300ms);
    sim.run_for(slow);
    sim.master(0).network.there = sim.master(0).network.back = 100us;
    sim.run_for(8s);
    CHECK(sim.count("quarantine") == 0);
}

TEST_CASE("two stops, one after the other, put no master into quarantine", "[guarded][scenario-76]")
{
    const std::size_t odd = GENERATE(0U, 1U, 2U); // It is read at another time than the others.
    const auto between = GENERATE(100ms, 300ms, 600ms);
    const auto first = GENERATE(0ms, 200ms, 400ms, 600ms, 800ms);
    CAPTURE(odd, between.count(), first.count());
    guarded_simulation test{3};
    simulation& sim = test.sim;
    for (std::size_t index = 0; index < 3; ++index)
    {
        sim.master(index).network.there = index == odd ? 100us : 100ms;
    }
    lock_manager locks = sim.make_connected_manager(test.group.options());
    for (std::size_t index = 0; index < 3; ++index)
    {
        sim.master(index).network.there = 100us;
    }
    sim.run_for(8s + first);
    stand_still(sim, 100ms);
    sim.run_for(between);
    stand_still(sim, 150ms);
    sim.run_for(4s);
    CHECK(sim.count("quarantine") == 0);
    CHECK(!test.acquire(locks, {.ttl = 1s, .wait = 0ms})->error);
}

TEST_CASE("a master that was away over two stops isn't accused because of a third", "[guarded][scenario-76]")
{
    guarded_simulation test{3};
    simulation& sim = test.sim;
    const lock_manager locks = sim.make_connected_manager(test.group.options());
    sim.run_for(5s);
    send_away(sim.master(2));
    for (const clock::duration stop : {500ms, 700ms})
    {
        sim.run_for(2s);
        stand_still(sim, stop);
    }
    sim.run_for(2s);
    sim.master(2).door = entrance::open;
    sim.run_for(4s);
    stand_still(sim, 40ms);
    sim.run_for(4s);
    CHECK(sim.count("quarantine") == 0);
}

TEST_CASE(
    "two clients that each accuse another master leave all of them to be armed", "[guarded][scenario-76]")
{
    guarded_simulation test{3};
    simulation& sim = test.sim;
    std::vector<lock_manager> clients;
    for (int each = 0; each < 2; ++each)
    {
        clients.push_back(sim.make_connected_manager(test.group.options()));
    }
    sim.run_for(5s);
    sim.master(0).link(1).hold(); // Each of the clients sees one jump only, until both have accused.
    sim.master(1).link(2).hold();
    for (const std::size_t index : {0U, 1U})
    {
        sim.master(index).clock_of_its_own().jump(sim.now(), 30s);
        test.group.put_marker(index, core::marker_state::quarantine, core::incarnation_end::clock);
    }
    sim.master(0).link(1).let_go();
    sim.master(1).link(2).let_go();
    REQUIRE(sim.run_until(
        [&] {
            return test.group.is(0, core::marker_state::armed) && test.group.is(1, core::marker_state::armed);
        },
        3 * guarded_group::max_ttl));
    CHECK(!test.acquire(clients[0], {.ttl = 3s, .wait = 0ms})->error);
}

} // namespace redlock::test
