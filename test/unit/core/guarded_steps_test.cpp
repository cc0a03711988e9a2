// SPDX-License-Identifier: BSL-1.0
// The next step of each master in guarded mode, by what each has shown.
#include "core/guarded_steps.hpp"

#include "core/members.hpp"
#include "unit/core/provision_plans.hpp"

#include <redlock/vote.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test::stepping // Its names are equal to others in a unity build.
{

namespace
{

using namespace std::chrono_literals;
using core::incarnation_end;
using core::marker_state;
using core::provision_sight;
using enum guarded_step;

const std::string main_group = "0123456789abcdef";
const std::string another_group = "fedcba9876543210";

/// Masters of a list, each by its first letter, and their group.
struct listed_masters
{
    /// A letter for each master: (a)rmed, (s) restarted with its data, (q)uarantine after that, (c) quarantine for its
    /// clock, (e) quarantine after its data was lost, (n) quarantine of a new group, (r)etired, (o)ther group, (v) armed
    /// with other values of the group, (-) empty, (.) no answer, (?) a marker of an unknown form.
    std::string_view shown;
    /// The list, and the group's record: a letter for each name.
    std::string_view list = "abc";
    std::string_view record = "abc";
    arming_policy policy = arming_policy::clocks;
};

std::vector<std::string> names_of(std::string_view letters)
{
    std::vector<std::string> names;
    for (const char each : letters)
    {
        names.push_back(std::string{"redis://"} + each);
    }
    return names;
}

provision_sight sight_of(char shown, std::uint32_t seat, const listed_masters& all)
{
    provision_sight seen;
    seen.is_known = shown != '.';
    if (shown == '.' || shown == '-')
    {
        return seen;
    }
    const bool is_quarantine = std::string_view{"qcen"}.find(shown) != std::string_view::npos;
    const bool has_data = shown != 'e';
    if (shown == '?')
    {
        seen.marker = "redlock 2";
        seen.maxmemory_policy = "noeviction";
        return seen;
    }
    core::marker its{
        .group = shown == 'o' ? another_group : main_group,
        .seat = seat,
        .masters = static_cast<std::uint32_t>(all.record.size()),
        .max_ttl = shown == 'v' ? 120s : 60s,
        .policy = all.policy,
        .state = is_quarantine  ? marker_state::quarantine
                 : shown == 'r' ? marker_state::retired
                                : marker_state::armed,
        .why = shown == 'n'   ? incarnation_end::created
               : shown == 'e' ? incarnation_end::emptied
               : shown == 'c' ? incarnation_end::clock
                              : incarnation_end::stale,
        .nonce = "00000000000000aa",
        .replication_id = replication_id('1')};
    seen.marker = core::to_text(its);
    seen.replication_id = replication_id(shown == 's' ? '2' : '1');
    seen.has_floor = has_data;
    seen.maxmemory_policy = "noeviction";
    if (has_data && shown != 'r') // Which keeps the record of the group before.
    {
        seen.members = core::to_text(core::member_record{its.group, names_of(all.record)});
    }
    return seen;
}

/// Returns the advice for each master. A master has the seat of its name, or that of its position.
std::vector<guarded_advice> advice_for(const listed_masters& all)
{
    std::vector<provision_sight> seen;
    for (std::size_t master = 0; master < all.shown.size(); ++master)
    {
        const std::size_t recorded = all.record.find(all.list[master]);
        const std::size_t seat = recorded == std::string_view::npos ? master : recorded;
        seen.push_back(sight_of(all.shown[master], static_cast<std::uint32_t>(seat + 1), all));
        if (!seen.back().is_known || !seen.back().marker)
        {
            seen.back().maxmemory_policy = "noeviction";
        }
    }
    return core::guarded_steps(seen, names_of(all.list), 0.01);
}

std::vector<guarded_step> steps_for(const listed_masters& all)
{
    std::vector<guarded_step> steps;
    for (const guarded_advice& each : advice_for(all))
    {
        steps.push_back(each.step);
    }
    return steps;
}

using steps = std::vector<guarded_step>;

} // namespace

TEST_CASE("steps: masters that vote need none, and those of no group are provisioned", "[guarded]")
{
    CHECK(steps_for({"aaa"}) == steps{none, none, none});
    CHECK(advice_for({"aaa"})[0].group == main_group);
    CHECK(steps_for({"---"}) == steps{provision, provision, provision});
    CHECK(steps_for({"--."}) == steps{provision, provision, none});
    CHECK(advice_for({"---"})[0].group.empty());
}

TEST_CASE("steps: the values that most masters show are those of the group", "[guarded][scenario-113]")
{
    // One that came back from before the group was armed again gets no vote, and is no concern of a client.
    CHECK(steps_for({"vaa"}) == steps{none, none, none});
    CHECK(steps_for({"aav"}) == steps{none, none, none});
    CHECK(steps_for({"vaq"}) == steps{none, none, mend_others});
    CHECK(advice_for({"vaq"})[2].concerned == names_of("a"));
    CHECK(steps_for({"aqv"}) == steps{none, mend_others, none});
    CHECK(steps_for({"vaqaa", "abcde", "abcde"}) == steps{none, none, wait_for_clients, none, none});
}

TEST_CASE("steps: a list that isn't that of the group is corrected first", "[guarded]")
{
    SECTION("it is too short")
    {
        const auto short_list = advice_for({"aaa", "abc", "abcde"});
        for (const guarded_advice& each : short_list)
        {
            CHECK(each.step == use_group_list);
            CHECK(each.lacking == names_of("de"));
            CHECK(each.unknown.empty());
        }
    }
    SECTION("it is too long")
    {
        const auto long_list = advice_for({"aaa--", "abcxy", "abc"});
        CHECK(long_list[0].step == use_group_list);
        CHECK(long_list[0].unknown == names_of("xy"));
        CHECK(long_list[3].step == check_address);
        CHECK(long_list[3].lacking.empty());
    }
    SECTION("one address is wrong")
    {
        const auto advice = advice_for({"aa-", "abx", "abc"});
        CHECK(advice[0].step == none);
        CHECK(advice[2].step == check_address);
        CHECK(advice[2].lacking == names_of("c"));
        CHECK(steps_for({"aq-", "abx", "abc"}) == steps{none, use_group_list, check_address});
        CHECK(steps_for({"a-.", "abx", "abc"}) == steps{use_group_list, use_group_list, none});
    }
    SECTION("most addresses are wrong, and nothing is armed again")
    {
        CHECK(steps_for({"a--", "axy", "abc"}) == steps{use_group_list, check_address, check_address});
    }
    SECTION("no master shows the record")
    {
        CHECK(steps_for({"e-", "ab", "abc"}) == steps{use_group_list, check_address});
    }
}

TEST_CASE("steps: a member with another name uses the one on the record", "[guarded]")
{
    const auto moved = advice_for({"sss", "xyz", "abc"});
    for (const guarded_advice& each : moved)
    {
        CHECK(each.step == use_recorded_name);
        CHECK(each.lacking == names_of("abc"));
    }
    const auto promoted = advice_for({"saa", "xbc", "abc"});
    CHECK(promoted[0].step == use_recorded_name);
    CHECK(promoted[0].lacking == names_of("a"));
    CHECK(promoted[1].step == none);
    // It votes as long as it is armed.
    CHECK(steps_for({"aaa", "xyz", "abc"}) == steps{none, none, none});
}

TEST_CASE("steps: a master that has left its group points to the latest one", "[guarded]")
{
    CHECK(steps_for({"rrr"}) == steps{use_latest_group, use_latest_group, use_latest_group});
    CHECK(steps_for({"raa"}) == steps{use_latest_group, none, none});
}

TEST_CASE("steps: a marker of an unknown form is that of another version or prefix", "[guarded]")
{
    CHECK(steps_for({"aa?"}) == steps{none, none, check_version});
    CHECK(steps_for({"?\?-"}) == steps{check_version, check_version, provision});
}

TEST_CASE("steps: an interrupted run is repeated", "[guarded]")
{
    CHECK(steps_for({"nnn"}) == steps{finish_provision, finish_provision, finish_provision});
    CHECK(steps_for({"nn-"}) == steps{finish_provision, finish_provision, finish_provision});
    CHECK(steps_for({"rnn"}) == steps{finish_provision, finish_provision, finish_provision});
    // Nothing but its own list is right for it.
    CHECK(steps_for({"nn", "ab", "abc"}) == steps{finish_provision, finish_provision});
    // One that was armed shows that the others had been in quarantine.
    CHECK(steps_for({"aan"}) == steps{none, none, wait_for_clients});
    CHECK(steps_for({"ann"}) == steps{none, arm_again, arm_again});
}

TEST_CASE("steps: empty servers are the wrong ones as long as no record shows their names", "[guarded]")
{
    const auto wrong = advice_for({"e--"});
    for (const guarded_advice& each : wrong)
    {
        CHECK(each.step == check_empty);
        CHECK(each.concerned == names_of("bc"));
    }
    CHECK(steps_for({"eee"}) == steps{check_empty, check_empty, check_empty});
    const auto emptied = advice_for({"a--"});
    for (const guarded_advice& each : emptied)
    {
        CHECK(each.step == arm_again);
        CHECK(each.concerned == names_of("bc"));
    }
}

TEST_CASE("steps: clients arm the rest as long as they can", "[guarded]")
{
    const auto one = advice_for({"aaq"});
    CHECK(one[0].step == none);
    CHECK(one[2].step == wait_for_clients);
    CHECK(one[2].within == 63'602ms);
    CHECK(one[0].within == 0ms);
    CHECK(steps_for({"aa-"}) == steps{none, none, wait_for_clients});
    CHECK(steps_for({"aas"}) == steps{none, none, wait_for_clients});
    CHECK(steps_for({"aae"}) == steps{none, none, wait_for_clients});
    CHECK(steps_for({"aaq", "abc", "abc", arming_policy::by_hand}) == steps{none, none, wait_for_clients});
    // By the clock, after a restart of a quorum.
    CHECK(steps_for({"qqq"}) == steps{wait_for_clients, wait_for_clients, wait_for_clients});
    CHECK(steps_for({"qs."}) == steps{wait_for_clients, wait_for_clients, none});
    CHECK(steps_for({"qs-"}) == steps{wait_for_clients, wait_for_clients, wait_for_clients});
    // One in quarantine for its clock has kept its counters.
    CHECK(steps_for({"acq"}) == steps{none, wait_for_clients, wait_for_clients});
    // Half of an even number has the counters, but too few show the group.
    CHECK(steps_for({"aa--", "abcd", "abcd"}) == steps{arm_again, arm_again, arm_again, arm_again});
    CHECK(steps_for({"aaqq", "abcd", "abcd"}) == steps{none, none, wait_for_clients, wait_for_clients});
}

TEST_CASE("steps: data of two members that were exchanged is no obstacle for clients", "[guarded]")
{
    std::vector<provision_sight> seen;
    for (const std::uint32_t seat : {2U, 1U, 3U})
    {
        seen.push_back(sight_of(seat == 3 ? 'a' : 's', seat, {"ssa"}));
    }
    const auto advice = core::guarded_steps(seen, names_of("abc"), 0.01);
    CHECK(advice[0].step == wait_for_clients);
    CHECK(advice[1].step == wait_for_clients);
    CHECK(advice[2].step == none);
}

TEST_CASE("steps: an operator arms what clients can't", "[guarded]")
{
    CHECK(steps_for({"qqq", "abc", "abc", arming_policy::by_hand}) == steps{arm, arm, arm});
    CHECK(steps_for({"qs.", "abc", "abc", arming_policy::by_hand}) == steps{arm, arm, none});
    CHECK(steps_for({"aq-", "abc", "abc", arming_policy::by_hand}) == steps{none, arm, arm});
    CHECK(steps_for({"aeq"}) == steps{none, arm_again, arm_again});
    CHECK(steps_for({"ae-"}) == steps{none, arm_again, arm_again});
    CHECK(advice_for({"ae-"})[1].concerned == names_of("c"));
    CHECK(steps_for({"q--"}) == steps{arm_again, arm_again, arm_again});
}

TEST_CASE("steps: masters that are away come back before anything is given up", "[guarded]")
{
    const auto one_down = advice_for({"a.q"});
    CHECK(one_down[0].step == none);
    CHECK(one_down[1].step == none);
    CHECK(one_down[2].step == bring_back);
    CHECK(one_down[2].concerned == names_of("b"));
    CHECK(steps_for({"a.-"}) == steps{bring_back, none, bring_back});
    CHECK(steps_for({"e.q"}) == steps{bring_back, none, bring_back});
    CHECK(advice_for({"q.."})[0].concerned == names_of("bc"));
    CHECK(steps_for({"q.e", "abc", "abc", arming_policy::by_hand}) == steps{bring_back, none, bring_back});
    // They can't help: whatever they have kept, too much is lost.
    CHECK(steps_for({"a---.", "abcde", "abcde"}) == steps{arm_again, arm_again, arm_again, arm_again, none});
    // Too few answer for --again.
    CHECK(steps_for({"---a...", "abcdefg", "abcdefg"})[3] == bring_back);
}

TEST_CASE("steps: what prevents the rest is mended first", "[guarded]")
{
    const auto other = advice_for({"aqo"});
    CHECK(other[0].step == none);
    CHECK(other[1].step == mend_others);
    CHECK(other[1].concerned == names_of("c"));
    CHECK(other[2].step == none);
    CHECK(steps_for({"aao"}) == steps{none, none, none});
}

TEST_CASE("steps: each has a name", "[guarded]")
{
    CHECK(to_string(none) == "none");
    CHECK(to_string(arm_again) == "arm_again");
    CHECK(to_string(check_version) == "check_version");
    CHECK(to_string(static_cast<guarded_step>(14)) == "unknown");
}

} // namespace redlock::test::stepping
