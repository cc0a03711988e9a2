// SPDX-License-Identifier: BSL-1.0
// What an operator is advised to do next, by what each master has shown.
#include "core/provision_advice.hpp"

#include "core/arming_plan.hpp"
#include "core/change_plan.hpp"
#include "unit/core/provision_plans.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test::advising // Its names are equal to others in a unity build.
{

namespace
{

using namespace std::chrono_literals;
using core::advised_run;
using core::arming_policy;
using core::incarnation_end;
using core::marker_state;
using core::provision_sight;
using strings = std::vector<std::string>;

const std::string first_name = "0123456789abcdef";
const std::string second_name = "fedcba9876543210";

const named_group abc{first_name, {"a", "b", "c"}, 2s};
const named_group bcd{second_name, {"b", "c", "d"}, 2s};

advised_run arm(const strings& names)
{
    return {provision_action::arm, names, names.size()};
}

advised_run again(const strings& names, const std::string& name, std::chrono::milliseconds max_ttl = {})
{
    return {provision_action::arm_again, names, names.size(), name, max_ttl};
}

advised_run make(const strings& names, std::chrono::milliseconds max_ttl = 2s)
{
    return {provision_action::make_group, names, names.size(), {}, max_ttl};
}

advised_run change(strings members, const strings& leaving = {}, std::chrono::milliseconds max_ttl = 2s)
{
    const std::size_t count = members.size();
    members.insert(members.end(), leaving.begin(), leaving.end());
    return {provision_action::change_group, std::move(members), count, {}, max_ttl};
}

std::string advice(shown_masters from, const advised_run& run)
{
    const std::vector<provision_sight> seen = from.in_order(run.names);
    core::provision_plan plan;
    switch (run.action)
    {
    case provision_action::make_group:
    case provision_action::retire:
        plan = core::plan_provisioning(seen, {run.names, run.max_ttl, run.policy});
        break;
    case provision_action::arm:
    case provision_action::arm_again:
        plan = core::plan_arming(
            seen, {run.names, run.group, run.action == provision_action::arm_again, run.max_ttl, run.policy});
        break;
    case provision_action::change_group:
        plan = core::plan_change(seen, {run.names, run.members, 0, run.max_ttl, run.policy});
        break;
    }
    return core::advice_on(plan, seen, run);
}

std::string advice_after(
    shown_masters from, const advised_run& run, const std::vector<provision_finding>& found,
    const std::string& group)
{
    return core::advice_after(found, from.in_order(run.names), run, group);
}

} // namespace

TEST_CASE("advice: a list that isn't that of the group is compared with it")
{
    const named_group five{first_name, {"a", "b", "c", "d", "e"}, 2s};
    const std::string rest = ". Give the masters of the group";
    const auto of_arming = [&](shown_masters from, const strings& names, const std::string& expected)
    {
        CHECK(advice(from, again(names, first_name)) == expected + rest);
        CHECK(advice(from, arm(names)) == expected + rest);
        CHECK(advice(from, make(names)) == expected + rest + ", or another list with --change");
    };
    SECTION("it is shorter")
    {
        of_arming(
            shown_masters{five}, {"a", "b", "c"},
            "group 0123456789abcdef has 5 masters, and the list has 3: the list lacks d, e");
    }
    SECTION("it is longer")
    {
        const named_group one{first_name, {"a"}, 2s};
        of_arming(
            shown_masters{one}, {"a", "b", "c"},
            "group 0123456789abcdef has 1 master, and the list has 3: b, c aren't among them");
    }
    SECTION("another master is in it")
    {
        of_arming(
            shown_masters{abc}, {"a", "b", "x"},
            "group 0123456789abcdef has 3 masters: the list lacks c; x isn't one of them");
    }
    SECTION("only the record is left")
    {
        shown_masters without;
        without["a"].members = core::to_text(abc.record());
        CHECK(
            advice(without, again({"a", "x"}, first_name, 2s)) ==
            "group 0123456789abcdef has 3 masters, and the list has 2: the list lacks b, c; x isn't one of "
            "them" +
                rest);
    }
    SECTION("no master shows the record")
    {
        shown_masters without{five};
        for (const std::string& each : five.names)
        {
            without[each].members.reset();
        }
        of_arming(without, {"a", "b", "c"}, "group 0123456789abcdef has 5 masters, and the list has 3");
    }
}

TEST_CASE("advice: another max_ttl or policy than that of the group is named")
{
    const named_group longer{first_name, {"a", "b", "c"}, 3s};
    CHECK(
        advice(shown_masters{longer}, again(longer.names, first_name, 2s)) ==
        "group 0123456789abcdef has a max_ttl of 3 s, not 2 s: omit --max-ttl");
    CHECK(
        advice(shown_masters{longer}, make(longer.names, 2500ms)) ==
        "group 0123456789abcdef has a max_ttl of 3 s, not 2500 ms: redlock provision --change replaces it");
    advised_run by_hand = make(longer.names, 3s);
    by_hand.policy = arming_policy::by_hand;
    CHECK(
        advice(shown_masters{longer}, by_hand) ==
        "group 0123456789abcdef has the policy clocks, not operator: redlock provision --change replaces it");
    SECTION("also if another operator has just begun to arm it, with another max_ttl")
    {
        shown_masters begun;
        for (const std::string& each : longer.names)
        {
            begun.put(each, longer, marker_state::quarantine, incarnation_end::emptied);
        }
        CHECK(
            advice(begun, again(longer.names, first_name, 2s)) ==
            "group 0123456789abcdef has a max_ttl of 3 s, not 2 s: omit --max-ttl");
    }
}

TEST_CASE("advice: an unfinished change is repeated, whatever else was tried")
{
    const std::string repeat =
        "group fedcba9876543210 is that of an unfinished run: repeat redlock provision "
        "--change --max-ttl 2s --master b --master c --master d --from a";
    shown_masters half{abc};
    half.move("a", bcd, {abc}).move("b", bcd, {abc});
    const bool is_moved = GENERATE(false, true);
    if (is_moved)
    {
        half.move("c", bcd, {abc}).move("d", bcd, {abc});
    }
    CHECK(advice(half, again(abc.names, first_name)) == repeat);
    CHECK(advice(half, arm(abc.names)) == repeat);
    CHECK(advice(half, make(abc.names)) == repeat);
    CHECK(
        advice(half, change(abc.names, {"d"}, 3s)) ==
        repeat + "; if that run is given up, add --takeover to this one");
    if (is_moved)
    {
        CHECK(advice(half, again(abc.names, second_name)) == repeat);
        CHECK(advice(half, again(bcd.names, second_name)) == repeat);
        CHECK(advice(half, arm(bcd.names)) == repeat);
    }
}

TEST_CASE("advice: an unfinished run without a change is repeated with its options, or taken over")
{
    shown_masters begun;
    begun.put("a", abc, marker_state::quarantine);
    CHECK(
        advice(begun, make(abc.names, 3s)) ==
        "group 0123456789abcdef is that of an unfinished run: repeat redlock provision --max-ttl 2s "
        "--master a --master b --master c; if that run is given up, add --takeover to this one");
}

TEST_CASE("advice: a group of which nothing is left needs its max_ttl and policy")
{
    CHECK(
        advice({}, again(abc.names, first_name)) ==
        "no master shows the max_ttl of group 0123456789abcdef: give --max-ttl and --policy as the group was "
        "made with them");
    CHECK(
        advice({}, arm(abc.names)) ==
        "no master shows a group: redlock provision --again and its name arms one that was used");
}

TEST_CASE("advice: a change names the masters of the old group that aren't given")
{
    const std::string named = ", too: name each with --from, or with --stopped if it never comes back";
    CHECK(advice(shown_masters{abc}, change(bcd.names)) == "group 0123456789abcdef has a" + named);
    CHECK(advice(shown_masters{abc}, change({"c", "d", "e"})) == "group 0123456789abcdef has a, b" + named);
    SECTION("also when it is finished")
    {
        shown_masters finished;
        for (const char* const each : {"a", "b", "c", "d"})
        {
            finished.move(each, bcd, {abc});
            if (*each != 'a')
            {
                finished.put(each, bcd, marker_state::armed);
            }
        }
        CHECK(advice(finished, change(bcd.names)) == "group 0123456789abcdef has a" + named);
        CHECK(advice(finished, change(bcd.names, {"a"})).empty());
    }
}

TEST_CASE("advice: a master that has left a group is retired before it joins another one")
{
    const named_group older{second_name, {"b", "c", "d"}, 2s};
    shown_masters seen{abc};
    seen.put("d", older, marker_state::retired);
    const std::string retire =
        "d has left group fedcba9876543210: redlock provision --retire d, then the same command again";
    CHECK(advice(seen, change({"b", "c", "d"}, {"a"})) == retire);
    CHECK(advice(seen, make({"d", "e"})) == retire);
    SECTION("several of them")
    {
        seen.put("e", older, marker_state::retired);
        CHECK(
            advice(seen, make({"d", "e"})) ==
            "d, e have left group fedcba9876543210: redlock provision --retire d --retire e, then the same "
            "command again");
    }
    SECTION("unless masters that give no answer may be those of its group")
    {
        const named_group def{second_name, {"d", "e", "f"}, 2s};
        shown_masters interrupted;
        for (const std::string& each : abc.names)
        {
            interrupted.move(each, def, {abc});
        }
        for (const std::string& each : def.names)
        {
            interrupted.stop(each);
        }
        const std::string wait = " left when group fedcba9876543210 was made, whose masters may be those "
                                 "that give no answer: run the same command again when they can be reached";
        CHECK(advice(interrupted, change(def.names, abc.names)) == "a, b, c" + wait);
        CHECK(advice(interrupted, make({"a", "d"})) == "a" + wait);
    }
    SECTION("but the old list of a group is replaced by the new one")
    {
        shown_masters gone;
        for (const std::string& each : abc.names)
        {
            gone.move(each, {second_name, {"d", "e", "f"}, 2s}, {abc});
        }
        CHECK(
            advice(gone, again(abc.names, first_name)) ==
            "a, b, c left when group fedcba9876543210 was made: give the masters of that group, d, e, f");
    }
}

TEST_CASE("advice: the name and the addresses are checked if the masters show other groups")
{
    CHECK(
        advice(shown_masters{abc}, again(abc.names, second_name)) ==
        "no master shows group fedcba9876543210, but group 0123456789abcdef: check the name and the "
        "addresses");
    SECTION("unless one of them has replaced it")
    {
        const named_group next{second_name, {"a", "b", "c"}, 2s};
        shown_masters changed;
        for (const std::string& each : next.names)
        {
            changed.move(each, next, {abc}).put(each, next, marker_state::armed);
        }
        CHECK(
            advice(changed, again(abc.names, first_name)) ==
            "group 0123456789abcdef was replaced by group fedcba9876543210: give that name");
    }
    SECTION("one master is of another group")
    {
        shown_masters mixed{abc};
        mixed.put("c", bcd, marker_state::armed);
        CHECK(
            advice(mixed, again(abc.names, first_name)) ==
            "c doesn't belong to group 0123456789abcdef: check the address");
        CHECK(advice(mixed, make(abc.names)) == "the markers don't fit together: check the addresses");
        CHECK(
            advice(mixed, change(abc.names)) ==
            "c doesn't belong to the group that is to be changed: check the address; if its group was "
            "replaced while it was away, redlock provision --retire deletes its marker");
    }
    SECTION("one master shows the group with another max_ttl, as two operators at once may leave it")
    {
        shown_masters mixed{abc};
        mixed.put("c", {first_name, abc.names, 3s}, marker_state::armed);
        CHECK(
            advice(mixed, again(abc.names, first_name, 2s)) ==
            "c differs from the other masters of group 0123456789abcdef: check the address; if it is right, "
            "redlock provision --retire it, then the same command again");
    }
    SECTION("one of its masters is given under another name")
    {
        shown_masters seen{abc};
        seen["x"] = seen["c"];
        CHECK(
            advice(seen, change({"a", "b"}, {"x"})) ==
            "x isn't on the record of group 0123456789abcdef: give its masters as they are there, a, b, c");
    }
    SECTION("one master has left for a group of which the others are")
    {
        shown_masters seen{bcd};
        seen.move("a", bcd, {abc});
        CHECK(
            advice(seen, again(abc.names, "00000000000000ff")) ==
            "no master shows group 00000000000000ff, but group fedcba9876543210: check the name and the "
            "addresses");
    }
    SECTION("only an emptied one of its masters is in the list")
    {
        shown_masters seen;
        seen.put("a", abc, marker_state::quarantine, incarnation_end::emptied);
        seen["a"].members.reset();
        CHECK(
            advice(seen, change({"a", "x", "y"})) ==
            "the masters show no use of group 0123456789abcdef: give all of its masters");
    }
    SECTION("it isn't certain which group is the latest")
    {
        shown_masters both;
        both.put("a", abc, marker_state::armed).put("d", bcd, marker_state::armed);
        CHECK(
            advice(both, change({"a", "d"})) == "the masters show several groups: check the addresses; if "
                                                "they are right, redlock provision --again "
                                                "with the name that was armed last");
    }
}

TEST_CASE("advice: masters that aren't armed are left to whatever can arm them")
{
    const std::string clients = "clients arm each that isn't armed: leave one running";
    const std::string by_again =
        "if these are the masters of the group, redlock provision --again 0123456789abcdef arms them";
    const std::string started =
        "start the masters that give no answer, with their data; if they never come back, redlock provision "
        "--again 0123456789abcdef";
    const named_group by_hand{first_name, abc.names, 2s, arming_policy::by_hand};
    const auto advice_for = [](const named_group& of, const std::function<void(shown_masters&)>& harm)
    {
        shown_masters harmed{of};
        harm(harmed);
        advised_run run = make(of.names);
        run.policy = of.policy;
        return advice(harmed, run);
    };
    const auto restart_all = [](shown_masters& of) { of.restart("a").restart("b").restart("c"); };
    CHECK(advice_for(abc, restart_all) == clients);
    CHECK(advice_for(by_hand, restart_all) == "redlock provision --arm arms them");
    CHECK(advice_for(abc, [](shown_masters& of) { of.restart("a"); }) == clients);
    CHECK(advice_for(by_hand, [](shown_masters& of) { of.empty("a"); }) == clients);
    CHECK(advice_for(abc, [](shown_masters& of) { of.restart("a").empty("b").empty("c"); }) == by_again);
    CHECK(advice_for(abc, [](shown_masters& of) { of.empty("b").empty("c"); }) == by_again);
    CHECK(advice_for(by_hand, [](shown_masters& of) { of.restart("a").stop("b").empty("c"); }) == started);
    SECTION("also by --arm")
    {
        shown_masters lost{by_hand};
        lost.restart("a").empty("b").empty("c");
        CHECK(
            advice(lost, arm(abc.names)) ==
            "too few masters were restarted with their data (1 of 3; 2 are needed): " + by_again);
        CHECK(
            advice(shown_masters{by_hand}.stop("a").stop("b").restart("c"), arm(abc.names)) ==
            "too few masters were restarted with their data (1 of 3; 2 are needed): start the masters that "
            "give no "
            "answer, with their data");
        shown_masters stopped{by_hand};
        stopped.restart("a").stop("b").stop("c");
        CHECK(
            advice(stopped, again(abc.names, first_name)) ==
            "too few masters answer (1 of 3; 2 are needed): start the others");
    }
    SECTION("also before a change")
    {
        CHECK(
            advice(shown_masters{abc}.restart("a").restart("b").restart("c"), change(abc.names, {}, 3s)) ==
            "too few masters of group 0123456789abcdef have counters that count (0 of 3; 2 are needed): " +
                clients + "; then the same command again");
    }
    SECTION("a quorum is armed already")
    {
        CHECK(advice(shown_masters{abc}.restart("a"), again(abc.names, first_name)) == clients);
        CHECK(advice(shown_masters{abc}.stop("a"), arm(abc.names)) == clients);
        CHECK(advice(shown_masters{abc}, arm(abc.names)).empty());
    }
}

TEST_CASE("advice: the finding of a master that says what to do needs no other")
{
    const auto spoil = GENERATE(
        as<std::function<void(provision_sight&)>>{}, [](provision_sight& of) { of.is_master = false; },
        [](provision_sight& of) { of.maxmemory_policy = "allkeys-lru"; },
        [](provision_sight& of) { of.has_foreign_key = true; },
        [](provision_sight& of) { of.other_database = 3; }, [](provision_sight& of) { of.is_known = false; });
    shown_masters fresh;
    spoil(fresh["b"]);
    CHECK(advice(fresh, make(abc.names)).empty());
    shown_masters used{abc};
    spoil(used["b"]);
    CHECK(advice(used, change(abc.names, {}, 3s)).empty());
}

TEST_CASE("advice: an incomplete change is continued as far as that helps")
{
    const auto armed = provision_finding::armed;
    const auto gone = provision_finding::unknown;
    const auto left = provision_finding::left_group;
    const auto lost = provision_finding::changed;
    const advised_run run = change(bcd.names, {"a"});
    shown_masters seen{bcd};
    CHECK(
        advice_after(seen, run, {armed, armed, armed, gone}, second_name) ==
        "run the same command again when a can be used, or with --stopped if it never comes back");
    CHECK(
        advice_after(seen.empty("d"), run, {armed, armed, lost, left}, second_name) ==
        "clients arm each that isn't armed; then run the same command again");
    CHECK(
        advice_after(seen, run, {armed, armed, lost, gone}, second_name) ==
        "run the same command again when a can be used, or with --stopped if it never comes back");
    CHECK(
        advice_after(seen.empty("c"), run, {armed, lost, lost, gone}, second_name) ==
        "if these are the masters of the group, redlock provision --again fedcba9876543210 arms them; then "
        "the same command again");
    CHECK(advice_after(shown_masters{bcd}, run, {armed, armed, armed, left}, second_name).empty());
}

TEST_CASE("advice: after a run that has armed a quorum, clients arm the others")
{
    const auto armed = provision_finding::armed;
    const auto other = GENERATE(provision_finding::emptied, provision_finding::unknown);
    shown_masters seen{abc};
    other == provision_finding::unknown ? seen.stop("c") : seen.empty("c");
    CHECK(
        advice_after(seen, arm(abc.names), {armed, armed, other}, first_name) ==
        "clients arm each that isn't armed: leave one running");
    CHECK(advice_after(shown_masters{abc}, arm(abc.names), {armed, armed, armed}, first_name).empty());
}

} // namespace redlock::test::advising
