// SPDX-License-Identifier: BSL-1.0
// How a guarded group is provisioned, by what a look at all of its masters has shown.
#include "core/provision_plan.hpp"

#include "core/validity.hpp"

#include <algorithm>
#include <utility>

namespace redlock::core
{

namespace
{

constexpr double least_drift_factor = 0.01;

/// The run that the markers of the masters belong to.
struct found_run
{
    std::string group;                   // Empty if there is no marker.
    bool is_one = true;                  // All markers are of this group.
    std::optional<member_record> record; // Of this group.
};

found_run run_of(std::span<const provision_sight> seen)
{
    found_run found;
    for (const provision_sight& each : seen)
    {
        if (const std::optional<marker> its = marker_in(each))
        {
            found.is_one = found.is_one && (found.group.empty() || found.group == its->group);
            found.group = found.group.empty() ? its->group : found.group;
        }
    }
    found.record = record_among(seen, found.group);
    return found;
}

/// Judges a marker of a run. `fits`: the group, its size and the like are those that are wanted.
provision_seat judge_marker(const provision_sight& seen, const marker& its, bool fits)
{
    const bool is_new = its.state == marker_state::quarantine && its.why == incarnation_end::created;
    const bool is_present = its.replication_id == seen.replication_id;
    const bool is_of_change = is_new && seen.replaced.has_value(); // It has to be checked as one.
    if (!fits || is_of_change || its.state == marker_state::retired)
    {
        return seat_with(
            is_new ? provision_finding::other_run : provision_finding::other_group, quoted_marker(seen));
    }
    if (!is_new && !(its.state == marker_state::armed && is_present && seen.has_floor))
    {
        return seat_with(provision_finding::in_service, quoted_marker(seen));
    }
    provision_seat one = seat_with(is_new ? provision_finding::unfinished : provision_finding::armed);
    if (is_present)
    {
        one.keeps = its;
    }
    return one;
}

provision_seat judge(
    const provision_sight& seen, const found_run& run, bool is_same, const provision_order& wanted,
    std::uint32_t seat)
{
    if (std::optional<provision_seat> misfit = find_misfit(seen))
    {
        return *std::move(misfit);
    }
    if (!seen.marker)
    {
        return seat_with(provision_finding::unmarked);
    }
    const std::optional<marker> its = parse_marker(*seen.marker);
    if (!its)
    {
        return seat_with(provision_finding::unreadable, quoted_marker(seen));
    }
    const bool fits = is_same && run.group == its->group && its->masters == wanted.names.size() &&
                      its->seat == seat && its->max_ttl == wanted.max_ttl && its->policy == wanted.policy;
    return judge_marker(seen, *its, fits);
}

/// A master without a marker has lost it if another one of its group is armed.
void find_emptied(std::vector<provision_seat>& masters)
{
    const bool any_armed = std::any_of(
        masters.begin(), masters.end(),
        [](const provision_seat& each)
        { return each.found == provision_finding::armed || each.found == provision_finding::in_service; });
    for (provision_seat& each : masters)
    {
        if (any_armed && each.found == provision_finding::unmarked)
        {
            each.found = provision_finding::in_service;
            each.detail = "it has no marker, but other masters of the group are in use";
        }
    }
}

bool all_are(const std::vector<provision_seat>& masters, provision_finding what)
{
    return std::all_of(
        masters.begin(), masters.end(), [what](const provision_seat& each) { return each.found == what; });
}

} // namespace

provision_plan plan_provisioning(std::span<const provision_sight> seen, const provision_order& wanted)
{
    const found_run run = run_of(seen);
    const bool is_same = run.is_one && is_list_of(run.record, wanted.names);
    provision_plan plan;
    plan.group = run.is_one ? run.group : std::string{};
    plan.max_ttl = wanted.max_ttl;
    plan.policy = wanted.policy;
    const std::vector<std::uint32_t> seats = seats_of(seen, run.group, run.record, wanted.names);
    for (std::size_t index = 0; index < seen.size(); ++index)
    {
        plan.masters.push_back(judge(seen[index], run, is_same, wanted, seats[index]));
        plan.masters.back().seat = seats[index];
    }
    find_emptied(plan.masters);
    const bool is_possible = std::all_of(
        plan.masters.begin(), plan.masters.end(),
        [](const provision_seat& each) { return is_provisionable(each.found); });
    if (is_possible)
    {
        const bool is_complete = all_are(plan.masters, provision_finding::armed);
        const provision_step next = run.group.empty() ? provision_step::begin : provision_step::proceed;
        plan.next = is_complete ? provision_step::complete : next;
    }
    plan.may_skip_wait =
        std::none_of(
            plan.masters.begin(), plan.masters.end(),
            [](const provision_seat& each) { return each.found == provision_finding::armed; }) &&
        std::none_of(
            seen.begin(), seen.end(), [](const provision_sight& each) { return each.has_other_keys; });
    return plan;
}

member_record
record_of(const provision_plan& plan, const std::string& group, std::span<const std::string> names)
{
    member_record record{group, std::vector<std::string>(names.size())};
    for (std::size_t index = 0; index < names.size(); ++index)
    {
        record.names.at(plan.masters[index].seat - 1) = names[index];
    }
    return record;
}

provision_seat check_again(provision_sight seen, const marker& expected)
{
    if (expected.state == marker_state::retired)
    {
        seen.maxmemory_policy = "noeviction"; // It makes no difference here.
    }
    if (std::optional<provision_seat> misfit = find_misfit(seen))
    {
        return *std::move(misfit);
    }
    if (!seen.marker)
    {
        return seat_with(provision_finding::changed, quoted_marker(seen));
    }
    const bool has_left = expected.state == marker_state::retired && *seen.marker == to_text(expected);
    if (has_left)
    {
        return seat_with(provision_finding::left_group);
    }
    if (seen.replication_id != expected.replication_id)
    {
        return seat_with(provision_finding::changed, "it was restarted, or a replica was attached to it");
    }
    if (seen.has_floor && *seen.marker == to_text(armed(expected)))
    {
        return seat_with(provision_finding::armed);
    }
    const bool waits = expected.state == marker_state::quarantine && *seen.marker == to_text(expected);
    return waits ? seat_with(provision_finding::unfinished)
                 : seat_with(provision_finding::changed, quoted_marker(seen));
}

std::uint64_t floor_of(std::span<const provision_sight> seen) noexcept
{
    std::uint64_t floor = 1;
    for (const provision_sight& each : seen)
    {
        floor = std::max(floor, each.largest.value_or(0));
    }
    return floor;
}

clock::duration provision_wait(std::chrono::milliseconds ttl, double drift_factor) noexcept
{
    return ttl + drift(ttl, std::max(drift_factor, least_drift_factor));
}

} // namespace redlock::core
