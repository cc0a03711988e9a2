// SPDX-License-Identifier: BSL-1.0
// What an operator does to the masters of a group.
#include "core/arming_plan.hpp"

#include "core/fencing.hpp"
#include "core/standing.hpp"

#include <redlock/vote.hpp>

#include <algorithm>
#include <utility>

namespace redlock::core
{

namespace
{

/// The group that the masters belong to.
struct found_group
{
    std::string name; // Empty if it isn't known.
    std::chrono::milliseconds max_ttl{};
    arming_policy policy{};
    std::optional<member_record> record;
    bool fits = false; // The list and the max_ttl are those that are wanted.
};

found_group group_of(std::span<const provision_sight> seen, const arming_order& wanted)
{
    found_group found{wanted.group, wanted.max_ttl, wanted.policy, std::nullopt, true};
    for (const provision_sight& each : seen)
    {
        const std::optional<marker> its = marker_in(each);
        if (its && (found.name.empty() || found.name == its->group))
        {
            found.name = its->group;
            break;
        }
    }
    // A minority may show the values from before the group was armed again.
    std::ptrdiff_t most = 0;
    for (const provision_sight& each : seen)
    {
        const std::optional<marker> its = marker_in(each);
        const auto shows_the_same = [&its](const provision_sight& other)
        {
            const std::optional<marker> its_own = marker_in(other);
            return its_own && is_of_group(*its_own, group_in(*its));
        };
        const bool is_member = its && its->group == found.name;
        const auto showing = is_member ? std::count_if(seen.begin(), seen.end(), shows_the_same) : 0;
        if (showing > most)
        {
            most = showing;
            found.max_ttl = its->max_ttl;
            found.policy = its->policy;
        }
    }
    found.record = record_among(seen, found.name);
    const bool is_wanted_ttl = wanted.max_ttl.count() == 0 || wanted.max_ttl == found.max_ttl;
    found.fits = is_wanted_ttl && is_list_of(found.record, wanted.names);
    return found;
}

provision_finding finding_of(incarnation_end why, bool has_floor) noexcept
{
    switch (why)
    {
    case incarnation_end::created:
        return provision_finding::unfinished;
    case incarnation_end::stale:
        return has_floor ? provision_finding::restarted : provision_finding::emptied;
    case incarnation_end::emptied:
        return provision_finding::emptied;
    case incarnation_end::clock:
        break;
    }
    return provision_finding::clock_ahead;
}

/// Judges a member as clients do.
provision_seat judge_member(const provision_sight& seen, const found_group& group, std::uint32_t masters)
{
    const judgement its = standing_of(
        sight{seen.marker, seen.has_floor, seen.replication_id, seen.is_master},
        {group.name, masters, group.max_ttl, group.policy}, true);
    std::optional<marker> present = marker_in(seen);
    provision_seat one;
    switch (its.what)
    {
    case standing::armed:
        one.found = provision_finding::armed;
        one.keeps = std::move(present);
        return one;
    case standing::quarantine:
        one.why = present->why;
        one.keeps = std::move(present);
        break;
    case standing::forgetful:
        if (group.name.empty())
        {
            return seat_with(provision_finding::unmarked);
        }
        one.why = its.why;
        break;
    case standing::unreadable:
        return seat_with(provision_finding::unreadable, quoted_marker(seen));
    default:
        return seat_with(provision_finding::other_group, quoted_marker(seen));
    }
    one.found = finding_of(one.why, seen.has_floor);
    return one;
}

provision_seat
judge(const provision_sight& seen, const found_group& group, const arming_order& wanted, std::uint32_t seat)
{
    provision_seat one;
    if (std::optional<provision_seat> misfit = find_misfit(seen))
    {
        one = *std::move(misfit);
    }
    else
    {
        const std::optional<marker> its = marker_in(seen);
        const bool fits =
            group.fits &&
            (!its || (its->seat == seat && its->max_ttl == group.max_ttl && its->policy == group.policy));
        one = fits ? judge_member(seen, group, static_cast<std::uint32_t>(wanted.names.size()))
                   : seat_with(provision_finding::other_group, quoted_marker(seen));
    }
    one.seat = seat;
    switch (one.found)
    {
    case provision_finding::armed:
    case provision_finding::restarted:
        break;
    case provision_finding::unfinished:
    case provision_finding::emptied:
    case provision_finding::clock_ahead:
        one.takes_part = wanted.accepts_losses;
        break;
    default:
        one.takes_part = false;
    }
    if (!one.takes_part)
    {
        one.keeps.reset();
    }
    return one;
}

std::size_t count(const provision_plan& plan, provision_finding what)
{
    return static_cast<std::size_t>(std::count_if(
        plan.masters.begin(), plan.masters.end(),
        [what](const provision_seat& each) { return each.found == what; }));
}

std::size_t participants(const provision_plan& plan)
{
    return static_cast<std::size_t>(std::count_if(
        plan.masters.begin(), plan.masters.end(),
        [](const provision_seat& each) { return each.takes_part; }));
}

/// Returns whether so many are armed that clients arm the others. New clients have to find the group at a quorum, which is more
/// if the number of masters is even.
bool can_be_left_to_clients(
    const provision_plan& plan, std::span<const provision_sight> seen, const found_group& group)
{
    const auto showing = static_cast<std::size_t>(std::count_if(
        seen.begin(), seen.end(),
        [&group](const provision_sight& each)
        {
            const std::optional<marker> its = marker_in(each);
            return its && its->group == group.name;
        }));
    return count(plan, provision_finding::armed) >= blocking_set(static_cast<std::uint32_t>(seen.size())) &&
           showing >= quorum_of(seen.size());
}

/// Leaves the members that aren't armed to the clients.
void leave_to_clients(provision_plan& plan)
{
    for (provision_seat& each : plan.masters)
    {
        switch (each.found)
        {
        case provision_finding::restarted:
        case provision_finding::emptied:
        case provision_finding::clock_ahead:
        case provision_finding::unfinished:
            each.found = provision_finding::in_service;
            break;
        default:
            break;
        }
    }
}

/// Refuses the masters of a group that hasn't been armed since it replaced another one: only the change knows when it may be.
void leave_to_change(provision_plan& plan, std::span<const provision_sight> seen, const found_group& group)
{
    const bool is_in_use = std::any_of(
        seen.begin(), seen.end(),
        [&group](const provision_sight& each)
        {
            const std::optional<marker> its = marker_in(each);
            return its && its->group == group.name && shows_use(*its);
        });
    for (std::size_t index = 0; !is_in_use && index < seen.size(); ++index)
    {
        provision_seat& its = plan.masters[index];
        if (its.found == provision_finding::unfinished && seen[index].replaced)
        {
            its.found = provision_finding::other_run;
            its.detail = "the change of its group isn't finished";
        }
    }
}

std::string too_few(const char* what, std::size_t are, std::size_t of)
{
    return std::string{"too few masters "} + what + " (" + std::to_string(are) + " of " + std::to_string(of) +
           "; " + std::to_string(quorum_of(of)) + " are needed)";
}

provision_step decide(
    provision_plan& plan, std::span<const provision_sight> seen, const arming_order& wanted,
    const found_group& group)
{
    const std::size_t masters = plan.masters.size();
    const std::size_t armed = count(plan, provision_finding::armed);
    const std::size_t restarted = count(plan, provision_finding::restarted);
    const std::size_t answering = participants(plan);
    if (std::any_of(
            plan.masters.begin(), plan.masters.end(),
            [](const provision_seat& each) { return prevents_arming(each.found); }))
    {
        return provision_step::refuse;
    }
    if (armed >= quorum_of(masters)) // Clients arm the others.
    {
        leave_to_clients(plan);
        return provision_step::complete;
    }
    const bool is_left_to_clocks = group.policy == arming_policy::clocks && restarted >= quorum_of(masters);
    if (can_be_left_to_clients(plan, seen, group) || (!wanted.accepts_losses && is_left_to_clocks))
    {
        leave_to_clients(plan);
        return provision_step::refuse;
    }
    // Those that an interrupted run has armed count, too.
    const std::size_t with_data = group.policy == arming_policy::by_hand ? armed + restarted : restarted;
    if (!wanted.accepts_losses && with_data < quorum_of(masters))
    {
        plan.obstacle = too_few("were restarted with their data", with_data, masters);
        return provision_step::refuse;
    }
    if (answering < quorum_of(masters))
    {
        plan.obstacle = too_few("answer", answering, masters) + ": start the others";
        return provision_step::refuse;
    }
    if (group.max_ttl.count() == 0)
    {
        plan.obstacle = "no master shows the max_ttl of group " + group.name +
                        ": give --max-ttl and --policy as the group was made with them";
        return provision_step::refuse;
    }
    return provision_step::proceed;
}

provision_seat judge_retirement(provision_sight seen)
{
    seen.maxmemory_policy = "noeviction"; // It makes no difference here.
    const std::optional<provision_seat> misfit = find_misfit(seen);
    provision_seat one;
    if (misfit && !(misfit->found == provision_finding::other_database && seen.marker))
    {
        one = *misfit;
    }
    else if (!seen.marker)
    {
        one.found = provision_finding::unmarked;
    }
    else if (parse_marker(*seen.marker))
    {
        one.found = provision_finding::marked;
    }
    else
    {
        one = seat_with(provision_finding::unreadable, quoted_marker(seen));
    }
    one.takes_part = one.found == provision_finding::marked;
    return one;
}

} // namespace

bool prevents_arming(provision_finding found) noexcept
{
    switch (found)
    {
    case provision_finding::other_run:
    case provision_finding::other_group:
    case provision_finding::other_database:
    case provision_finding::unreadable:
    case provision_finding::evicts:
    case provision_finding::replica:
        return true;
    default:
        return false;
    }
}

provision_plan plan_arming(std::span<const provision_sight> seen, const arming_order& wanted)
{
    const found_group group = group_of(seen, wanted);
    provision_plan plan;
    plan.group = group.name;
    plan.max_ttl = group.max_ttl;
    plan.policy = group.policy;
    const std::vector<std::uint32_t> seats = seats_of(seen, group.name, group.record, wanted.names);
    for (std::size_t index = 0; index < seen.size(); ++index)
    {
        plan.masters.push_back(judge(seen[index], group, wanted, seats[index]));
    }
    leave_to_change(plan, seen, group);
    plan.next = decide(plan, seen, wanted, group);
    return plan;
}

std::uint64_t floor_by_clocks(std::span<const provision_sight> seen) noexcept
{
    std::uint64_t floor = floor_of(seen);
    for (const provision_sight& each : seen)
    {
        floor = each.is_known ? std::max(floor, floor_by_clock(each.clock)) : floor;
    }
    return floor;
}

provision_plan plan_retirement(std::span<const provision_sight> seen)
{
    provision_plan plan;
    for (const provision_sight& each : seen)
    {
        plan.masters.push_back(judge_retirement(each));
    }
    const auto is_unfit = [](const provision_seat& each)
    { return each.found != provision_finding::marked && each.found != provision_finding::unmarked; };
    if (std::none_of(plan.masters.begin(), plan.masters.end(), is_unfit))
    {
        plan.next = participants(plan) == 0 ? provision_step::complete : provision_step::proceed;
    }
    return plan;
}

} // namespace redlock::core
