// SPDX-License-Identifier: BSL-1.0
// What a change of a group does, by what each master has shown.
#include "core/change_plan.hpp"

#include "unit/core/provision_plans.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using core::change_order;
using core::incarnation_end;
using core::marker_state;
using core::provision_plan;
using core::provision_sight;
using core::provision_step;

const std::string old_name = "0123456789abcdef";
const std::string new_name = "fedcba9876543210";
const std::string run_name = "00000000000000ff";

const named_group old_group{old_name, {"a", "b", "c"}};
const named_group new_group{new_name, {"b", "c", "d"}, 30s};

/// The order of a change to the new group.
change_order to_new_group()
{
    return {{"b", "c", "d", "a"}, 3, 0, 30s, core::arming_policy::clocks};
}

provision_plan plan(shown_masters seen, const change_order& wanted = to_new_group())
{
    return core::plan_change(seen.in_order(wanted.names), wanted);
}

} // namespace

TEST_CASE("change: a group in use is replaced by one with another list")
{
    const provision_plan made = plan(shown_masters{old_group});
    CHECK(made.next == provision_step::begin);
    CHECK(made.group.empty());
    REQUIRE(made.replaced.size() == 1);
    CHECK(made.replaced[0].shown.group == old_name);
    CHECK(made.replaced[0].members == old_group.record());
    CHECK(core::longest_ttl(made) == 60s);
    CHECK(
        findings(made) == std::vector{
                              provision_finding::old_group, provision_finding::old_group,
                              provision_finding::unmarked, provision_finding::old_group});
    CHECK_FALSE(made.masters[2].leaves);
    CHECK(made.masters[3].leaves);
    for (const core::provision_seat& each : made.masters)
    {
        CHECK(each.takes_part);
        CHECK_FALSE(each.keeps);
    }
    const std::vector<std::string> members{"b", "c", "d"};
    CHECK(core::record_of(made, new_name, members) == new_group.record());
}

TEST_CASE("change: the seats are those of the sorted names, whatever the order of the list")
{
    change_order reordered = to_new_group();
    reordered.names = {"d", "b", "c", "a"};
    const provision_plan made = plan(shown_masters{old_group}, reordered);
    CHECK(made.masters[0].seat == 3);
    CHECK(made.masters[1].seat == 1);
    CHECK(made.masters[2].seat == 2);
}

TEST_CASE("change: another max_ttl, another policy, more and fewer masters replace the group, too")
{
    const change_order wanted = GENERATE(
        change_order{{"a", "b", "c"}, 3, 0, 30s, core::arming_policy::clocks},
        change_order{{"c", "b", "a"}, 3, 0, 60s, core::arming_policy::by_hand},
        change_order{{"a", "b", "c", "d", "e"}, 5, 0, 60s, core::arming_policy::clocks},
        change_order{{"a", "b", "c"}, 1, 0, 60s, core::arming_policy::clocks});
    const provision_plan made = plan(shown_masters{old_group}, wanted);
    CHECK(made.next == provision_step::begin);
    CHECK(made.max_ttl == wanted.max_ttl);
    CHECK(made.policy == wanted.policy);
}

TEST_CASE("change: a group that is as it is wanted already is complete")
{
    const provision_plan made =
        plan(shown_masters{old_group}, {{"c", "a", "b"}, 3, 0, 60s, core::arming_policy::clocks});
    CHECK(made.next == provision_step::complete);
    CHECK(made.group == old_name);
}

TEST_CASE("change: one old master may be away, if it leaves")
{
    SECTION("and the change isn't finished")
    {
        const provision_plan made = plan(shown_masters{old_group}.stop("a"));
        CHECK(made.next == provision_step::begin);
        CHECK(made.masters[3].found == provision_finding::unknown);
        CHECK_FALSE(made.masters[3].takes_part);
    }
    SECTION("unless it is stopped")
    {
        change_order wanted = to_new_group();
        wanted.stopped = 1;
        const provision_plan made = plan(shown_masters{old_group}.stop("a"), wanted);
        CHECK(made.next == provision_step::begin);
        CHECK(made.masters[3].found == provision_finding::stopped);
        CHECK(plan(shown_masters{old_group}, wanted).masters[3].found == provision_finding::old_group);
    }
    SECTION("but a member has to answer")
    {
        CHECK(plan(shown_masters{old_group}.stop("d")).next == provision_step::refuse);
        CHECK(plan(shown_masters{old_group}.stop("b")).next == provision_step::refuse);
    }
}

TEST_CASE("change: nothing is moved if fewer than a quorum of the old masters can be")
{
    const change_order disjoint{{"d", "e", "f", "a", "b", "c"}, 3, 0, 60s, core::arming_policy::clocks};
    CHECK(plan(shown_masters{old_group}.stop("a"), disjoint).next == provision_step::begin);
    const provision_plan made = plan(shown_masters{old_group}.stop("a").stop("b"), disjoint);
    CHECK(made.next == provision_step::refuse);
    CHECK(made.obstacle == "too few masters of group 0123456789abcdef can be moved (1 of 3; 2 are needed)");
}

TEST_CASE("change: nothing is moved if the counters of too few old masters count")
{
    const auto spoil = GENERATE(
        std::function<void(shown_masters&, const std::string&)>{
            [](shown_masters& all, const std::string& name) { all.restart(name); }},
        [](shown_masters& all, const std::string& name) { all[name].has_floor = false; },
        [](shown_masters& all, const std::string& name) { all[name].marker.reset(); },
        [](shown_masters& all, const std::string& name)
        { all.put(name, old_group, marker_state::quarantine, incarnation_end::emptied); });
    shown_masters all{old_group};
    spoil(all, "b");
    const provision_plan enough = plan(all);
    CHECK(enough.next == provision_step::begin);
    CHECK_FALSE(enough.masters[0].keeps_counters);
    CHECK(enough.masters[1].keeps_counters);
    spoil(all, "c");
    const provision_plan too_few = plan(all);
    CHECK(too_few.next == provision_step::refuse);
    CHECK(
        too_few.obstacle ==
        "too few masters of group 0123456789abcdef have counters that count (1 of 3; 2 are needed)");
}

TEST_CASE("change: a master of the old group that isn't given is named")
{
    const provision_plan made =
        plan(shown_masters{old_group}, {{"b", "c", "d"}, 3, 0, 30s, core::arming_policy::clocks});
    CHECK(made.next == provision_step::refuse);
    CHECK(
        made.obstacle ==
        "group 0123456789abcdef has a, too: name each with --from, or with --stopped if it never comes back");
}

TEST_CASE("change: without a group there is nothing to change")
{
    const provision_plan made = plan(shown_masters{});
    CHECK(made.next == provision_step::refuse);
    CHECK(made.obstacle.starts_with("no master shows a group that can be changed: "));
    shown_masters forgotten{old_group};
    for (const char* each : {"a", "b", "c"})
    {
        forgotten[each].members.reset();
    }
    CHECK(plan(forgotten).next == provision_step::refuse);
}

TEST_CASE("change: an unfitting master prevents it, but needs no policy of eviction if it leaves")
{
    shown_masters all{old_group};
    const std::string who = GENERATE("a", "d");
    const auto [expected, spoil] = GENERATE(table<provision_finding, std::function<void(provision_sight&)>>({
        {provision_finding::replica, [](provision_sight& of) { of.is_master = false; }},
        {provision_finding::evicts, [](provision_sight& of) { of.maxmemory_policy = "allkeys-lru"; }},
        {provision_finding::unreadable, [](provision_sight& of) { of.has_foreign_key = true; }},
        {provision_finding::unreadable, [](provision_sight& of) { of.marker = "redlock 2 ..."; }},
        {provision_finding::other_database, [](provision_sight& of) { of.other_database = 3; }},
    }));
    CAPTURE(who, to_string(expected));
    spoil(all[who]);
    const provision_plan made = plan(all);
    const std::size_t index = who == "a" ? 3 : 2;
    const bool is_harmless =
        who == "a" && (expected == provision_finding::evicts || expected == provision_finding::replica);
    CHECK((made.next == provision_step::begin) == is_harmless);
    if (expected != provision_finding::evicts || who != "a")
    {
        CHECK(made.masters[index].found == expected);
    }
}

TEST_CASE("change: a master of a third group is refused")
{
    const named_group third{run_name, {"d", "e", "f"}};
    const provision_plan made = plan(shown_masters{old_group}.put("d", third, marker_state::armed));
    CHECK(made.next == provision_step::refuse);
    CHECK(made.masters[2].found == provision_finding::other_group);
}

TEST_CASE("change: of masters of several groups, only the strangers are named")
{
    const named_group third{run_name, {"d", "e", "f"}};
    shown_masters seen{old_group};
    seen.put("d", third, marker_state::armed);
    const auto a_stranger = std::vector{
        provision_finding::old_group, provision_finding::old_group, provision_finding::other_group,
        provision_finding::old_group};
    SECTION("one stranger")
    {
        CHECK(findings(plan(seen)) == a_stranger);
    }
    SECTION("the stranger's group has the list and the max_ttl that are wanted")
    {
        const named_group wanted{run_name, new_group.names, new_group.max_ttl};
        const auto state = GENERATE(marker_state::armed, marker_state::quarantine);
        seen.put("d", wanted, state, incarnation_end::stale);
        CHECK(plan(seen).next == provision_step::refuse);
        CHECK(findings(plan(seen)) == a_stranger);
    }
    SECTION("of the group, one master has forgotten, and one isn't armed yet, or has a clock that was ahead")
    {
        seen.put("c", old_group, marker_state::quarantine, incarnation_end::stale);
        CHECK(findings(plan(seen)) == a_stranger);
        const auto why = GENERATE(incarnation_end::created, incarnation_end::clock);
        seen.put("b", old_group, marker_state::quarantine, why);
        CHECK(findings(plan(seen)) == a_stranger);
    }
    SECTION("a quorum of the group may have forgotten that it was replaced")
    {
        const auto forget = GENERATE(
            as<std::function<void(provision_sight&)>>{},
            [](provision_sight& of) {
                of.marker =
                    core::to_text(old_group.marker("b", marker_state::quarantine, incarnation_end::stale));
            },
            [](provision_sight& of) {
                of.marker =
                    core::to_text(old_group.marker("b", marker_state::quarantine, incarnation_end::emptied));
            },
            [](provision_sight& of) { of.replication_id = replication_id('2'); });
        forget(seen["b"]);
        forget(seen["c"]);
        CHECK(findings(plan(seen)) == std::vector(4, provision_finding::other_group));
    }
    SECTION("a quorum of the group has left it")
    {
        seen.put("b", old_group, marker_state::retired);
        seen.put("c", old_group, marker_state::retired);
        CHECK(plan(seen).masters[3].found == provision_finding::other_group);
    }
    SECTION("a master keeps that its group has replaced the other")
    {
        seen["d"].replaced = core::to_text(std::vector<core::replaced_group>{
            {old_group.marker("a", marker_state::armed), old_group.record()}});
        CHECK(
            findings(plan(seen)) == std::vector{
                                        provision_finding::other_group, provision_finding::other_group,
                                        provision_finding::old_group, provision_finding::other_group});
    }
    SECTION("two groups have a quorum")
    {
        change_order wanted = to_new_group();
        wanted.names = {"b", "c", "d", "e", "a"};
        wanted.members = 4;
        seen.put("e", third, marker_state::armed);
        for (const core::provision_seat& each : plan(seen, wanted).masters)
        {
            CHECK(each.found == provision_finding::other_group);
        }
    }
    SECTION("what is made is no change")
    {
        change_order wanted = to_new_group();
        wanted.creates = true;
        wanted.takeover = true;
        CHECK(plan(seen, wanted).masters[0].found == provision_finding::other_group);
    }
}

TEST_CASE("change: an unfinished run is continued, whichever masters it has moved")
{
    shown_masters all{old_group};
    SECTION("only one that leaves")
    {
        const provision_plan made = plan(all.move("a", new_group, {old_group}));
        CHECK(made.next == provision_step::proceed);
        CHECK(made.group == new_name);
        CHECK(
            findings(made) == std::vector{
                                  provision_finding::old_group, provision_finding::old_group,
                                  provision_finding::unmarked, provision_finding::left_group});
        CHECK(made.masters[3].keeps == new_group.marker("a", marker_state::retired));
    }
    SECTION("all of them: the old group is known by what they keep")
    {
        const provision_plan made = plan(all.move("a", new_group, {old_group})
                                             .move("b", new_group, {old_group})
                                             .move("c", new_group, {old_group})
                                             .move("d", new_group, {old_group}));
        CHECK(made.next == provision_step::proceed);
        REQUIRE(made.replaced.size() == 1);
        CHECK(made.replaced[0].members == old_group.record());
        CHECK(core::longest_ttl(made) == 60s);
        CHECK(made.masters[0].found == provision_finding::unfinished);
        CHECK(made.masters[0].keeps == new_group.marker("b", marker_state::quarantine));
    }
    SECTION("one that a client has found emptied meanwhile keeps that marker")
    {
        all.move("a", new_group, {old_group})
            .move("b", new_group, {old_group})
            .move("c", new_group, {old_group});
        const provision_plan made =
            plan(all.put("d", new_group, marker_state::quarantine, incarnation_end::emptied));
        CHECK(made.next == provision_step::proceed);
        CHECK(made.masters[2].found == provision_finding::unfinished);
        CHECK(
            made.masters[2].keeps ==
            new_group.marker("d", marker_state::quarantine, incarnation_end::emptied));
    }
    SECTION("a moved master that was restarted gets another marker, and its counters count")
    {
        const provision_plan made = plan(all.move("a", new_group, {old_group})
                                             .move("b", new_group, {old_group})
                                             .restart("a")
                                             .restart("b"));
        CHECK(made.next == provision_step::proceed);
        CHECK(made.masters[0].found == provision_finding::unfinished);
        CHECK_FALSE(made.masters[0].keeps);
        CHECK(made.masters[0].keeps_counters);
        CHECK(made.masters[3].found == provision_finding::left_group);
        CHECK(made.masters[3].takes_part);
        CHECK_FALSE(made.masters[3].keeps);
    }
}

TEST_CASE("change: another unfinished run is named, and its group is replaced by a takeover")
{
    const named_group others{run_name, {"a", "b", "e"}, 90s};
    shown_masters all{old_group};
    all.move("a", others, {old_group});
    const bool has_moved_more = GENERATE(false, true);
    if (has_moved_more)
    {
        all.move("b", others, {old_group}).move("c", others, {old_group}).move("e", others, {old_group});
    }
    change_order wanted{{"b", "c", "d", "a", "e"}, 3, 0, 30s, core::arming_policy::clocks};
    const provision_plan refused = plan(all, wanted);
    CHECK(refused.next == provision_step::refuse);
    CHECK(refused.masters[3].found == provision_finding::other_run);
    CHECK(refused.masters[3].detail.find(run_name) != std::string::npos);
    wanted.takeover = true;
    const provision_plan made = plan(all, wanted);
    CHECK(made.next == provision_step::begin);
    REQUIRE(made.replaced.size() == 2);
    CHECK(made.replaced[0].shown.group == old_name);
    CHECK(made.replaced[1].shown.group == run_name);
    CHECK(made.replaced[1].members == others.record());
    CHECK(core::longest_ttl(made) == 90s);
    CHECK(made.masters[3].keeps_counters);
    SECTION("also by a second run, when the first one has moved nothing but a master that leaves")
    {
        const provision_plan next = plan(all.move("a", new_group, {old_group, others}), wanted);
        CHECK(next.next == provision_step::proceed);
        CHECK(next.group == new_name);
        CHECK(next.replaced.size() == 2);
        CHECK(next.masters[3].found == provision_finding::left_group);
    }
    SECTION("a quorum of its list is needed")
    {
        change_order disjoint{{"b", "c", "d", "a", "e"}, 3, 0, 30s, core::arming_policy::clocks};
        disjoint.takeover = true;
        const named_group away{run_name, {"a", "e", "f"}};
        shown_masters seen{old_group};
        disjoint.names = {"b", "c", "d", "a", "e", "f"};
        const provision_plan possible = plan(seen.move("a", away, {old_group}), disjoint);
        CHECK(possible.next == provision_step::begin);
        const provision_plan impossible = plan(seen.stop("e").stop("f"), disjoint);
        CHECK(impossible.next == provision_step::refuse);
        CHECK(
            impossible.obstacle ==
            "too few masters of group 00000000000000ff can be moved (1 of 3; 2 are needed)");
    }
}

TEST_CASE("change: a way back to the old list needs a takeover, and makes a group of its own")
{
    shown_masters all{old_group};
    all.move("a", new_group, {old_group}).move("b", new_group, {old_group});
    change_order back{{"a", "b", "c", "d"}, 3, 0, 60s, core::arming_policy::clocks};
    CHECK(plan(all, back).next == provision_step::refuse);
    back.takeover = true;
    const provision_plan made = plan(all, back);
    CHECK(made.next == provision_step::begin);
    CHECK(made.replaced.size() == 2);
}

TEST_CASE("change: once a master of the new group is armed, clients arm the others", "[scenario-85]")
{
    shown_masters all{old_group};
    all.move("a", new_group, {old_group})
        .move("b", new_group, {old_group})
        .move("c", new_group, {old_group})
        .move("d", new_group, {old_group});
    all.put("d", new_group, marker_state::armed);
    SECTION("those that wait")
    {
        const provision_plan made = plan(all);
        CHECK(made.next == provision_step::finish);
        CHECK(
            findings(made) == std::vector{
                                  provision_finding::in_service, provision_finding::in_service,
                                  provision_finding::armed, provision_finding::left_group});
        CHECK_FALSE(made.masters[0].takes_part);
    }
    SECTION("also if that one was restarted since")
    {
        CHECK(plan(all.restart("d")).next == provision_step::finish);
    }
    SECTION("but an old master is moved")
    {
        all.put("b", new_group, marker_state::armed).put("c", new_group, marker_state::armed);
        CHECK(plan(all).next == provision_step::complete);
        CHECK(plan(shown_masters{all}.restart("a")).next == provision_step::complete);
        const provision_plan made = plan(all.put("a", old_group, marker_state::armed));
        CHECK(made.next == provision_step::finish);
        CHECK(made.masters[3].found == provision_finding::old_group);
        CHECK(made.masters[3].takes_part);
        CHECK(made.masters[1].keeps == new_group.marker("c", marker_state::armed));
    }
}

TEST_CASE("change: a master that left for a group that is long gone is refused")
{
    const named_group gone{run_name, {"x", "y"}};
    const provision_plan made = plan(shown_masters{old_group}.put("d", gone, marker_state::retired));
    CHECK(made.next == provision_step::refuse);
    CHECK(made.masters[2].found == provision_finding::other_group);
}

TEST_CASE("change: a master that has left the group before comes back")
{
    const provision_plan made = plan(shown_masters{old_group}.put("d", old_group, marker_state::retired));
    CHECK(made.next == provision_step::begin);
    CHECK(made.masters[2].found == provision_finding::old_group);
}

TEST_CASE("change: a master that leaves has to be one of the group")
{
    change_order wanted = to_new_group();
    wanted.names.push_back("e");
    const provision_plan made = plan(shown_masters{old_group}, wanted);
    CHECK(made.next == provision_step::refuse);
    CHECK(made.masters[4].found == provision_finding::other_group);
    CHECK(made.masters[4].detail == "it is no master of the group that is to be changed");
    SECTION("or have left it before")
    {
        const provision_plan other =
            plan(shown_masters{old_group}.put("e", old_group, marker_state::retired), wanted);
        CHECK(other.next == provision_step::begin);
        CHECK(other.masters[4].found == provision_finding::left_group);
        CHECK_FALSE(other.masters[4].takes_part);
    }
}

TEST_CASE("change: a takeover without a change makes a group of masters that only a run has marked")
{
    change_order wanted{{"b", "c", "d", "a"}, 3, 0, 30s, core::arming_policy::clocks};
    wanted.creates = wanted.takeover = true;
    const named_group others{run_name, {"a", "b", "c"}};
    shown_masters all;
    all.put("a", others, marker_state::quarantine).put("b", others, marker_state::quarantine);
    const provision_plan made = plan(all, wanted);
    CHECK(made.next == provision_step::begin);
    CHECK(made.replaced.size() == 1);
    CHECK(made.masters[1].keeps_counters); // They may be those of an earlier group.
    CHECK(plan(shown_masters{old_group}, wanted).next == provision_step::refuse);
    CHECK(plan(shown_masters{}, wanted).next == provision_step::begin);
}

TEST_CASE("change: the new group is armed if a quorum of the old one has stayed moved", "[scenario-84]")
{
    const change_order wanted = to_new_group();
    shown_masters all{old_group};
    all.move("a", new_group, {old_group})
        .move("b", new_group, {old_group})
        .move("c", new_group, {old_group})
        .move("d", new_group, {old_group});
    const provision_plan made = plan(all);
    std::vector<std::optional<core::marker>> expected;
    for (const core::provision_seat& each : made.masters)
    {
        expected.push_back(each.keeps);
    }
    const auto is_moved = [&](shown_masters seen)
    { return core::is_moved(seen.in_order(wanted.names), expected, made, wanted); };
    CHECK(is_moved(all));
    const auto lose = GENERATE(
        std::function<void(shown_masters&, const std::string&)>{[](shown_masters& of, const std::string& name)
                                                                { of.stop(name); }},
        [](shown_masters& of, const std::string& name) { of.restart(name); },
        [](shown_masters& of, const std::string& name) { of[name].marker.reset(); },
        [](shown_masters& of, const std::string& name) { of[name].is_master = false; },
        [](shown_masters& of, const std::string& name) { of.put(name, old_group, marker_state::armed); });
    SECTION("one of them may be lost")
    {
        lose(all, "a");
        CHECK(is_moved(all));
        lose(all, "b");
        CHECK_FALSE(is_moved(all));
    }
    SECTION("and one of the new one, which clients arm")
    {
        lose(all, "d");
        CHECK(is_moved(all));
    }
    SECTION("the counters of enough old masters have to be there")
    {
        all["a"].has_floor = false;
        CHECK(is_moved(all));
        all["c"].has_floor = false;
        CHECK_FALSE(is_moved(all));
    }
    SECTION("no member may be armed by another run")
    {
        all.put("d", new_group, marker_state::armed);
        CHECK_FALSE(is_moved(all));
    }
    SECTION("a quorum of the members is needed")
    {
        all["c"].maxmemory_policy = "allkeys-lru";
        CHECK(is_moved(all));
        lose(all, "d");
        CHECK_FALSE(is_moved(all));
    }
}

TEST_CASE("change: half of an even number of old masters isn't a quorum of them", "[scenario-84]")
{
    const named_group four{old_name, {"a", "b", "c", "d"}};
    const named_group next{new_name, {"b", "c", "d", "e"}};
    const change_order wanted{{"b", "c", "d", "e", "a"}, 4, 0, 60s, core::arming_policy::clocks};
    shown_masters all{four};
    for (const char* const each : {"a", "b", "c", "d", "e"})
    {
        all.move(each, next, {four});
    }
    const provision_plan made = plan(all, wanted);
    std::vector<std::optional<core::marker>> expected;
    for (const core::provision_seat& each : made.masters)
    {
        expected.push_back(each.keeps);
    }
    const auto is_moved = [&] { return core::is_moved(all.in_order(wanted.names), expected, made, wanted); };
    all.stop("a");
    CHECK(is_moved());
    // Three members show their markers, and two masters, which meet each quorum of the old group, their counters.
    all.stop("b");
    CHECK_FALSE(is_moved());
}

TEST_CASE("change: an unfinished run with the same list that doesn't replace the group needs a takeover")
{
    shown_masters all{old_group};
    all.put("d", new_group, marker_state::quarantine);
    const provision_plan refused = plan(all);
    CHECK(refused.next == provision_step::refuse);
    CHECK(refused.masters[2].found == provision_finding::other_run);
    change_order wanted = to_new_group();
    wanted.takeover = true;
    const provision_plan made = plan(all, wanted);
    CHECK(made.next == provision_step::begin);
    CHECK(core::contains(made.replaced, old_name));
    CHECK(core::contains(made.replaced, new_name));
}

TEST_CASE("change: too long a text of the replaced groups is refused before anything is moved")
{
    named_group huge{old_name, {}};
    for (char letter = 'a'; letter <= 'z'; ++letter)
    {
        huge.names.push_back(letter + std::string(1'020, 'x'));
    }
    const auto with_another_ttl = [&huge] {
        return plan(
            shown_masters{huge}, {huge.names, huge.names.size(), 0, 30s, core::arming_policy::clocks});
    };
    CHECK(with_another_ttl().next == provision_step::begin);
    huge.names.push_back("z2" + std::string(1'020, 'x'));
    huge.names.push_back("z3" + std::string(1'020, 'x'));
    const provision_plan made = with_another_ttl();
    CHECK(made.next == provision_step::refuse);
    CHECK(made.obstacle == "the names of the masters of all groups are too long");
}

TEST_CASE("change: what ends it")
{
    CHECK(core::ends_change(provision_finding::armed));
    CHECK(core::ends_change(provision_finding::left_group));
    CHECK(core::ends_change(provision_finding::stopped));
    CHECK_FALSE(core::ends_change(provision_finding::old_group));
    CHECK_FALSE(core::ends_change(provision_finding::in_service));
    CHECK_FALSE(core::ends_change(provision_finding::unknown));
}

} // namespace redlock::test
