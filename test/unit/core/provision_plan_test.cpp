// SPDX-License-Identifier: BSL-1.0
// What provisioning does, by what each master has shown.
#include "core/provision_plan.hpp"

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
using core::incarnation_end;
using core::marker_state;
using core::provision_order;
using core::provision_plan;
using core::provision_sight;
using core::provision_step;

const std::string run_group = "0123456789abcdef";
const std::string other_group = "fedcba9876543210";
const provision_order wanted{{"redis://a:1", "redis://b:1", "redis://c:1"}, 60s, core::arming_policy::clocks};

/// A server without keys.
provision_sight fresh_master()
{
    provision_sight seen;
    seen.replication_id = replication_id('1');
    seen.maxmemory_policy = "noeviction";
    return seen;
}

core::marker marker_of(std::uint32_t seat, marker_state state = marker_state::quarantine)
{
    return {
        .group = run_group,
        .seat = seat,
        .masters = 3,
        .max_ttl = 60s,
        .policy = core::arming_policy::clocks,
        .state = state,
        .why = incarnation_end::created,
        .nonce = "00000000000000aa",
        .replication_id = replication_id('1')};
}

provision_sight with(const core::marker& marker)
{
    provision_sight seen = fresh_master();
    seen.marker = core::to_text(marker);
    if (marker.state == marker_state::armed)
    {
        seen.has_floor = true;
        seen.largest = 1;
    }
    return seen;
}

provision_sight in_quarantine(std::uint32_t seat)
{
    return with(marker_of(seat));
}

provision_sight armed(std::uint32_t seat)
{
    return with(marker_of(seat, marker_state::armed));
}

provision_sight with_record(provision_sight seen, const std::vector<std::string>& names)
{
    seen.members = core::to_text(core::member_record{run_group, names});
    return seen;
}

provision_plan plan(const std::vector<provision_sight>& seen)
{
    return core::plan_provisioning(seen, wanted);
}

/// A change of a marker by which it belongs to something else.
using change = std::function<void(core::marker&)>;

} // namespace

TEST_CASE("provisioning: masters without markers begin a new group")
{
    const provision_plan made = plan({fresh_master(), fresh_master(), fresh_master()});
    CHECK(made.next == provision_step::begin);
    CHECK(made.group.empty());
    CHECK(findings(made) == std::vector(3, provision_finding::unmarked));
    for (std::uint32_t index = 0; index < 3; ++index)
    {
        CHECK(made.masters[index].seat == index + 1);
        CHECK_FALSE(made.masters[index].keeps);
    }
}

TEST_CASE("provisioning: an unfinished run of the same group continues")
{
    SECTION("with the quarantines that it has begun")
    {
        const provision_plan made = plan({fresh_master(), in_quarantine(2), fresh_master()});
        CHECK(made.next == provision_step::proceed);
        CHECK(made.group == run_group);
        CHECK(made.masters[1].found == provision_finding::unfinished);
        CHECK(made.masters[1].keeps == marker_of(2));
        CHECK_FALSE(made.masters[0].keeps);
    }
    SECTION("with a new quarantine where the server was restarted")
    {
        provision_sight restarted = in_quarantine(2);
        restarted.replication_id = replication_id('2');
        const provision_plan made = plan({in_quarantine(1), restarted, in_quarantine(3)});
        CHECK(made.next == provision_step::proceed);
        CHECK(findings(made) == std::vector(3, provision_finding::unfinished));
        CHECK_FALSE(made.masters[1].keeps);
    }
    SECTION("with those that are armed")
    {
        const provision_plan made = plan({armed(1), in_quarantine(2), in_quarantine(3)});
        CHECK(made.next == provision_step::proceed);
        CHECK(made.masters[0].found == provision_finding::armed);
        CHECK(made.masters[0].keeps == marker_of(1, marker_state::armed));
    }
}

TEST_CASE("provisioning: the seats of a run are those on its record")
{
    const std::vector<std::string> reordered{wanted.names[2], wanted.names[0], wanted.names[1]};
    const provision_plan made =
        plan({with_record(in_quarantine(2), reordered), fresh_master(), in_quarantine(1)});
    CHECK(made.next == provision_step::proceed);
    CHECK(made.masters[0].seat == 2);
    CHECK(made.masters[1].seat == 3);
    CHECK(made.masters[2].seat == 1);
    CHECK(core::record_of(made, run_group, wanted.names) == core::member_record{run_group, reordered});
}

TEST_CASE("provisioning: all masters armed are complete")
{
    const provision_plan made = plan({armed(1), armed(2), armed(3)});
    CHECK(made.next == provision_step::complete);
    CHECK(made.group == run_group);
}

TEST_CASE("provisioning: a run or a group with other options is refused")
{
    const auto [state, expected] = GENERATE(table<marker_state, provision_finding>(
        {{marker_state::quarantine, provision_finding::other_run},
         {marker_state::armed, provision_finding::other_group}}));
    const auto [what, make_other] = GENERATE(table<std::string, change>(
        {{"number of masters", [](core::marker& of) { of.masters = 5; }},
         {"seat", [](core::marker& of) { of.seat = 3; }},
         {"max_ttl", [](core::marker& of) { of.max_ttl = 61s; }},
         {"policy", [](core::marker& of) { of.policy = core::arming_policy::by_hand; }}}));
    CAPTURE(what);
    core::marker its = marker_of(2, state);
    make_other(its);
    const provision_plan made = plan({fresh_master(), with_record(with(its), wanted.names), fresh_master()});
    CHECK(made.next == provision_step::refuse);
    CHECK(made.masters[1].found == expected);
    CHECK(made.masters[1].detail.find("redlock 1 " + run_group) != std::string::npos);
    CHECK(made.masters[1].detail.find(its.nonce) == std::string::npos);
}

TEST_CASE("provisioning: an unfinished change is refused, because more has to be checked than here")
{
    provision_sight moved = in_quarantine(2);
    moved.replaced = "of before";
    const provision_plan made = plan({in_quarantine(1), moved, in_quarantine(3)});
    CHECK(made.next == provision_step::refuse);
    CHECK(made.masters[1].found == provision_finding::other_run);
    provision_sight in_use = armed(2);
    in_use.replaced = "of before";
    CHECK(plan({armed(1), in_use, armed(3)}).next == provision_step::complete);
}

TEST_CASE("provisioning: two runs at once are refused")
{
    core::marker its = marker_of(2);
    its.group = other_group;
    const provision_plan made = plan({in_quarantine(1), with(its), fresh_master()});
    CHECK(made.next == provision_step::refuse);
    CHECK(made.masters[0].found == provision_finding::other_run);
    CHECK(made.masters[1].found == provision_finding::other_run);
    CHECK(made.masters[2].found == provision_finding::unmarked);
}

TEST_CASE("provisioning: another list on the record is refused")
{
    const std::vector<std::string> names = GENERATE(
        std::vector<std::string>{"redis://a:1", "redis://b:1", "redis://d:1"},
        std::vector<std::string>{"redis://a:1", "redis://b:1"});
    const provision_plan made =
        plan({with_record(in_quarantine(1), names), in_quarantine(2), fresh_master()});
    CHECK(made.next == provision_step::refuse);
    CHECK(made.masters[0].found == provision_finding::other_run);
    CHECK(made.masters[1].found == provision_finding::other_run);
}

TEST_CASE("provisioning: a retired master is refused")
{
    const provision_plan made =
        plan({with(marker_of(1, marker_state::retired)), fresh_master(), fresh_master()});
    CHECK(made.next == provision_step::refuse);
    CHECK(made.masters[0].found == provision_finding::other_group);
}

TEST_CASE("provisioning: a group in use is left to its clients")
{
    SECTION("a master in quarantine for another reason")
    {
        core::marker its = marker_of(2);
        its.why = GENERATE(incarnation_end::stale, incarnation_end::emptied, incarnation_end::clock);
        const provision_plan made = plan({armed(1), with(its), armed(3)});
        CHECK(made.next == provision_step::refuse);
        CHECK(made.masters[1].found == provision_finding::in_service);
    }
    SECTION("an armed master that was restarted")
    {
        provision_sight restarted = armed(2);
        restarted.replication_id = replication_id('2');
        const provision_plan made = plan({armed(1), restarted, in_quarantine(3)});
        CHECK(made.next == provision_step::refuse);
        CHECK(made.masters[1].found == provision_finding::in_service);
    }
    SECTION("an armed master without counters")
    {
        provision_sight without = armed(2);
        without.has_floor = false;
        const provision_plan made = plan({armed(1), without, in_quarantine(3)});
        CHECK(made.next == provision_step::refuse);
        CHECK(made.masters[1].found == provision_finding::in_service);
    }
    SECTION("a master without a marker, while another one is armed")
    {
        const provision_plan made = plan({armed(1), fresh_master(), in_quarantine(3)});
        CHECK(made.next == provision_step::refuse);
        CHECK(made.masters[1].found == provision_finding::in_service);
    }
}

TEST_CASE("provisioning: one unfit master is enough to refuse")
{
    provision_sight unfit = GENERATE(fresh_master(), in_quarantine(2));
    const auto [expected, spoil] = GENERATE(table<provision_finding, std::function<void(provision_sight&)>>({
        {provision_finding::unknown, [](provision_sight& of) { of.is_known = false; }},
        {provision_finding::replica, [](provision_sight& of) { of.is_master = false; }},
        {provision_finding::evicts, [](provision_sight& of) { of.maxmemory_policy = "allkeys-lru"; }},
        {provision_finding::evicts, [](provision_sight& of) { of.maxmemory_policy.clear(); }},
        {provision_finding::unreadable, [](provision_sight& of) { of.has_foreign_key = true; }},
        {provision_finding::unreadable, [](provision_sight& of) { of.marker = "redlock 2 ..."; }},
        {provision_finding::other_database, [](provision_sight& of) { of.other_database = 3; }},
    }));
    CAPTURE(to_string(expected));
    spoil(unfit);
    const provision_plan made = plan({fresh_master(), unfit, fresh_master()});
    CHECK(made.next == provision_step::refuse);
    CHECK(made.masters[1].found == expected);
    CHECK(made.masters[0].found == provision_finding::unmarked);
}

TEST_CASE("provisioning: the wait may be skipped only if no key can be a lock")
{
    CHECK(plan({fresh_master(), fresh_master(), fresh_master()}).may_skip_wait);
    CHECK(plan({fresh_master(), in_quarantine(2), fresh_master()}).may_skip_wait);
    CHECK_FALSE(plan({armed(1), in_quarantine(2), in_quarantine(3)}).may_skip_wait);
    provision_sight full = fresh_master();
    full.has_other_keys = true;
    CHECK_FALSE(plan({fresh_master(), full, fresh_master()}).may_skip_wait);
}

TEST_CASE("provisioning: after the wait a master must have its marker under its replication id")
{
    const core::marker expected = marker_of(2);
    CHECK(core::check_again(in_quarantine(2), expected).found == provision_finding::unfinished);
    CHECK(core::check_again(armed(2), expected).found == provision_finding::armed);
    CHECK(core::check_again(armed(2), core::armed(expected)).found == provision_finding::armed);
    // An armed master isn't put into quarantine by a run.
    CHECK(core::check_again(in_quarantine(2), core::armed(expected)).found == provision_finding::changed);
    CHECK(core::check_again(fresh_master(), expected).found == provision_finding::changed);
    CHECK(core::check_again(fresh_master(), expected).detail == "it has no marker");
    CHECK(core::quoted_marker(fresh_master()) == "it has no marker");
    provision_sight restarted = in_quarantine(2);
    restarted.replication_id = replication_id('2');
    CHECK(core::check_again(restarted, expected).found == provision_finding::changed);
    core::marker again = expected;
    again.nonce = "00000000000000bb";
    CHECK(core::check_again(with(again), expected).found == provision_finding::changed);
    provision_sight without = armed(2);
    without.has_floor = false;
    CHECK(core::check_again(without, expected).found == provision_finding::changed);
    const core::marker left = marker_of(2, marker_state::retired);
    CHECK(core::check_again(with(left), left).found == provision_finding::left_group);
    provision_sight left_and_restarted = with(left);
    left_and_restarted.replication_id = replication_id('2');
    CHECK(core::check_again(left_and_restarted, left).found == provision_finding::left_group);
    CHECK(core::check_again(in_quarantine(2), left).found == provision_finding::changed);
    provision_sight evicting = in_quarantine(2);
    evicting.maxmemory_policy = "allkeys-lfu";
    CHECK(core::check_again(evicting, expected).found == provision_finding::evicts);
    // Its marker may be evicted: it never votes again.
    provision_sight evicting_leaver = with(left);
    evicting_leaver.maxmemory_policy = "allkeys-lfu";
    CHECK(core::check_again(evicting_leaver, left).found == provision_finding::left_group);
}

TEST_CASE("provisioning: the floor is the largest counter, at least 1")
{
    provision_sight low = fresh_master();
    low.largest = 7;
    provision_sight high = fresh_master();
    high.largest = 9'007'199'254'740'990;
    CHECK(core::floor_of(std::vector{fresh_master(), fresh_master()}) == 1);
    CHECK(core::floor_of(std::vector{low, fresh_master()}) == 7);
    CHECK(core::floor_of(std::vector{low, high, fresh_master()}) == 9'007'199'254'740'990);
}

TEST_CASE("provisioning: the wait covers max_ttl and at least 1 % of drift")
{
    CHECK(core::provision_wait(60s, 0.0) == 60'602ms);
    CHECK(core::provision_wait(60s, 0.01) == 60'602ms);
    CHECK(core::provision_wait(60s, 0.5) == 90'002ms);
}

TEST_CASE("provisioning: every finding has a name")
{
    CHECK(to_string(provision_finding::unknown) == "unknown");
    CHECK(to_string(provision_finding::in_service) == "in_service");
    CHECK(to_string(provision_finding::replica) == "replica");
    CHECK(to_string(provision_finding::not_empty) == "not_empty");
    CHECK(to_string(static_cast<provision_finding>(99)) == "unknown");
}

} // namespace redlock::test
