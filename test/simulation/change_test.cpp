// SPDX-License-Identifier: BSL-1.0
// The change of a group in virtual time: the outage, losses and failures at each step, several runs, and clients of both groups.
#include "change_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace redlock::test
{

TEST_CASE("change: no master is armed before the longer max_ttl after the last one was moved", "[guarded]")
{
    const bool is_longer = GENERATE(true, false);
    const auto new_ttl = is_longer ? group_ttl * 3 : group_ttl / 2;
    const change_of what = GENERATE(
        one_replaced, disjoint, change_of{{0, 1, 2}, {0, 1, 2}}, change_of{{0, 1, 2}, {0, 1, 2, 3, 4}},
        change_of{{0, 1, 2, 3, 4}, {1, 3, 4}});
    simulation sim{6};
    const std::string old_group = make_old_group(sim, what.from);
    sim.master(what.from[1]).set_field(fence_key, "17", "4711");
    provision_options options = changing;
    options.max_ttl = new_ttl;
    const auto run = what.run(sim, options);
    INFO(run->report);
    REQUIRE_FALSE(run->error);
    CHECK(run->report.outcome == provision_outcome::provisioned);
    CHECK(run->report.group != old_group);
    CHECK(run->report.floor == 4711);
    check_armed(sim, what.to, run->report.group);
    const clock::duration wait = provisioning_wait(
        std::max<std::chrono::milliseconds>(new_ttl, group_ttl), sim.options().drift_factor);
    for (const std::size_t moved : what.all())
    {
        for (const std::size_t armed : what.to)
        {
            CHECK(sim.master(armed).last("arm").at - sim.master(moved).last("quarantine").at >= wait);
        }
    }
    for (const std::size_t each : what.to)
    {
        CHECK(floor_at(sim.master(each)) == 4711);
        CHECK(its_marker(sim.master(each))->max_ttl == new_ttl);
    }
    for (const std::size_t each : what.from)
    {
        const bool stays = std::find(what.to.begin(), what.to.end(), each) != what.to.end();
        CHECK(is_retired(sim.master(each)) == !stays);
    }
    const auto again = what.run(sim, options);
    CHECK(again->report.outcome == provision_outcome::complete);
    CHECK(again->report.group == run->report.group);
}

TEST_CASE("change: a new group begins at a master of the old one", "[guarded]")
{
    simulation sim{4};
    make_old_group(sim, {1, 2, 3});
    const change_of what{{1, 2, 3}, {0, 1, 2}}; // The first name is that of a new master.
    const auto run = what.run(sim);
    REQUIRE_FALSE(run->error);
    CHECK(sim.master(1).last("quarantine").at < sim.master(0).last("quarantine").at);
}

TEST_CASE(
    "change: an old master that was away is moved by another run, and then the change is finished",
    "[guarded]")
{
    simulation sim{4};
    const std::string old_group = make_old_group(sim);
    sim.master(0).door = entrance::refuses;
    SECTION("until then it isn't")
    {
        const auto run = one_replaced.run(sim);
        INFO(run->report);
        CHECK(run->error == errc::provisioning_failed);
        CHECK(run->report.outcome == provision_outcome::incomplete);
        CHECK(run->report.masters[3].found == provision_finding::unknown);
        CHECK(run->report.masters[3].reason);
        CHECK(armed_masters(sim) == 4);
        CHECK(its_marker(sim.master(0))->group == old_group);
        const auto early = one_replaced.run(sim);
        CHECK(early->report.outcome == provision_outcome::incomplete);
        sim.master(0).door = entrance::open;
        const std::size_t arms = sim.count("arm");
        const auto late = one_replaced.run(sim);
        INFO(late->report);
        CHECK_FALSE(late->error);
        CHECK(late->report.outcome == provision_outcome::provisioned);
        CHECK(is_retired(sim.master(0)));
        CHECK(sim.count("arm") == arms);
        CHECK(one_replaced.run(sim)->report.outcome == provision_outcome::complete);
    }
    SECTION("unless it is named as stopped")
    {
        provision_options options = changing;
        options.stopped = 1;
        const auto run = one_replaced.run(sim, options);
        INFO(run->report);
        CHECK_FALSE(run->error);
        CHECK(run->report.masters[3].found == provision_finding::stopped);
    }
    SECTION("also if it comes back during the wait, whatever it is named as")
    {
        provision_options options = changing;
        options.stopped = GENERATE(0U, 1U);
        const auto run = one_replaced.begin(sim, options);
        REQUIRE(sim.run_until([&] { return sim.count("quarantine") == 3; }, 1min));
        sim.master(0).door = entrance::open;
        end_provision(sim, run);
        INFO(run->report);
        CHECK(run->report.outcome == provision_outcome::incomplete);
        CHECK(run->report.masters[3].found == provision_finding::old_group);
        CHECK_FALSE(one_replaced.run(sim, options)->error);
        CHECK(is_retired(sim.master(0)));
    }
}

TEST_CASE("change: nothing is moved if fewer than a quorum of the old masters answer", "[guarded]")
{
    simulation sim{6};
    const std::string old_group = make_old_group(sim);
    sim.master(0).door = sim.master(2).door = entrance::refuses;
    const auto run = disjoint.run(sim);
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.outcome == provision_outcome::unchanged);
    CHECK(sim.count("quarantine") == 0);
    check_armed(sim, {0, 1, 2}, old_group);
}

TEST_CASE("change: a run that was cancelled at any moment is continued by the next one", "[guarded]")
{
    bool cancelled = true;
    for (std::size_t steps = 0; cancelled; ++steps)
    {
        CAPTURE(steps);
        simulation sim{4};
        make_old_group(sim);
        sim.master(1).set_field(fence_key, "17", "4711");
        const auto run = one_replaced.begin(sim);
        for (std::size_t step = 0; step < steps && !run->done; ++step)
        {
            sim.step();
        }
        cancelled = !run->done;
        if (cancelled)
        {
            run->cancel.emit(asio::cancellation_type::terminal);
            end_provision(sim, run);
            CHECK((run->error == asio::error::operation_aborted || !run->error));
            sim.run_until_idle();
        }
        const bool had_armed = sim.count("arm") > 0;
        const auto next = one_replaced.run(sim);
        INFO(next->report);
        if (had_armed)
        {
            // Clients arm what it hasn't.
            CHECK(next->report.outcome != provision_outcome::unfinished);
            continue;
        }
        REQUIRE_FALSE(next->error);
        check_armed(sim, {1, 2, 3}, next->report.group);
        CHECK(is_retired(sim.master(0)));
        CHECK(floor_at(sim.master(3)) >= 4711);
    }
}

TEST_CASE("change: a failure at any step is reported, and another run continues", "[guarded]")
{
    const auto [what, earlier] = GENERATE(table<const char*, std::size_t>(
        {{"look", 0}, {"trial", 0}, {"quarantine", 0}, {"look", 1}, {"arm", 0}}));
    const auto failing = GENERATE(
        scripted_answer{.bytes = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"},
        scripted_answer{.closes = true}, scripted_answer{.bytes = "-ERR it ran\r\n", .runs = true});
    const std::size_t where = GENERATE(1U, 3U);
    CAPTURE(what, earlier, where, failing.bytes, failing.runs, failing.closes);
    simulation sim{4};
    make_old_group(sim);
    const auto run = one_replaced.begin(sim);
    fail_step(sim, where, what, earlier, failing);
    end_provision(sim, run);
    INFO(run->report);
    CHECK(
        (run->report.outcome == provision_outcome::unchanged) ==
        ((std::string_view{what} == "look" && earlier == 0) || std::string_view{what} == "trial"));
    lock_manager locks = sim.make_connected_manager(guarded_by(sim, one_replaced.to));
    const auto next = one_replaced.run(sim);
    INFO(next->report);
    const auto is_group = [&]
    {
        return std::all_of(
            one_replaced.to.begin(), one_replaced.to.end(),
            [&sim](std::size_t each) { return is_armed(sim.master(each)); });
    };
    CHECK(sim.run_until(is_group, 10s));
    check_armed(sim, one_replaced.to, its_marker(sim.master(1))->group);
}

TEST_CASE(
    "change: if too few old masters have stayed moved, they are moved again, and it waits again",
    "[guarded][scenario-84]")
{
    simulation sim{4};
    make_old_group(sim);
    const bool keeps_keys = GENERATE(true, false);
    const auto run = one_replaced.begin(sim);
    run_until_moved(sim, one_replaced);
    sim.run_for(group_ttl / 2);
    restart(sim.master(1), keeps_keys);
    restart(sim.master(0), true);
    end_provision(sim, run);
    INFO(run->report);
    REQUIRE_FALSE(run->error);
    CHECK(sim.master(0).count("quarantine") == 2);
    CHECK(sim.master(1).count("quarantine") == 2);
    for (const std::size_t each : one_replaced.to)
    {
        CHECK(sim.master(each).last("arm").at - sim.master(1).last("quarantine").at >= group_ttl);
    }
    check_armed(sim, one_replaced.to, run->report.group);
}

TEST_CASE("change: the move of a single master may be lost", "[guarded]")
{
    simulation sim{4};
    make_old_group(sim);
    const std::size_t where = GENERATE(0U, 1U, 3U);
    const bool keeps_keys = GENERATE(true, false);
    CAPTURE(where, keeps_keys);
    const auto run = one_replaced.begin(sim);
    run_until_moved(sim, one_replaced);
    sim.run_for(group_ttl / 2);
    restart(sim.master(where), keeps_keys);
    end_provision(sim, run);
    INFO(run->report);
    const bool is_out = where == 0 && keeps_keys; // For good, whatever its incarnation.
    CHECK((run->report.outcome == provision_outcome::provisioned) == is_out);
    CHECK(
        run->report.masters[where == 0 ? 3 : where - 1].found ==
        (is_out ? provision_finding::left_group : provision_finding::changed));
    CHECK(sim.master(where).count("quarantine") == 1);
    CHECK(sim.count("arm") == (where == 0 ? 3U : 2U));
    lock_manager locks = sim.make_connected_manager(guarded_by(sim, one_replaced.to));
    const auto is_group = [&]
    {
        return std::all_of(
            one_replaced.to.begin(), one_replaced.to.end(),
            [&sim](std::size_t each) { return is_armed(sim.master(each)); });
    };
    CHECK(sim.run_until(is_group, 10s));
    const auto next = one_replaced.run(sim);
    INFO(next->report);
    CHECK_FALSE(next->error);
}

TEST_CASE("change: tokens rise, and no lock of the old group is held when the new one grants", "[guarded]")
{
    simulation sim{6};
    make_old_group(sim);
    const change_of what = GENERATE(one_replaced, disjoint, change_of{{0, 1, 2}, {0, 1, 2, 3, 4}});
    lock_manager before = sim.make_connected_manager(guarded_by(sim, what.from));
    const outcome_ptr held = sim.acquire(before, "stock", {.ttl = group_ttl, .wait = 0ms});
    REQUIRE(sim.finish(held));
    REQUIRE_FALSE(held->error);
    const std::uint64_t token = held->lease.fencing_token().value();
    const auto run = what.begin(sim);
    run_until_moved(sim, what);
    CHECK(token_by(sim, before) == 0);
    lock_manager after = sim.make_connected_manager(guarded_by(sim, what.to));
    CHECK(token_by(sim, after) == 0);
    end_provision(sim, run);
    REQUIRE_FALSE(run->error);
    CHECK_FALSE(held->lease.valid());
    const outcome_ptr next = sim.acquire(after, "stock", {.ttl = group_ttl, .wait = 10s});
    REQUIRE(sim.finish(next));
    REQUIRE_FALSE(next->error);
    CHECK(next->lease.fencing_token().value() > token);
    CHECK(token_by(sim, before) == 0);
}

TEST_CASE(
    "change: a client with the old list can neither win nor arm, also when a master comes back with old data",
    "[guarded][scenario-73][scenario-83]")
{
    simulation sim{4};
    const std::string old_group = make_old_group(sim);
    lock_manager old_client = sim.make_connected_manager(guarded_by(sim, one_replaced.from));
    CHECK(token_by(sim, old_client) > 0);
    const clock::time_point moved_after = sim.now();
    const auto run = one_replaced.run(sim);
    REQUIRE_FALSE(run->error);
    CHECK(token_by(sim, old_client) == 0);
    const bool was_left_out = GENERATE(true, false);
    CAPTURE(was_left_out);
    // It shows its old marker, armed, of another incarnation.
    sim_master& back = sim.master(was_left_out ? 0 : 1);
    back.lose_writes_of(sim.now() - moved_after);
    CHECK(its_marker(back)->group == old_group);
    sim.run_for(group_ttl * 10);
    CHECK_FALSE(is_armed(back));
    CHECK(token_by(sim, old_client) == 0);
    lock_manager new_client = sim.make_connected_manager(guarded_by(sim, one_replaced.to));
    CHECK(token_by(sim, new_client) > 0);
}

TEST_CASE("change: a master of a group that nobody remembers is retired first", "[guarded]")
{
    simulation sim{4};
    const std::string old_group = make_old_group(sim);
    sim_master& away = sim.master(0);
    away.door = entrance::refuses;
    away.break_connections();
    REQUIRE(one_replaced.run(sim)->report.outcome == provision_outcome::incomplete);
    const auto check_way_out = [&](const change_of& what)
    {
        away.door = entrance::open;
        CHECK(its_marker(away)->group == old_group);
        const auto refused = what.run(sim);
        INFO(refused->report);
        CHECK(refused->report.outcome == provision_outcome::unchanged);
        for (const provisioned_master& each : refused->report.masters)
        {
            const bool is_it = each.name == sim.options().masters[0].name();
            CHECK((each.found == provision_finding::other_group) == is_it);
        }
        const provision_options retiring{.action = provision_action::retire};
        REQUIRE_FALSE(end_provision(sim, begin_provision(sim, listing(sim, {0}), retiring))->error);
        const auto changed = what.run(sim);
        INFO(changed->report);
        REQUIRE_FALSE(changed->error);
        check_armed(sim, what.to, changed->report.group);
    };
    SECTION("it missed two changes")
    {
        provision_options longer = changing;
        longer.max_ttl = 2 * group_ttl;
        REQUIRE_FALSE(change_of{{1, 2, 3}, {1, 2, 3}}.run(sim, longer)->error);
        check_way_out(change_of{{1, 2, 3}, {0, 1, 2}});
    }
    SECTION("clients have armed the others since, after losses of data")
    {
        lock_manager locks = sim.make_connected_manager(guarded_by(sim, one_replaced.to));
        for (const std::size_t each : one_replaced.to)
        {
            restart(sim.master(each), false);
            REQUIRE(sim.run_until([&] { return is_armed(sim.master(each)); }, 1min));
            sim.run_for(group_ttl);
        }
        const std::uint64_t token = token_by(sim, locks, 10s);
        REQUIRE(token > 0);
        check_way_out(one_replaced);
        CHECK(token_by(sim, locks, 10s) > token);
    }
}

TEST_CASE(
    "change: an interrupted one is undone by hand if too few masters have kept their counters", "[guarded]")
{
    const change_of same{{0, 1, 2}, {0, 1, 2}};
    provision_options longer = changing;
    longer.max_ttl = 2 * group_ttl;
    simulation sim{3};
    const std::string old_group = make_old_group(sim);
    lock_manager locks = sim.make_connected_manager(guarded_by(sim, same.from));
    const std::uint64_t token = token_by(sim, locks);
    REQUIRE(token > 0);
    const auto interrupted = same.begin(sim, longer);
    const std::size_t moved = GENERATE(1U, 3U);
    CAPTURE(moved);
    REQUIRE(sim.run_until([&] { return sim.count("quarantine") == moved; }, 1min));
    interrupted->cancel.emit(asio::cancellation_type::terminal);
    end_provision(sim, interrupted);
    for (const std::size_t each : {1U, 2U})
    {
        if (moved == 1)
        {
            restart(sim.master(each), true);
        }
        else
        {
            sim.master(each).remove(fence_key);
        }
    }
    const auto refused = same.run(sim, longer);
    INFO(refused->report);
    CHECK(refused->report.outcome == provision_outcome::unchanged);
    CHECK(refused->report.advice.find("counters that count") != std::string::npos);

    redlock::config named = guarded_by(sim, same.from);
    named.guarded->group = old_group;
    const auto strangers =
        end_provision(sim, begin_provision(sim, named, {.action = provision_action::arm_again}));
    indices of_the_run;
    for (const std::size_t each : same.from)
    {
        if (strangers->report.masters[each].found == provision_finding::other_group)
        {
            of_the_run.push_back(each);
        }
    }
    CHECK(of_the_run.size() == moved);
    const provision_options retiring{.action = provision_action::retire};
    REQUIRE_FALSE(end_provision(sim, begin_provision(sim, listing(sim, of_the_run), retiring))->error);
    const auto again = end_provision(
        sim, begin_provision(sim, named, {.action = provision_action::arm_again, .max_ttl = group_ttl}));
    INFO(again->report);
    REQUIRE_FALSE(again->error);
    check_armed(sim, same.from, old_group);
    CHECK(token_by(sim, locks, 10s) > token);
    CHECK_FALSE(same.run(sim, longer)->error);
}

TEST_CASE("change: clients that find a half-moved list arm none of its masters", "[guarded][scenario-82]")
{
    simulation sim{6};
    make_old_group(sim);
    const auto run = disjoint.begin(sim);
    run_until_moved(sim, disjoint);
    run->cancel.emit(asio::cancellation_type::terminal);
    end_provision(sim, run);
    const bool restarts = GENERATE(false, true);
    if (restarts)
    {
        for (const auto& each : sim.masters())
        {
            restart(*each, true);
        }
    }
    lock_manager old_client = sim.make_connected_manager(guarded_by(sim, disjoint.from));
    lock_manager new_client = sim.make_connected_manager(guarded_by(sim, disjoint.to));
    sim.run_for(group_ttl * 10);
    CHECK(sim.count("arm") == 0);
    CHECK(token_by(sim, old_client) == 0);
    CHECK(token_by(sim, new_client) == 0);
    // Nor does an operator, who can't know whether the old group still grants.
    redlock::config named = listing(sim, disjoint.to);
    named.guarded.emplace(guarded_options{.group = run->report.group});
    const auto by_hand =
        end_provision(sim, begin_provision(sim, named, {.action = provision_action::arm_again}));
    INFO(by_hand->report);
    CHECK(by_hand->error == errc::provisioning_failed);
    CHECK(by_hand->report.masters[0].found == provision_finding::other_run);
    CHECK_FALSE(disjoint.run(sim)->error);
    CHECK(token_by(sim, new_client, 10s) > 0);
}

TEST_CASE("change: run again on a group that grants, it arms nobody", "[guarded][scenario-85]")
{
    simulation sim{4};
    make_old_group(sim);
    const auto run = one_replaced.begin(sim);
    REQUIRE(sim.run_until([&] { return sim.count("arm") > 0; }, 1min));
    run->cancel.emit(asio::cancellation_type::terminal);
    end_provision(sim, run);
    sim.run_until_idle();
    // All have carried it out. Two forget it.
    for (const std::size_t each : {1U, 2U})
    {
        core::marker its = its_marker(sim.master(each)).value();
        its.state = core::marker_state::quarantine;
        sim.master(each).set(guard_key, core::to_text(its));
    }
    const std::size_t arms = sim.count("arm");
    const auto again = one_replaced.run(sim);
    INFO(again->report);
    CHECK(again->error == errc::provisioning_failed);
    CHECK(again->report.masters[0].found == provision_finding::in_service);
    CHECK(again->report.masters[2].found == provision_finding::armed);
    CHECK(sim.count("arm") == arms);
}

TEST_CASE("change: a run that continues another one adds the masters' clocks", "[guarded]")
{
    simulation sim{4};
    make_old_group(sim);
    const auto run = one_replaced.begin(sim);
    run_until_moved(sim, one_replaced);
    run->cancel.emit(asio::cancellation_type::terminal);
    end_provision(sim, run);
    const auto next = one_replaced.run(sim);
    INFO(next->report);
    REQUIRE_FALSE(next->error);
    CHECK(next->report.group == run->report.group);
    CHECK(next->report.floor + 1'000'000 >= shown_by(sim.master(1)) + 7'200'000'000);
    check_armed(sim, one_replaced.to, run->report.group);
}

TEST_CASE("change: another unfinished run is named, and can be taken over", "[guarded]")
{
    simulation sim{6};
    make_old_group(sim);
    const change_of others{{0, 1, 2}, {0, 1, 4}};
    const auto stopped = others.begin(sim);
    run_until_moved(sim, others);
    const bool is_alive = GENERATE(false, true);
    if (!is_alive)
    {
        stopped->cancel.emit(asio::cancellation_type::terminal);
        end_provision(sim, stopped);
    }
    // The other run knows all masters of the second one.
    const change_of mine = GENERATE(change_of{{0, 1, 2, 4}, {1, 2, 3}}, change_of{{0, 1, 2, 4}, {1, 2, 4}});
    const auto refused = mine.run(sim);
    CHECK(refused->error == errc::provisioning_failed);
    CHECK(refused->report.outcome == provision_outcome::unchanged);
    CHECK(refused->report.masters[0].found == provision_finding::other_run);
    CHECK(refused->report.masters[0].detail.find(its_marker(sim.master(0))->group) != std::string::npos);
    provision_options options = changing;
    options.takeover = true;
    const auto run = mine.run(sim, options);
    INFO(run->report);
    REQUIRE_FALSE(run->error);
    CHECK(run->report.floor + 1'000'000 >= shown_by(sim.master(1)) + 7'200'000'000);
    end_provision(sim, stopped);
    INFO(stopped->report);
    CHECK(stopped->error);
    check_armed(sim, mine.to, run->report.group);
    for (const std::size_t each : mine.from)
    {
        const bool leaves = std::find(mine.to.begin(), mine.to.end(), each) == mine.to.end();
        CHECK(is_retired(sim.master(each)) == leaves);
    }
}

TEST_CASE("change: a run whose group was replaced while it waited leaves the new group as it is", "[guarded]")
{
    simulation sim{6};
    make_old_group(sim);
    const change_of mine{{0, 1, 2}, {0, 1, 4}};
    provision_options options = changing;
    options.max_ttl = 20 * group_ttl;
    const auto waiting = mine.begin(sim, options);
    run_until_moved(sim, mine);
    constexpr provision_options retiring{.action = provision_action::retire};
    REQUIRE_FALSE(end_provision(sim, begin_provision(sim, listing(sim, mine.all()), retiring))->error);
    const std::string group = make_old_group(sim);
    REQUIRE_FALSE(waiting->done);
    end_provision(sim, waiting);
    INFO(waiting->report);
    CHECK(waiting->error == errc::provisioning_failed);
    CHECK(waiting->report.masters[0].found == provision_finding::changed);
    check_armed(sim, {0, 1, 2}, group);
}

TEST_CASE("change: a takeover that was interrupted is continued", "[guarded]")
{
    bool cancelled = true;
    for (std::size_t steps = 0; cancelled; steps += 3)
    {
        CAPTURE(steps);
        simulation sim{6};
        make_old_group(sim);
        const change_of others{{0, 1, 2}, {0, 1, 4}};
        const auto stopped = others.begin(sim);
        run_until_moved(sim, others);
        stopped->cancel.emit(asio::cancellation_type::terminal);
        end_provision(sim, stopped);
        const change_of mine{{0, 1, 2, 4}, {1, 2, 3}};
        provision_options options = changing;
        options.takeover = true;
        const auto run = mine.begin(sim, options);
        for (std::size_t step = 0; step < steps && !run->done; ++step)
        {
            sim.step();
        }
        cancelled = !run->done;
        run->cancel.emit(asio::cancellation_type::terminal);
        end_provision(sim, run);
        sim.run_until_idle();
        if (sim.count("arm") > 0)
        {
            break;
        }
        const auto next = mine.run(sim, options);
        INFO(next->report);
        REQUIRE_FALSE(next->error);
        check_armed(sim, mine.to, next->report.group);
    }
}

TEST_CASE("change: an unfinished group of other masters is taken over without a change", "[guarded]")
{
    simulation sim{4};
    const auto stopped = begin_provision(sim, listing(sim, {0, 1, 2}), usual_options);
    REQUIRE(sim.run_until([&] { return sim.master(2).count("quarantine") == 1; }, 1min));
    stopped->cancel.emit(asio::cancellation_type::terminal);
    end_provision(sim, stopped);
    sim.run_until_idle();
    CHECK(one_replaced.run(sim)->error);
    provision_options options = usual_options;
    options.takeover = true;
    const auto run = one_replaced.run(sim, options);
    INFO(run->report);
    REQUIRE_FALSE(run->error);
    check_armed(sim, one_replaced.to, run->report.group);
    CHECK(is_retired(sim.master(0)));
}

TEST_CASE("change: runs at once make one group, however their commands interleave", "[guarded][scenario-85]")
{
    const auto seed = GENERATE(range(1, 100));
    CAPTURE(seed);
    simulation sim{6, static_cast<std::uint64_t>(seed)};
    make_old_group(sim);
    const change_of what = seed % 2 == 0 ? one_replaced : change_of{{0, 1, 2}, {0, 1, 2, 3, 4}};
    const auto below = [&sim](std::size_t bound)
    { return std::chrono::microseconds{sim.world().random_below(bound)}; };
    std::vector<std::shared_ptr<provision_run>> runs;
    const auto all_done = [&runs]
    { return std::all_of(runs.begin(), runs.end(), [](const auto& each) { return each->done; }); };
    const clock::time_point started = sim.now();
    while (runs.size() < 3 || !all_done())
    {
        REQUIRE(sim.now() < started + 1min);
        if (runs.size() < 3 && sim.world().random_below(10) == 0)
        {
            runs.push_back(what.begin(sim));
        }
        for (const auto& each : sim.masters())
        {
            each->network.there = below(2000);
            each->network.back = below(2000);
        }
        sim.run_for(below(200));
    }
    std::set<std::string> groups;
    for (const auto& each : runs)
    {
        INFO(each->report);
        CHECK((!each->error || each->report.outcome == provision_outcome::incomplete));
        CHECK(each->report.floor <= largest_floor(sim));
        groups.insert(each->report.group);
    }
    CHECK(groups.size() == 1);
    check_armed(sim, what.to, runs.front()->report.group);
}

} // namespace redlock::test
