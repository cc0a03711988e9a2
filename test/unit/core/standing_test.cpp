// SPDX-License-Identifier: BSL-1.0
// The standing of a master, as a table of what a look shows.
#include "core/standing.hpp"

#include <redlock/vote.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <string>
#include <string_view>

namespace redlock::test
{

namespace
{

using core::incarnation_end;
using core::judgement;
using core::marker_state;
using core::standing;

const std::string present_id(core::replication_id_length, 'a');
const std::string earlier_id(core::replication_id_length, 'b');
const core::guarded_group group_of_five{
    "0123456789abcdef", 5, std::chrono::minutes{1}, core::arming_policy::clocks};

core::marker marker_of_group(marker_state state, incarnation_end why, std::string replication_id)
{
    return {
        .group = group_of_five.name,
        .seat = 1,
        .masters = group_of_five.masters,
        .max_ttl = group_of_five.max_ttl,
        .policy = group_of_five.policy,
        .state = state,
        .why = why,
        .nonce = "fedcba9876543210",
        .replication_id = std::move(replication_id)};
}

core::sight sight_of(const core::marker& found)
{
    return {.marker = core::to_text(found), .has_floor = true, .replication_id = present_id};
}

judgement judge(const core::sight& seen, bool is_on_record = true)
{
    return core::standing_of(seen, group_of_five, is_on_record);
}

} // namespace

TEST_CASE("standing: a master is armed by a marker of its present incarnation")
{
    const auto why = GENERATE(
        incarnation_end::created, incarnation_end::stale, incarnation_end::emptied, incarnation_end::clock);
    const core::sight seen = sight_of(marker_of_group(marker_state::armed, why, present_id));
    CHECK(judge(seen).what == standing::armed);
    CHECK(judge(seen, false).what == standing::armed); // Names may differ between clients.
}

TEST_CASE("standing: an armed marker of an earlier incarnation shows that the master may have forgotten keys")
{
    const auto why = GENERATE(
        incarnation_end::created, incarnation_end::stale, incarnation_end::emptied, incarnation_end::clock);
    const core::sight seen = sight_of(marker_of_group(marker_state::armed, why, earlier_id));
    CHECK(judge(seen) == judgement{standing::forgetful, incarnation_end::stale});
    CHECK(judge(seen, false) == judgement{standing::forgetful, incarnation_end::stale});
}

TEST_CASE("standing: a quarantine that was interrupted keeps its reason")
{
    const auto why = GENERATE(incarnation_end::created, incarnation_end::stale, incarnation_end::emptied);
    core::sight seen = sight_of(marker_of_group(marker_state::quarantine, why, earlier_id));
    seen.has_floor = GENERATE(true, false);
    CHECK(judge(seen) == judgement{standing::forgetful, why});
}

TEST_CASE("standing: a master that was restarted in quarantine for its clock may have lost counters")
{
    const core::sight seen =
        sight_of(marker_of_group(marker_state::quarantine, incarnation_end::clock, earlier_id));
    CHECK(judge(seen) == judgement{standing::forgetful, incarnation_end::stale});
}

TEST_CASE("standing: of the masters in quarantine, one that is in it for its clock has kept its counters")
{
    const auto why = GENERATE(
        incarnation_end::created, incarnation_end::stale, incarnation_end::emptied, incarnation_end::clock);
    core::sight seen = sight_of(marker_of_group(marker_state::quarantine, why, present_id));
    CHECK(judge(seen) == judgement{standing::quarantine, why});
    CHECK(core::has_kept_counters(judge(seen)) == (why == incarnation_end::clock));
    seen.has_floor = false;
    const judgement emptied{standing::forgetful, incarnation_end::emptied};
    CHECK(judge(seen) == (why == incarnation_end::clock ? emptied : judgement{standing::quarantine, why}));
}

TEST_CASE("standing: a quarantine is waited for under the names that are on record")
{
    core::sight seen =
        sight_of(marker_of_group(marker_state::quarantine, incarnation_end::emptied, present_id));
    seen.has_floor = GENERATE(true, false);
    CHECK(judge(seen).what == standing::quarantine);
    CHECK(judge(seen, false).what == standing::not_a_member);
}

TEST_CASE(
    "standing: a member without a marker, or without counters, is emptied, and a stranger is left alone")
{
    core::sight seen{.marker = {}, .has_floor = GENERATE(true, false), .replication_id = present_id};
    if (GENERATE(true, false))
    {
        seen = sight_of(marker_of_group(marker_state::armed, incarnation_end::stale, present_id));
        seen.has_floor = false;
    }
    CHECK(judge(seen) == judgement{standing::forgetful, incarnation_end::emptied});
    CHECK(judge(seen, false).what == standing::unprovisioned);
}

TEST_CASE(
    "standing: another group, size, max_ttl or policy, retired masters and other formats are never touched",
    "[guarded][scenario-83][scenario-113]")
{
    const auto state = GENERATE(marker_state::armed, marker_state::quarantine);
    const auto& id = GENERATE(std::string(core::replication_id_length, 'a'), std::string(40, 'b'));
    core::marker other = marker_of_group(state, incarnation_end::stale, id);
    SECTION("a group")
    {
        other.group = "fedcba9876543210";
        CHECK(judge(sight_of(other)).what == standing::other_group);
    }
    SECTION("a size")
    {
        other.masters = 3;
        CHECK(judge(sight_of(other)).what == standing::other_group);
    }
    SECTION("a max_ttl")
    {
        other.max_ttl += std::chrono::milliseconds{GENERATE(-1, 1)};
        CHECK(judge(sight_of(other)).what == standing::other_group);
    }
    SECTION("a policy")
    {
        other.policy = core::arming_policy::by_hand;
        CHECK(judge(sight_of(other)).what == standing::other_group);
    }
    SECTION("retired, of this group or another")
    {
        other.state = marker_state::retired;
        other.group = GENERATE(std::string{group_of_five.name}, std::string{"fedcba9876543210"});
        CHECK(judge(sight_of(other)).what == standing::retired);
    }
    SECTION("a format")
    {
        core::sight seen = sight_of(other);
        seen.marker->replace(0, 9, "redlock 2");
        CHECK(judge(seen).what == standing::unreadable);
        seen.marker = "";
        CHECK(judge(seen).what == standing::unreadable);
    }
}

TEST_CASE("standing: a replica isn't asked, whatever it has")
{
    core::sight seen = sight_of(marker_of_group(marker_state::armed, incarnation_end::stale, present_id));
    seen.is_master = false;
    CHECK(judge(seen).what == standing::replica);
    seen.marker.reset();
    CHECK(judge(seen).what == standing::replica);
}

TEST_CASE("standing: a blocking set meets every quorum, and one fewer doesn't")
{
    for (std::uint32_t masters = 1; masters <= max_masters; ++masters)
    {
        CAPTURE(masters);
        CHECK(core::blocking_set(masters) + quorum_of(masters) > masters);
        CHECK(core::blocking_set(masters) - 1 + quorum_of(masters) <= masters);
    }
}

} // namespace redlock::test
