// SPDX-License-Identifier: BSL-1.0
// Tests of guarded mode: which masters in quarantine no manager arms, and when.
#include "guarded_group.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

constexpr clock::duration one_quarantine = guarded_group::max_ttl + 5s;

struct refusing_simulation
{
    explicit refusing_simulation(std::size_t masters = 3) : sim{masters}, group{sim} { group.arm_all(); }

    void restart(std::size_t index, bool keeps_keys)
    {
        sim.master(index).restart("another run of " + std::to_string(index), keeps_keys);
    }
    bool is_armed(std::size_t index) const { return group.is(index, core::marker_state::armed); }

    simulation sim;
    guarded_group group;
};

} // namespace

TEST_CASE(
    "arming: a master that came back empty doesn't count as restarted with its data",
    "[guarded][scenario-79]")
{
    refusing_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.restart(0, false);
    test.restart(1, true);
    test.sim.run_for(3 * one_quarantine);
    CHECK(test.group.is(0, core::marker_state::quarantine));
    CHECK(test.group.is(1, core::marker_state::quarantine));
    CHECK(test.group.present(0)->why == core::incarnation_end::emptied);
    CHECK(test.group.present(1)->why == core::incarnation_end::stale);
}

TEST_CASE("arming: a master that came back empty isn't armed by the clock", "[guarded][scenario-79]")
{
    refusing_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.restart(0, false);
    test.restart(1, true);
    test.restart(2, true);
    for (const std::size_t index : {1U, 2U})
    {
        test.sim.master(index).habits["arm"] = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    }
    test.sim.run_for(3 * one_quarantine);
    CHECK(test.sim.master(1).count("arm") > 0);
    CHECK(!test.is_armed(0));
    for (const std::size_t index : {1U, 2U})
    {
        test.sim.master(index).habits.clear();
    }
    CHECK(test.sim.run_until([&] { return test.is_armed(0) && test.is_armed(1) && test.is_armed(2); }, 10s));
}

TEST_CASE("arming: a quarantine of an emptied master that is restarted stays one", "[guarded][scenario-79]")
{
    refusing_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.restart(0, false);
    REQUIRE(test.sim.run_until([&] { return test.group.is(0, core::marker_state::quarantine); }, 5s));
    test.sim.master(0).restart("a third run", true);
    test.restart(1, true);
    test.sim.run_for(3 * one_quarantine);
    CHECK(test.group.is(0, core::marker_state::quarantine));
    CHECK(test.group.present(0)->why == core::incarnation_end::emptied);
    CHECK(!test.is_armed(1));
}

TEST_CASE("arming: no master is armed by the clock while one of the list has another group", "[guarded]")
{
    refusing_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const std::string before = test.sim.master(2).value(guard_key).value();
    const bool is_retired = GENERATE(false, true);
    CAPTURE(is_retired);
    if (is_retired)
    {
        test.group.put_marker(2, core::marker_state::retired);
    }
    else
    {
        guarded_group{test.sim, "fedcba9876543210"}.put_marker(2, core::marker_state::armed);
    }
    test.sim.run_for(2s);
    test.restart(0, true);
    test.restart(1, true);
    test.sim.run_for(3 * one_quarantine);
    CHECK(!test.is_armed(0));
    CHECK(!test.is_armed(1));
    test.sim.master(2).set(guard_key, before);
    CHECK(test.sim.run_until([&] { return test.is_armed(0) && test.is_armed(1); }, one_quarantine));
}

TEST_CASE(
    "arming: another group that was seen counts until a look shows that its master has left it", "[guarded]")
{
    refusing_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    sim_master& other = test.sim.master(2);
    const std::string before = other.value(guard_key).value();
    const bool is_retired = GENERATE(false, true);
    const bool is_away = GENERATE(false, true);
    CAPTURE(is_retired, is_away);
    if (is_retired)
    {
        test.group.put_marker(2, core::marker_state::retired);
    }
    else
    {
        guarded_group{test.sim, "fedcba9876543210"}.put_marker(2, core::marker_state::armed);
    }
    test.sim.run_for(2s);
    if (is_away)
    {
        other.door = entrance::refuses;
        other.break_connections();
    }
    else
    {
        other.habits["HGET"] = "-NOPERM this user has no permissions to run the 'hget' command\r\n";
    }
    test.sim.run_for(2s);
    test.restart(0, true);
    test.restart(1, true);
    test.sim.run_for(3 * one_quarantine);
    CHECK(test.group.is(0, core::marker_state::quarantine));
    CHECK(test.group.is(1, core::marker_state::quarantine));
    other.set(guard_key, before);
    other.door = entrance::open;
    other.habits.clear();
    CHECK(test.sim.run_until([&] { return test.is_armed(0) && test.is_armed(1); }, one_quarantine));
}

TEST_CASE(
    "arming: a master that one manager can't reach isn't taken for a restarted one", "[guarded][scenario-78]")
{
    refusing_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(2).door = entrance::refuses;
    test.sim.master(2).break_connections();
    test.restart(0, GENERATE(false, true));
    test.sim.run_for(3 * one_quarantine);
    CHECK(!test.is_armed(0));
    test.sim.master(2).door = entrance::open;
    REQUIRE(test.sim.run_until([&] { return test.group.is(0, core::marker_state::quarantine); }, 5s));
    CHECK(test.sim.run_until([&] { return test.is_armed(0); }, one_quarantine));
}

TEST_CASE("arming: what was seen before a quarantine says nothing about it", "[guarded][scenario-78]")
{
    refusing_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.restart(0, true);
    REQUIRE(test.sim.run_until([&] { return test.group.is(0, core::marker_state::quarantine); }, 5s));
    const std::size_t looks = test.sim.master(0).count("HGET");
    REQUIRE(test.sim.run_until([&] { return test.sim.master(0).count("HGET") > looks + 1; }, 5s));
    test.sim.run_for(10ms);
    // Another manager has armed it. This one sees a promotion of another master first.
    test.group.arm(0, 2000);
    test.sim.master(1).lose_writes_of(0ms);
    REQUIRE(test.sim.finish(test.sim.acquire(locks, "stock", {.ttl = 5s, .wait = 0ms})));
    REQUIRE(test.sim.run_until([&] { return test.group.is(1, core::marker_state::quarantine); }, 100ms));
    test.sim.master(2).door = entrance::refuses;
    test.sim.master(2).break_connections();
    test.sim.run_for(3 * one_quarantine);
    CHECK(test.is_armed(0));
    CHECK(!test.is_armed(1));
    test.sim.master(2).door = entrance::open;
    CHECK(test.sim.run_until([&] { return test.is_armed(1); }, one_quarantine));
}

TEST_CASE("arming: a floor by the clock is two hours ahead of it", "[guarded][scenario-65]")
{
    refusing_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const std::uint64_t largest = 9'000'000'000'000'000;
    const bool is_above = GENERATE(false, true);
    CAPTURE(is_above);
    if (is_above)
    {
        test.group.put_counter(1, "stock", largest);
    }
    // Its quarantine ends first, while nobody has kept any counters.
    test.restart(0, true);
    test.sim.run_for(2s);
    test.restart(1, true);
    test.restart(2, true);
    REQUIRE(test.sim.run_until([&] { return test.is_armed(0); }, one_quarantine));
    CHECK(!test.is_armed(1));
    CHECK(!test.is_armed(2));
    const auto shown =
        std::chrono::duration_cast<std::chrono::microseconds>(test.sim.master(0).now().time_since_epoch());
    const auto floor = std::stoull(test.sim.master(0).field(fence_key, "floor").value());
    if (is_above)
    {
        CHECK(floor == largest);
    }
    else
    {
        CHECK(floor > static_cast<std::uint64_t>((shown + 2h - 5s).count()));
    }
}

TEST_CASE("arming: managers that see a loss at once agree on one quarantine", "[guarded][scenario-63]")
{
    refusing_simulation test;
    std::vector<std::size_t> reported(4);
    std::vector<lock_manager> all;
    for (std::size_t each = 0; each < reported.size(); ++each)
    {
        config with = test.group.options();
        with.observer.on_event = [&reported, each](const event& what)
        { reported[each] += std::holds_alternative<master_quarantined>(what) ? 1U : 0U; };
        all.push_back(test.sim.make_connected_manager(with));
    }
    test.sim.master(0).network = {.there = 400ms, .back = 400ms}; // Each sees it before the first quarantine.
    test.sim.master(0).lose_writes_of(0ms);
    REQUIRE(test.sim.run_until([&] { return test.is_armed(0); }, 2 * one_quarantine));
    CHECK(test.sim.count("quarantine") > 1);
    CHECK(std::all_of(reported.begin(), reported.end(), [](std::size_t times) { return times == 1; }));
}

TEST_CASE(
    "arming: a quarantine that is begun again is another one to every manager", "[guarded][scenario-63]")
{
    refusing_simulation test;
    std::vector<lock_manager> all;
    for (int each = 0; each < 3; ++each)
    {
        all.push_back(test.sim.make_connected_manager(test.group.options()));
        test.sim.run_for(300ms); // They look at different times.
    }
    test.sim.master(0).flush_all();
    REQUIRE(test.sim.run_until([&] { return test.group.is(0, core::marker_state::quarantine); }, 5s));
    test.sim.run_for(guarded_group::max_ttl - 3s + std::chrono::milliseconds{GENERATE(range(0, 1000, 100))});
    REQUIRE(test.group.is(0, core::marker_state::quarantine));
    test.sim.master(0).flush_all();
    const clock::time_point lost = test.sim.now();
    REQUIRE(test.sim.run_until([&] { return test.is_armed(0); }, one_quarantine));
    CHECK(test.sim.now() - lost >= guarded_group::max_ttl);
}

TEST_CASE("guarded: a master and its copy are one vote", "[guarded][scenario-48]")
{
    refusing_simulation test;
    test.sim.master(1).replication_id = test.sim.master(0).replication_id;
    test.sim.master(1).set(guard_key, test.sim.master(0).value(guard_key).value());
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr got = test.sim.acquire(locks, "stock", {.ttl = 5s, .wait = 0ms});
    REQUIRE(test.sim.finish(got));
    CHECK(!got->error);
    CHECK(got->report.masters()[0].vote == vote::granted);
    CHECK(got->report.masters()[1].vote == vote::unsent);
    CHECK(got->report.masters()[1].reason == master_errc::not_a_member);
    CHECK(got->report.masters()[2].vote == vote::granted);
}

} // namespace redlock::test
