// SPDX-License-Identifier: BSL-1.0
// Which masters an operator can arm, and from which a marker is deleted, by what each has shown.
#include "core/arming_plan.hpp"

#include "unit/core/provision_plans.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using core::arming_order;
using core::incarnation_end;
using core::marker_state;
using core::provision_plan;
using core::provision_sight;
using core::provision_step;

const std::string armed_group = "0123456789abcdef";
const std::vector<std::string> member_names{"redis://a:1", "redis://b:1", "redis://c:1"};

/// A master with its data, without a marker.
provision_sight bare_master()
{
    provision_sight seen;
    seen.replication_id = replication_id('1');
    seen.maxmemory_policy = "noeviction";
    seen.members = core::to_text(core::member_record{armed_group, member_names});
    seen.has_floor = true;
    seen.largest = 7;
    return seen;
}

/// A server without keys.
provision_sight empty_server()
{
    provision_sight seen = bare_master();
    seen.members.reset();
    seen.largest.reset();
    seen.has_floor = false;
    return seen;
}

core::marker member_marker(
    std::uint32_t seat, marker_state state = marker_state::armed,
    incarnation_end why = incarnation_end::created)
{
    return {
        .group = armed_group,
        .seat = seat,
        .masters = 3,
        .max_ttl = 60s,
        .policy = core::arming_policy::by_hand,
        .state = state,
        .why = why,
        .nonce = "00000000000000aa",
        .replication_id = replication_id('1')};
}

provision_sight member_with(const core::marker& its)
{
    provision_sight seen = bare_master();
    seen.marker = core::to_text(its);
    return seen;
}

provision_sight armed_member(std::uint32_t seat)
{
    return member_with(member_marker(seat));
}

provision_sight restarted_member(std::uint32_t seat)
{
    provision_sight seen = armed_member(seat);
    seen.replication_id = replication_id('2');
    return seen;
}

provision_sight quarantined_member(std::uint32_t seat, incarnation_end why = incarnation_end::stale)
{
    return member_with(member_marker(seat, marker_state::quarantine, why));
}

provision_sight absent_master()
{
    provision_sight seen;
    seen.is_known = false;
    return seen;
}

arming_order by_operator()
{
    return {.names = member_names};
}

arming_order again(std::chrono::milliseconds max_ttl = {})
{
    return {.names = member_names, .group = armed_group, .accepts_losses = true, .max_ttl = max_ttl};
}

/// A member of a group whose masters clients arm by the clocks. Its present run is `run`; that of its marker is 1.
provision_sight left_to_clocks(std::uint32_t seat, char run)
{
    core::marker its = member_marker(seat);
    its.policy = core::arming_policy::clocks;
    provision_sight seen = member_with(its);
    seen.replication_id = replication_id(run);
    return seen;
}

} // namespace

TEST_CASE("arming: a quorum that was restarted with its data is armed by the operator", "[guarded]")
{
    SECTION("all of them, some of which a client has put into quarantine")
    {
        const provision_plan made = plan_arming(
            std::vector{restarted_member(1), quarantined_member(2), restarted_member(3)}, by_operator());
        CHECK(made.next == provision_step::proceed);
        CHECK(made.group == armed_group);
        CHECK(made.max_ttl == 60s);
        CHECK(made.policy == core::arming_policy::by_hand);
        CHECK(findings(made) == std::vector(3, provision_finding::restarted));
        CHECK_FALSE(made.masters[0].keeps);
        CHECK(made.masters[0].why == incarnation_end::stale);
        CHECK(made.masters[1].keeps == member_marker(2, marker_state::quarantine, incarnation_end::stale));
        CHECK_FALSE(made.may_skip_wait);
    }
    SECTION("while one gives no answer")
    {
        const provision_plan made = plan_arming(
            std::vector{restarted_member(1), absent_master(), quarantined_member(3)}, by_operator());
        CHECK(made.next == provision_step::proceed);
        CHECK_FALSE(made.masters[1].takes_part);
        CHECK(made.masters[2].seat == 3);
    }
    SECTION("while one has lost its data, which stays as it is")
    {
        const provision_plan made =
            plan_arming(std::vector{restarted_member(1), empty_server(), restarted_member(3)}, by_operator());
        CHECK(made.next == provision_step::proceed);
        CHECK(made.masters[1].found == provision_finding::emptied);
        CHECK_FALSE(made.masters[1].takes_part);
    }
    SECTION("and a run that was interrupted when one was armed continues")
    {
        const provision_plan made =
            plan_arming(std::vector{armed_member(1), absent_master(), quarantined_member(3)}, by_operator());
        CHECK(made.next == provision_step::proceed);
    }
    SECTION("and one that is armed keeps its marker")
    {
        const provision_plan made = plan_arming(
            std::vector{restarted_member(1), armed_member(2), restarted_member(3)}, by_operator());
        CHECK(made.next == provision_step::proceed);
        CHECK(made.masters[1].keeps == member_marker(2));
    }
}

TEST_CASE("arming: the operator arms nothing that clients can arm", "[guarded]")
{
    SECTION("because enough masters are armed")
    {
        const arming_order order = GENERATE(by_operator(), again());
        const provision_sight unarmed = GENERATE(restarted_member(2), empty_server());
        const provision_plan made =
            plan_arming(std::vector{armed_member(1), unarmed, armed_member(3)}, order);
        CHECK(made.next == provision_step::complete);
        CHECK(made.masters[1].found == provision_finding::in_service);
    }
    SECTION("because enough of an even number are armed, though no quorum")
    {
        const std::vector<std::string> names{"redis://a:1", "redis://b:1", "redis://c:1", "redis://d:1"};
        std::vector<provision_sight> four;
        for (std::uint32_t seat = 1; seat <= 4; ++seat)
        {
            core::marker its = member_marker(seat);
            its.masters = 4;
            four.push_back(member_with(its));
            four.back().members = core::to_text(core::member_record{armed_group, names});
            four.back().replication_id = replication_id(seat <= 2 ? '1' : '2');
        }
        const provision_plan made = plan_arming(four, {.names = names});
        CHECK(made.next == provision_step::refuse);
        CHECK(made.masters[2].found == provision_finding::in_service);
    }
    SECTION("because the policy is clocks")
    {
        const provision_plan made = plan_arming(
            std::vector{left_to_clocks(1, '2'), left_to_clocks(2, '2'), left_to_clocks(3, '2')},
            by_operator());
        CHECK(made.next == provision_step::refuse);
        CHECK(findings(made) == std::vector(3, provision_finding::in_service));
    }
    SECTION("because all are armed")
    {
        const provision_plan made =
            plan_arming(std::vector{armed_member(1), armed_member(2), armed_member(3)}, by_operator());
        CHECK(made.next == provision_step::complete);
    }
}

TEST_CASE(
    "arming: half of an even number of masters are armed again, since new clients find no group", "[guarded]")
{
    const std::vector<std::string> pair{"redis://a:1", "redis://b:1"};
    core::marker its = member_marker(1);
    its.masters = 2;
    provision_sight armed = member_with(its);
    armed.members = core::to_text(core::member_record{armed_group, pair});
    arming_order order = again();
    order.names = pair;
    const provision_plan made = plan_arming(std::vector{armed, empty_server()}, order);
    CHECK(made.next == provision_step::proceed);
    CHECK(findings(made) == std::vector{provision_finding::armed, provision_finding::emptied});

    its.seat = 2;
    its.state = marker_state::quarantine;
    its.why = incarnation_end::emptied;
    const provision_plan shown = plan_arming(std::vector{armed, member_with(its)}, order);
    CHECK(shown.next == provision_step::refuse);
    CHECK(shown.masters[1].found == provision_finding::in_service);
}

TEST_CASE(
    "arming: under clocks, one that clients have armed doesn't count as restarted with its data", "[guarded]")
{
    const provision_plan made = plan_arming(
        std::vector{left_to_clocks(1, '1'), absent_master(), left_to_clocks(3, '2')}, by_operator());
    CHECK(made.masters[0].found == provision_finding::armed);
    CHECK(made.next == provision_step::refuse);
    CHECK(made.obstacle == "too few masters were restarted with their data (1 of 3; 2 are needed)");
}

TEST_CASE("arming: losses of a majority are refused unless the group is named", "[guarded]")
{
    const auto [lost, finding] = GENERATE(table<provision_sight, provision_finding>(
        {{empty_server(), provision_finding::emptied},
         {quarantined_member(2, incarnation_end::emptied), provision_finding::emptied},
         {quarantined_member(2, incarnation_end::clock), provision_finding::clock_ahead},
         {quarantined_member(2, incarnation_end::created), provision_finding::unfinished}}));
    const std::vector<provision_sight> seen{restarted_member(1), lost, empty_server()};
    const provision_plan refused = plan_arming(seen, by_operator());
    CHECK(refused.next == provision_step::refuse);
    CHECK(
        findings(refused) == std::vector{provision_finding::restarted, finding, provision_finding::emptied});
    CHECK(refused.obstacle == "too few masters were restarted with their data (1 of 3; 2 are needed)");
    const provision_plan made = plan_arming(seen, again());
    CHECK(made.next == provision_step::proceed);
    CHECK(made.masters[0].why == incarnation_end::stale);
    CHECK(made.masters[1].keeps.has_value() == lost.marker.has_value());
    CHECK(made.masters[2].why == incarnation_end::emptied);
    CHECK(made.masters[2].takes_part);
}

TEST_CASE("arming: a restarted master without its counters has lost its data", "[guarded]")
{
    provision_sight without = GENERATE(restarted_member(2), quarantined_member(2), armed_member(2));
    without.has_floor = false;
    const provision_plan made =
        plan_arming(std::vector{restarted_member(1), without, absent_master()}, by_operator());
    CHECK(made.next == provision_step::refuse);
    CHECK(made.masters[1].found == provision_finding::emptied);
}

TEST_CASE("arming: a group of which nothing is left needs its max_ttl", "[guarded]")
{
    const std::vector<provision_sight> seen{empty_server(), empty_server(), empty_server()};
    const provision_plan refused = plan_arming(seen, again());
    CHECK(refused.next == provision_step::refuse);
    CHECK(refused.obstacle.starts_with("no master shows the max_ttl of group 0123456789abcdef: "));
    const provision_plan made = plan_arming(seen, again(60s));
    CHECK(made.next == provision_step::proceed);
    CHECK(made.group == armed_group);
    CHECK(made.max_ttl == 60s);
    CHECK(made.masters[2].seat == 3);
    // Without the name it is no group at all.
    CHECK(findings(plan_arming(seen, by_operator())) == std::vector(3, provision_finding::unmarked));
}

TEST_CASE("arming: fewer than a quorum of answers are refused", "[guarded]")
{
    const provision_plan made =
        plan_arming(std::vector{absent_master(), quarantined_member(2), absent_master()}, again());
    CHECK(made.next == provision_step::refuse);
    CHECK(made.obstacle == "too few masters answer (1 of 3; 2 are needed): start the others");
}

TEST_CASE("arming: one master of something else is enough to refuse", "[guarded]")
{
    const arming_order order = GENERATE(by_operator(), again());
    const auto [expected, spoil] = GENERATE(table<provision_finding, std::function<void(provision_sight&)>>({
        {provision_finding::replica, [](provision_sight& of) { of.is_master = false; }},
        {provision_finding::evicts, [](provision_sight& of) { of.maxmemory_policy = "allkeys-lru"; }},
        {provision_finding::unreadable, [](provision_sight& of) { of.has_foreign_key = true; }},
        {provision_finding::unreadable, [](provision_sight& of) { of.marker = "redlock 2 ..."; }},
        {provision_finding::other_database, [](provision_sight& of) { of.other_database = 3; }},
        {provision_finding::other_group,
         [](provision_sight& of) { of.marker = core::to_text(member_marker(1, marker_state::retired)); }},
        {provision_finding::other_group,
         [](provision_sight& of)
         {
             core::marker its = member_marker(3);
             its.group = "fedcba9876543210";
             of.marker = core::to_text(its);
         }},
        {provision_finding::other_group, [](provision_sight& of)
         { of.marker = core::to_text(member_marker(2)); }}, // The seat of another one.
    }));
    CAPTURE(to_string(expected));
    provision_sight unfit = restarted_member(3);
    spoil(unfit);
    const provision_plan made =
        plan_arming(std::vector{restarted_member(1), restarted_member(2), unfit}, order);
    CHECK(made.next == provision_step::refuse);
    CHECK(made.masters[2].found == expected);
    CHECK(core::prevents_arming(expected));
    CHECK(made.masters[0].found == provision_finding::restarted);
}

TEST_CASE("arming: another name, list or max_ttl than that of the group is refused", "[guarded]")
{
    arming_order order = by_operator();
    SECTION("the name")
    {
        order.group = "fedcba9876543210";
    }
    SECTION("the list")
    {
        order.names[2] = "redis://d:1";
    }
    SECTION("the max_ttl")
    {
        order.max_ttl = 61s;
    }
    provision_sight second = restarted_member(2);
    SECTION("and one has no marker") // Its record says as much.
    {
        order.names[2] = "redis://d:1";
        second.marker.reset();
    }
    const provision_plan made =
        plan_arming(std::vector{restarted_member(1), second, restarted_member(3)}, order);
    CHECK(made.next == provision_step::refuse);
    CHECK(findings(made) == std::vector(3, provision_finding::other_group));
}

TEST_CASE(
    "arming: without a record, the seats are those of the markers, then of the sorted names", "[guarded]")
{
    const std::vector<std::string> reversed(member_names.rbegin(), member_names.rend());
    arming_order order = again(60s);
    order.names = reversed;
    const auto seats = [&order](const std::vector<provision_sight>& seen)
    {
        const provision_plan made = plan_arming(seen, order);
        CHECK(made.next == provision_step::proceed);
        return std::vector{made.masters[0].seat, made.masters[1].seat, made.masters[2].seat};
    };
    CHECK(seats({empty_server(), empty_server(), empty_server()}) == std::vector<std::uint32_t>{3, 2, 1});
    provision_sight marked = quarantined_member(GENERATE(1U, 2U, 3U), incarnation_end::emptied);
    marked.members.reset();
    const std::uint32_t its = core::parse_marker(*marked.marker)->seat;
    CHECK(
        seats({marked, empty_server(), empty_server()}) ==
        std::vector<std::uint32_t>{its, its == 3 ? 2U : 3U, its == 1 ? 2U : 1U});
    SECTION("but a seat that two markers show is refused")
    {
        const provision_plan made = plan_arming(std::vector{marked, marked, empty_server()}, order);
        CHECK(made.next == provision_step::refuse);
        CHECK(made.masters[0].found == provision_finding::emptied);
        CHECK(made.masters[1].found == provision_finding::other_group);
    }
}

TEST_CASE("arming: the floor is above all counters and the latest clock by two hours", "[guarded]")
{
    const std::uint64_t two_hours = 7'200'000'000;
    std::vector<provision_sight> seen{bare_master(), bare_master(), absent_master()};
    seen[0].clock = 1'000s;
    seen[1].clock = 2'000s;
    seen[2].clock = 3'000s;
    CHECK(core::floor_by_clocks(seen) == 2'000'000'000 + two_hours);
    seen[0].largest = 9'999'999'999;
    CHECK(core::floor_by_clocks(seen) == 9'999'999'999);
}

TEST_CASE("retirement: each marker is deleted, of whatever group and state", "[guarded]")
{
    core::marker other = member_marker(2, GENERATE(marker_state::armed, marker_state::retired));
    other.group = "fedcba9876543210";
    provision_sight evicting = member_with(other);
    evicting.maxmemory_policy = "allkeys-lru";
    evicting.other_database = 3;
    const provision_plan made =
        core::plan_retirement(std::vector{restarted_member(1), evicting, empty_server()});
    CHECK(made.next == provision_step::proceed);
    CHECK(
        findings(made) ==
        std::vector{provision_finding::marked, provision_finding::marked, provision_finding::unmarked});
    CHECK(made.masters[1].takes_part);
    CHECK_FALSE(made.masters[2].takes_part);
    CHECK(core::plan_retirement(std::vector{empty_server()}).next == provision_step::complete);
}

TEST_CASE("retirement: a server whose markers can't be deleted is refused", "[guarded]")
{
    const auto [expected, spoil] = GENERATE(table<provision_finding, std::function<void(provision_sight&)>>({
        {provision_finding::unknown, [](provision_sight& of) { of.is_known = false; }},
        {provision_finding::replica, [](provision_sight& of) { of.is_master = false; }},
        {provision_finding::unreadable, [](provision_sight& of) { of.has_foreign_key = true; }},
        {provision_finding::unreadable, [](provision_sight& of) { of.marker = "redlock 2 ..."; }},
        {provision_finding::other_database,
         [](provision_sight& of)
         {
             of.other_database = 3;
             of.marker.reset();
         }},
    }));
    provision_sight unfit = armed_member(2);
    spoil(unfit);
    const provision_plan made = core::plan_retirement(std::vector{armed_member(1), unfit});
    CHECK(made.next == provision_step::refuse);
    CHECK(findings(made) == std::vector{provision_finding::marked, expected});
}

TEST_CASE(
    "arming: a group that was moved and never armed is left to the change of the group",
    "[guarded][scenario-82]")
{
    std::vector<provision_sight> seen;
    for (std::uint32_t seat = 1; seat <= 3; ++seat)
    {
        seen.push_back(quarantined_member(seat, incarnation_end::created));
        seen.back().replaced = "of before";
    }
    const provision_plan made = plan_arming(seen, again());
    CHECK(made.next == provision_step::refuse);
    CHECK(findings(made) == std::vector(3, provision_finding::other_run));
    CHECK(made.masters[0].detail == "the change of its group isn't finished");
    SECTION("unless one of its masters was armed since")
    {
        seen[1] = restarted_member(2);
        CHECK(plan_arming(seen, again()).next == provision_step::proceed);
    }
    SECTION("a new group has no change")
    {
        for (provision_sight& each : seen)
        {
            each.replaced.reset();
        }
        CHECK(plan_arming(seen, again()).next == provision_step::proceed);
    }
}

} // namespace redlock::test
