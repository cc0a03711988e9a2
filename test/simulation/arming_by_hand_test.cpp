// SPDX-License-Identifier: BSL-1.0
// What an operator does with provisioning, in virtual time: masters are armed by hand, and markers deleted.
#include "provision_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace redlock::test
{

namespace
{

constexpr provision_options for_operator{.max_ttl = group_ttl, .policy = arming_policy::by_hand};
constexpr provision_options by_operator{.action = provision_action::arm};
constexpr provision_options once_more{.action = provision_action::arm_again};

/// Returns what the clock of a master shows, in microseconds, plus two hours.
std::uint64_t later_than(const sim_master& at)
{
    const auto shown = std::chrono::duration_cast<std::chrono::microseconds>(at.now().time_since_epoch());
    return static_cast<std::uint64_t>((shown + 2h).count());
}

/// Returns the name of the group that was made of all masters.
std::string make_group(simulation& sim, provision_options options = for_operator)
{
    const auto made = end_provision(sim, begin_provision(sim, options));
    REQUIRE_FALSE(made->error);
    return made->report.group;
}

redlock::config naming(simulation& sim, const std::string& group)
{
    redlock::config with = sim.options();
    with.guarded.emplace();
    with.guarded->group = group;
    return with;
}

std::uint64_t token_in(const outcome_ptr& got)
{
    return got->lease.fencing_token().value_or(0);
}

std::shared_ptr<provision_run> arm_again(simulation& sim, const std::string& group)
{
    return end_provision(sim, begin_provision(sim, naming(sim, group), once_more));
}

} // namespace

TEST_CASE(
    "arming by hand: restarted masters are armed after the wait, above counters and clocks", "[guarded]")
{
    simulation sim{3};
    const std::string group = make_group(sim);
    for (const auto& each : sim.masters())
    {
        restart(*each, true);
    }
    const clock::time_point started = sim.now();
    const auto run = begin_provision(sim, by_operator);
    sim.run_for(group_ttl / 2);
    CHECK(armed_masters(sim) == 0);
    // Read when the wait is over.
    const std::uint64_t counter = later_than(sim.master(1)) + 9'000'000'000;
    const bool is_above = GENERATE(true, false);
    if (is_above)
    {
        sim.master(1).set_field(fence_key, "17", std::to_string(counter));
    }
    end_provision(sim, run);
    INFO(run->report);
    REQUIRE_FALSE(run->error);
    CHECK(run->report.outcome == provision_outcome::provisioned);
    CHECK(run->report.group == group);
    CHECK(sim.now() - started >= provisioning_wait(group_ttl, sim.options().drift_factor));
    check_group(sim);
    for (const auto& each : sim.masters())
    {
        CHECK(its_marker(*each)->why == core::incarnation_end::stale);
        CHECK(floor_at(*each) == run->report.floor);
        CHECK(floor_at(*each) <= std::max<std::uint64_t>(later_than(*each), is_above ? counter : 0));
        CHECK(floor_at(*each) + 1'000'000 >= later_than(*each));
        CHECK(each->last("arm").at - each->last("quarantine").at >= group_ttl);
    }
    CHECK((run->report.floor == counter) == is_above);
    CHECK(
        end_provision(sim, begin_provision(sim, by_operator))->report.outcome == provision_outcome::complete);
}

TEST_CASE("arming by hand: nothing is armed if a master changes during the wait", "[guarded]")
{
    simulation sim{3};
    make_group(sim);
    for (const auto& each : sim.masters())
    {
        restart(*each, true);
    }
    const auto run = begin_provision(sim, by_operator);
    REQUIRE(sim.run_until([&] { return sim.master(2).count("quarantine") == 2; }, 1min));
    sim.run_for(group_ttl / 2);
    restart(sim.master(1), GENERATE(true, false));
    end_provision(sim, run);
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.outcome == provision_outcome::unfinished);
    CHECK(run->report.masters[1].found == provision_finding::changed);
    CHECK(armed_masters(sim) == 0);
    const auto next = end_provision(sim, begin_provision(sim, by_operator));
    INFO(next->report);
    CHECK_FALSE(next->error);
    CHECK(armed_masters(sim) >= 2);
}

TEST_CASE("arming by hand: empty servers don't take the places of members that are in use", "[guarded]")
{
    simulation sim{5};
    const auto with = [&sim](std::initializer_list<std::size_t> these)
    {
        redlock::config list = sim.options();
        list.masters.clear();
        for (const std::size_t each : these)
        {
            list.masters.push_back(sim.options().masters[each]);
        }
        return list;
    };
    const auto made = end_provision(sim, begin_provision(sim, with({0, 1, 2})));
    REQUIRE_FALSE(made->error);
    redlock::config guarded = with({0, 1, 2});
    guarded.guarded.emplace();
    const lock_manager client = sim.make_connected_manager(guarded);
    restart(sim.master(0), false);
    REQUIRE(sim.run_until([&] { return sim.master(0).count("quarantine") == 2; }, 1min));
    // Two wrong addresses.
    redlock::config wrong = with({0, 3, 4});
    wrong.guarded.emplace();
    wrong.guarded->group = made->report.group;
    const auto again = end_provision(sim, begin_provision(sim, wrong, once_more));
    INFO(again->report);
    CHECK(again->error == errc::provisioning_failed);
    CHECK(again->report.outcome == provision_outcome::unchanged);
    CHECK_FALSE(its_marker(sim.master(3)));
}

TEST_CASE("arming by hand: a master that gives no answer is left out", "[guarded]")
{
    simulation sim{3};
    const std::string group = make_group(sim);
    for (const auto& each : sim.masters())
    {
        restart(*each, true);
    }
    sim.master(2).hang();
    const bool is_again = GENERATE(false, true);
    const auto run = is_again ? arm_again(sim, group) : end_provision(sim, begin_provision(sim, by_operator));
    INFO(run->report);
    REQUIRE_FALSE(run->error);
    CHECK(run->report.outcome == provision_outcome::provisioned);
    CHECK(run->report.masters[2].reason);
    CHECK(armed_masters(sim) == 2);
}

TEST_CASE("arming by hand: an emptied majority is refused, and armed again under its name", "[guarded]")
{
    simulation sim{3};
    const std::string group = make_group(sim, GENERATE(usual_options, for_operator));
    const core::arming_policy policy = its_marker(sim.master(0))->policy;
    const bool keeps_one = GENERATE(true, false);
    restart(sim.master(0), keeps_one);
    restart(sim.master(1), false);
    restart(sim.master(2), false);
    const auto refused = end_provision(sim, begin_provision(sim, by_operator));
    CHECK(refused->error == errc::provisioning_failed);
    CHECK(refused->report.outcome == provision_outcome::unchanged);
    const auto misnamed = arm_again(sim, "00000000000000ff");
    CHECK(misnamed->error == errc::provisioning_failed);
    CHECK(misnamed->report.outcome == provision_outcome::unchanged);

    provision_options options = once_more;
    if (!keeps_one)
    {
        options.max_ttl = group_ttl;
        options.policy = policy;
    }
    const auto run = end_provision(sim, begin_provision(sim, naming(sim, group), options));
    INFO(run->report);
    REQUIRE_FALSE(run->error);
    CHECK(run->report.group == group);
    check_group(sim);
    for (std::size_t master = 0; master < 3; ++master)
    {
        sim_master& its = sim.master(master);
        CHECK(its_marker(its)->group == group);
        CHECK(its_marker(its)->seat == master + 1);
        CHECK(its_marker(its)->policy == policy);
        CHECK(floor_at(its) == run->report.floor);
        CHECK(its.last("arm").at - its.last("quarantine").at >= group_ttl);
    }
    CHECK(its_marker(sim.master(1))->why == core::incarnation_end::emptied);
    CHECK(run->report.floor + 1'000'000 >= later_than(sim.master(0)));
}

TEST_CASE(
    "arming by hand: clients follow a group that was armed again with other values",
    "[guarded][scenario-113]")
{
    simulation sim{3};
    const std::string group = make_group(sim, usual_options);
    lock_manager locks = sim.make_connected_manager(naming(sim, group));
    for (const auto& each : sim.masters())
    {
        restart(*each, false);
    }
    provision_options other = once_more;
    other.max_ttl = GENERATE(group_ttl * 20, group_ttl / 2);
    other.policy = GENERATE(arming_policy::clocks, arming_policy::by_hand);
    const auto run = end_provision(sim, begin_provision(sim, naming(sim, group), other));
    INFO(run->report);
    REQUIRE_FALSE(run->error);
    sim.run_for(3s);
    const outcome_ptr got =
        sim.acquire(locks, "stock", {.ttl = std::chrono::milliseconds{other.max_ttl}, .wait = 0ms});
    REQUIRE(sim.finish(got));
    REQUIRE_FALSE(got->error);
    CHECK(token_in(got) > run->report.floor);
    const outcome_ptr too_long = sim.acquire(locks, "other", {.ttl = 2 * other.max_ttl, .wait = 0ms});
    REQUIRE(sim.finish(too_long));
    CHECK(too_long->error == errc::invalid_ttl);

    SECTION("a master is in quarantine for as long as its locks last")
    {
        restart(sim.master(0), GENERATE(false, true));
        const clock::time_point lost = sim.now();
        REQUIRE(sim.run_until([&] { return !is_armed(sim.master(0)) && its_marker(sim.master(0)); }, 2s));
        REQUIRE(sim.run_until([&] { return is_armed(sim.master(0)); }, 10s));
        CHECK(sim.now() - lost >= other.max_ttl);
        CHECK(its_marker(sim.master(0))->max_ttl == other.max_ttl);
        CHECK(its_marker(sim.master(0))->policy == other.policy);
    }
    SECTION("its policy decides who arms the masters after a restart of all")
    {
        for (const auto& each : sim.masters())
        {
            restart(*each, true);
        }
        sim.run_for(20s);
        CHECK(armed_masters(sim) == (other.policy == arming_policy::clocks ? 3 : 0));
    }
}

TEST_CASE(
    "arming by hand: a client that knows other values of its group changes no master of it", "[guarded]")
{
    simulation sim{3};
    const std::string group = make_group(sim, usual_options);
    lock_manager locks = sim.make_connected_manager(naming(sim, group));
    for (const auto& each : sim.masters())
    {
        restart(*each, false);
    }
    sim.run_for(2s);
    const auto max_ttl = group_ttl * 20;
    const auto put = [&](std::size_t index, core::marker_state state)
    {
        core::member_record all{group, {}};
        for (const redlock::master& each : sim.options().masters)
        {
            all.names.push_back(each.name());
        }
        const core::marker its{
            .group = group,
            .seat = static_cast<std::uint32_t>(index + 1),
            .masters = 3,
            .max_ttl = max_ttl,
            .policy = arming_policy::clocks,
            .state = state,
            .why = core::incarnation_end::emptied,
            .nonce = "00000000000000aa",
            .replication_id = sim.master(index).replication_id};
        sim.master(index).set(guard_key, core::to_text(its));
        sim.master(index).set(members_key, core::to_text(all));
        sim.master(index).set_field(fence_key, "floor", "2000");
    };
    for (const auto& each : sim.masters())
    {
        each->forget_log();
    }
    error_code expected;
    SECTION("if one was restarted, and the others can't be reached")
    {
        put(2, core::marker_state::armed);
        for (const std::size_t index : {0U, 1U})
        {
            sim.master(index).door = entrance::refuses;
            sim.master(index).break_connections();
        }
        restart(sim.master(2), true);
        expected = master_errc::other_group;
    }
    SECTION("if one is empty, and the others are in quarantine")
    {
        put(0, core::marker_state::quarantine);
        put(1, core::marker_state::quarantine);
        expected = master_errc::not_provisioned;
    }
    sim.run_for(3s);
    CHECK(sim.count("quarantine") == 0);
    CHECK(sim.count("arm") == 0);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 100ms, .wait = 0ms});
    REQUIRE(sim.finish(got));
    CHECK(got->report.masters()[2].reason == expected);
    for (const std::size_t index : {0U, 1U})
    {
        put(index, core::marker_state::armed);
        sim.master(index).door = entrance::open;
    }
    REQUIRE(sim.run_until([&] { return is_armed(sim.master(2)); }, 20s));
    CHECK(its_marker(sim.master(2))->max_ttl == max_ttl);
}

TEST_CASE("arming by hand: an armed master stays armed while the others are armed again", "[guarded]")
{
    simulation sim{3};
    const std::string group = make_group(sim);
    restart(sim.master(1), false);
    restart(sim.master(2), false);
    const core::marker before = its_marker(sim.master(0)).value();
    const auto run = begin_provision(sim, naming(sim, group), once_more);
    while (!run->done)
    {
        sim.run_for(1ms);
        CHECK(its_marker(sim.master(0)) == before);
    }
    INFO(run->report);
    CHECK_FALSE(run->error);
    check_group(sim);
}

TEST_CASE("arming by hand: a master that is armed already may have no memory left", "[guarded]")
{
    simulation sim{3};
    const std::string group = make_group(sim);
    restart(sim.master(1), false);
    restart(sim.master(2), false);
    sim.master(0).habits["SET"] = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    const auto run = end_provision(sim, begin_provision(sim, naming(sim, group), once_more));
    INFO(run->report);
    CHECK_FALSE(run->error);
    check_group(sim);
}

TEST_CASE("arming by hand: a quorum is armed although another master refuses to be changed", "[guarded]")
{
    const bool is_again = GENERATE(false, true);
    const bool is_in_quarantine = GENERATE(false, true);
    CAPTURE(is_again, is_in_quarantine);
    simulation sim{3};
    const std::string group = make_group(sim);
    for (const auto& each : sim.masters())
    {
        restart(*each, true);
    }
    if (is_in_quarantine)
    {
        const auto stopped = begin_provision(sim, by_operator);
        REQUIRE(sim.run_until([&] { return sim.count("quarantine") == 6; }, 1min));
        stopped->cancel.emit(asio::cancellation_type::terminal);
        end_provision(sim, stopped);
        sim.run_until_idle();
    }
    sim.master(1).habits["SET"] = "-NOREPLICAS Not enough good replicas to write.\r\n";
    const auto run = is_again ? arm_again(sim, group) : end_provision(sim, begin_provision(sim, by_operator));
    INFO(run->report);
    CHECK_FALSE(run->error);
    CHECK(run->report.outcome == provision_outcome::provisioned);
    CHECK(run->report.masters[1].found == provision_finding::unknown);
    CHECK(run->report.masters[1].reason == master_errc::no_replicas);
    CHECK(run->report.masters[1].detail.ends_with("(SET)"));
    CHECK(armed_masters(sim) == 2);
}

TEST_CASE("arming by hand: a master that gives no answer doesn't prolong the outage", "[guarded]")
{
    simulation sim{3};
    make_group(sim);
    for (const auto& each : sim.masters())
    {
        restart(*each, true);
    }
    sim.master(2).door = entrance::refuses;
    sim.master(2).break_connections();
    const auto run = end_provision(sim, begin_provision(sim, by_operator));
    INFO(run->report);
    CHECK_FALSE(run->error);
    const clock::duration outage = sim.master(0).last("arm").at - sim.master(0).last("quarantine").at;
    CHECK(outage < provisioning_wait(group_ttl, sim.options().drift_factor) + 50ms);
}

TEST_CASE("arming by hand: a master whose clock shows a distant year prevents it", "[guarded]")
{
    simulation sim{3};
    const std::string group = make_group(sim);
    for (const auto& each : sim.masters())
    {
        restart(*each, true);
    }
    sim.master(1).clock_of_its_own().jump(sim.now(), std::chrono::hours{24 * 365 * 286});
    const auto run = arm_again(sim, group);
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.masters[1].found == provision_finding::clock_ahead);
    CHECK(armed_masters(sim) == 0);
}

TEST_CASE("arming by hand: a cancellation at any moment is obeyed, and another run continues", "[guarded]")
{
    bool cancelled = true;
    for (std::size_t steps = 0; cancelled; steps += 3)
    {
        CAPTURE(steps);
        simulation sim{3};
        const std::string group = make_group(sim);
        restart(sim.master(0), true);
        restart(sim.master(1), false);
        restart(sim.master(2), false);
        const auto run = begin_provision(sim, naming(sim, group), once_more);
        for (std::size_t step = 0; step < steps && !run->done; ++step)
        {
            sim.step();
        }
        cancelled = !run->done;
        run->cancel.emit(asio::cancellation_type::terminal);
        end_provision(sim, run);
        const bool finished_first = !run->error && armed_masters(sim) == 3;
        CHECK((run->error == asio::error::operation_aborted || finished_first));
        const auto next = arm_again(sim, group);
        INFO(next->report);
        // If one was armed already, the clients arm the others.
        CHECK((!next->error || armed_masters(sim) == 2));
    }
}

TEST_CASE("retirement: the markers of all databases are deleted, and the counters are kept", "[guarded]")
{
    simulation sim{2};
    make_group(sim);
    sim.master(1).show_database(3);
    sim.master(1).set(guard_key, "of a copy that was swapped");
    sim.master(1).show_database(0);
    const auto run = end_provision(sim, begin_provision(sim, {.action = provision_action::retire}));
    INFO(run->report);
    REQUIRE_FALSE(run->error);
    CHECK(run->report.outcome == provision_outcome::retired);
    CHECK(run->report.group.empty());
    for (const auto& each : sim.masters())
    {
        CHECK_FALSE(each->value(guard_key));
        CHECK(floor_at(*each) == 1);
    }
    sim.master(1).show_database(3);
    CHECK_FALSE(sim.master(1).value(guard_key));
    sim.master(1).show_database(0);
    const auto again = end_provision(sim, begin_provision(sim, {.action = provision_action::retire}));
    CHECK_FALSE(again->error);
    CHECK(again->report.outcome == provision_outcome::complete);
}

TEST_CASE("retirement: needs no memory", "[guarded]")
{
    simulation sim{1};
    make_group(sim);
    sim.master(0).habits["SET"] = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    const auto run = end_provision(sim, begin_provision(sim, {.action = provision_action::retire}));
    INFO(run->report);
    CHECK_FALSE(run->error);
    CHECK_FALSE(sim.master(0).value(guard_key));
}

TEST_CASE("retirement: a marker that was changed since the look stays, and is reported", "[guarded]")
{
    simulation sim{2};
    make_group(sim);
    // The reply to the look of one master is on its way while the marker of the other one changes.
    sim.master(1).network.back = 50ms;
    for (const auto& each : sim.masters())
    {
        each->forget_log();
    }
    const auto run = begin_provision(sim, {.action = provision_action::retire});
    REQUIRE(sim.run_until([&] { return sim.master(1).count("look") == 1; }, 1min));
    REQUIRE(sim.master(0).count("look") == 1);
    sim.run_for(10ms);
    sim.master(0).set(guard_key, "of another run");
    end_provision(sim, run);
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.outcome == provision_outcome::unfinished);
    CHECK(run->report.masters[0].found == provision_finding::changed);
    CHECK(run->report.masters[1].found == provision_finding::unmarked);
    CHECK(sim.master(0).value(guard_key) == "of another run");
    CHECK_FALSE(sim.master(1).value(guard_key));
}

TEST_CASE("retirement: a failure at any step is reported, and another run continues", "[guarded]")
{
    const char* const what = GENERATE("look", "retire");
    const auto failing = GENERATE(
        scripted_answer{.bytes = "-NOPERM this user has no permissions to run the 'del' command\r\n"},
        scripted_answer{.bytes = ":-3\r\n"}, scripted_answer{.bytes = ":1\r\n", .nonsense = true},
        scripted_answer{.closes = true}, scripted_answer{});
    if (std::string_view{what} == "look" && failing.bytes == ":-3\r\n")
    {
        return; // A look has no such answer.
    }
    simulation sim{2};
    make_group(sim);
    sim.master(1).answer(what, failing);
    const auto run = end_provision(sim, begin_provision(sim, {.action = provision_action::retire}));
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.masters[1].reason);
    const bool is_look = std::string_view{what} == "look";
    CHECK((run->report.outcome == provision_outcome::unchanged) == is_look);
    CHECK(sim.master(0).value(guard_key).has_value() == is_look);
    CHECK_FALSE(end_provision(sim, begin_provision(sim, {.action = provision_action::retire}))->error);
    CHECK_FALSE(sim.master(1).value(guard_key));
}

} // namespace redlock::test
