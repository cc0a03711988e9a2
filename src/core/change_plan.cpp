// SPDX-License-Identifier: BSL-1.0
// How a guarded group is replaced by another one.
#include "core/change_plan.hpp"

#include "core/standing.hpp"

#include <redlock/vote.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace redlock::core
{

namespace
{

/// Judges a master that isn't moved.
provision_seat judge_unmoved(const provision_sight& seen, const marker& its, const shown_groups& groups)
{
    if (groups.of_runs.contains(its.group) && !contains(groups.replaced, its.group))
    {
        return seat_with(provision_finding::other_run, quoted_marker(seen));
    }
    const bool has_left = its.state == marker_state::retired && groups.in_use.contains(its.group);
    if (!has_left && !contains(groups.replaced, its.group))
    {
        return seat_with(provision_finding::other_group, quoted_marker(seen));
    }
    provision_seat one = seat_with(provision_finding::old_group);
    const bool was_armed =
        its.state == marker_state::armed && its.replication_id == seen.replication_id && seen.has_floor;
    // Nothing was granted since it was moved first.
    one.keeps_counters = was_armed || groups.of_runs.contains(its.group);
    return one;
}

/// Judges a master that has a marker of the target.
provision_seat judge_moved(const provision_sight& seen, const marker& its, bool leaves, bool is_in_use)
{
    const bool is_present = its.replication_id == seen.replication_id;
    provision_seat one;
    if (leaves)
    {
        one.found = provision_finding::left_group;
        one.takes_part =
            is_present || !is_in_use; // It never votes again. Only a change counts its incarnation.
    }
    else if (its.state == marker_state::armed && is_present && seen.has_floor)
    {
        one.found = provision_finding::armed;
    }
    else
    {
        one.found = is_in_use ? provision_finding::in_service : provision_finding::unfinished;
        one.takes_part = !is_in_use;
    }
    const bool may_stay = leaves || its.state != marker_state::retired;
    if (is_present && may_stay && one.found != provision_finding::in_service)
    {
        one.keeps = its;
    }
    return one;
}

provision_seat judge(provision_sight seen, bool leaves, const shown_groups& groups)
{
    if (leaves)
    {
        seen.maxmemory_policy = "noeviction"; // It makes no difference here.
    }
    if (std::optional<provision_seat> misfit = find_misfit(seen))
    {
        misfit->takes_part = false;
        return *std::move(misfit);
    }
    const bool is_in_use = groups.in_use.contains(groups.target);
    if (!seen.marker)
    {
        provision_seat one = seat_with(provision_finding::unmarked);
        one.keeps_counters = false;
        if (is_in_use && !leaves)
        {
            one = seat_with(
                provision_finding::in_service, "it has no marker, but other masters of the group are in use");
            one.takes_part = false;
        }
        return one;
    }
    const std::optional<marker> its = parse_marker(*seen.marker);
    if (!its)
    {
        return seat_with(provision_finding::unreadable, quoted_marker(seen));
    }
    return its->group == groups.target ? judge_moved(seen, *its, leaves, is_in_use)
                                       : judge_unmoved(seen, *its, groups);
}

/// Returns whether a change with this finding can go on. `leaves`: the master needn't be a member.
bool permits_change(const provision_seat& its)
{
    switch (its.found)
    {
    case provision_finding::unmarked:
    case provision_finding::old_group:
    case provision_finding::unfinished:
    case provision_finding::armed:
    case provision_finding::in_service:
    case provision_finding::left_group:
    case provision_finding::stopped:
        return true;
    case provision_finding::unknown:
    case provision_finding::replica:
        return its.leaves;
    default:
        return false;
    }
}

/// Names the masters of a replaced group that the list of masters lacks; empty for none.
std::string missing_masters(const provision_plan& plan, const change_order& wanted)
{
    for (const replaced_group& group : plan.replaced)
    {
        const std::string missing = listed(without(group.members.names, wanted.names));
        if (!missing.empty())
        {
            return "group " + group.shown.group + " has " + missing +
                   ", too: name each with --from, or with --stopped if it never comes back";
        }
    }
    return {};
}

/// Returns why a replaced group, all of whose masters are given, can't be moved; empty if it can.
std::string obstacle_in(
    const replaced_group& group, const provision_plan& plan, std::span<const provision_sight> seen,
    const change_order& wanted)
{
    std::size_t answering = 0;
    std::size_t counting = 0;
    for (const std::string& name : group.members.names)
    {
        const auto given = std::find(wanted.names.begin(), wanted.names.end(), name);
        const auto index = static_cast<std::size_t>(given - wanted.names.begin());
        const provision_seat& its = plan.masters[index];
        answering += its.takes_part ? 1 : 0;
        counting += its.takes_part && its.keeps_counters && seen[index].has_floor ? 1 : 0;
    }
    const std::size_t masters = group.members.names.size();
    const auto too_few = [&group, masters](const char* what, std::size_t are, std::size_t needed)
    {
        return "too few masters of group " + group.shown.group + what + " (" + std::to_string(are) + " of " +
               std::to_string(masters) + "; " + std::to_string(needed) + " are needed)";
    };
    if (answering < quorum_of(masters))
    {
        return too_few(" can be moved", answering, quorum_of(masters));
    }
    const std::size_t needed = blocking_set(static_cast<std::uint32_t>(masters));
    if (shows_use(group.shown) && counting < needed)
    {
        return too_few(" have counters that count", counting, needed);
    }
    return {};
}

provision_step decide(
    provision_plan& plan, std::span<const provision_sight> seen, const change_order& wanted,
    const shown_groups& groups)
{
    if (!std::all_of(plan.masters.begin(), plan.masters.end(), permits_change))
    {
        return provision_step::refuse;
    }
    if (plan.obstacle = missing_masters(plan, wanted); !plan.obstacle.empty())
    {
        return provision_step::refuse;
    }
    if (groups.in_use.contains(groups.target))
    {
        const bool is_complete = std::all_of(
            plan.masters.begin(), plan.masters.end(),
            [](const provision_seat& each) { return ends_change(each.found); });
        return is_complete ? provision_step::complete : provision_step::finish;
    }
    if (plan.replaced.empty() && !wanted.creates)
    {
        const bool has_group = !groups.in_use.empty();
        plan.obstacle = has_group ? "no master has the record of its members"
                                  : "no master shows a group that can be changed: new masters are "
                                    "provisioned without --change, and "
                                    "one that was used is armed by --again";
        return provision_step::refuse;
    }
    for (const replaced_group& each : plan.replaced)
    {
        if (plan.obstacle = obstacle_in(each, plan, seen, wanted); !plan.obstacle.empty())
        {
            return provision_step::refuse;
        }
    }
    if (to_text(plan.replaced).size() > max_replaced_text)
    {
        plan.obstacle = "the names of the masters of all groups are too long";
        return provision_step::refuse;
    }
    return groups.target.empty() ? provision_step::begin : provision_step::proceed;
}

/// Returns whether a master belongs to a group that is replaced.
bool is_replaced(const provision_plan& plan, const std::string& name)
{
    return std::any_of(
        plan.replaced.begin(), plan.replaced.end(),
        [&name](const replaced_group& each) { return seat_of(each.members, name).has_value(); });
}

bool has_marker(const provision_sight& seen, const std::optional<marker>& expected)
{
    return expected && seen.is_known && seen.is_master && seen.replication_id == expected->replication_id &&
           seen.marker == to_text(*expected);
}

/// A master that leaves, but is none of a replaced group, stays as it is: it has left before, or its address is wrong.
void judge_stranger(provision_seat& its, const provision_sight& seen)
{
    const std::optional<marker> shown = marker_in(seen);
    if (shown && shown->state == marker_state::retired && its.takes_part)
    {
        its.found = provision_finding::left_group;
    }
    else if (its.takes_part)
    {
        its = seat_with(provision_finding::other_group, "it is no master of the group that is to be changed");
    }
    its.takes_part = false;
    its.keeps.reset();
}

/// Names the strangers, if nothing is done because masters of several groups are in use: those that aren't of the group that
/// could be changed, perhaps once its masters are armed. Without a difference, an operator might retire all of them.
void name_strangers(provision_plan& plan, std::span<const provision_sight> seen, const shown_groups& groups)
{
    const std::string group = present_group(seen, groups);
    for (std::size_t index = 0; index < seen.size() && !group.empty(); ++index)
    {
        provision_seat& one = plan.masters[index];
        const std::optional<marker> its = marker_in(seen[index]);
        const bool is_member = its && its->group == group;
        const bool is_in_use =
            one.found == provision_finding::armed || one.found == provision_finding::in_service;
        if (is_member && one.found == provision_finding::other_group)
        {
            one.found = provision_finding::old_group;
            one.detail.clear();
        }
        else if (its && !is_member && is_in_use)
        {
            one.found = provision_finding::other_group;
            one.detail = quoted_marker(seen[index]);
        }
    }
}

} // namespace

provision_plan plan_change(std::span<const provision_sight> seen, const change_order& wanted)
{
    const shown_groups groups = find_groups(seen, wanted);
    provision_plan plan;
    plan.group = groups.target;
    plan.max_ttl = wanted.max_ttl;
    plan.policy = wanted.policy;
    plan.replaced = groups.replaced;
    const std::optional<member_record> shown = record_among(seen, groups.target);
    const member_record record = shown.value_or(member_record{{}, sorted_members(wanted)});
    for (std::size_t index = 0; index < seen.size(); ++index)
    {
        const bool leaves = index >= wanted.members;
        provision_seat one = judge(seen[index], leaves, groups);
        if (leaves && !plan.replaced.empty() && !is_replaced(plan, wanted.names[index]))
        {
            judge_stranger(one, seen[index]);
        }
        one.leaves = leaves;
        one.keeps_counters = one.keeps_counters || wanted.creates || !is_replaced(plan, wanted.names[index]);
        one.seat = leaves ? 1 : seat_of(record, wanted.names[index]).value_or(1);
        const bool may_be_away = index >= seen.size() - wanted.stopped;
        if (may_be_away && one.found == provision_finding::unknown)
        {
            one.found = provision_finding::stopped;
        }
        plan.masters.push_back(std::move(one));
    }
    plan.next = decide(plan, seen, wanted, groups);
    if (plan.next == provision_step::refuse && groups.in_use.size() > 1 && !wanted.creates)
    {
        name_strangers(plan, seen, groups);
    }
    return plan;
}

std::chrono::milliseconds longest_ttl(const provision_plan& of) noexcept
{
    std::chrono::milliseconds longest = of.max_ttl;
    for (const replaced_group& each : of.replaced)
    {
        longest = std::max(longest, each.shown.max_ttl);
    }
    return longest;
}

bool is_moved(
    std::span<const provision_sight> seen, std::span<const std::optional<marker>> expected,
    const provision_plan& plan, const change_order& wanted)
{
    for (const replaced_group& group : plan.replaced)
    {
        std::size_t moved = 0;
        std::size_t counting = 0;
        for (std::size_t index = 0; index < seen.size(); ++index)
        {
            const bool counts =
                seat_of(group.members, wanted.names[index]) && has_marker(seen[index], expected[index]);
            moved += counts ? 1 : 0;
            counting += counts && seen[index].has_floor ? 1 : 0;
        }
        const auto masters = static_cast<std::uint32_t>(group.members.names.size());
        if (moved < quorum_of(masters) || (shows_use(group.shown) && counting < blocking_set(masters)))
        {
            return false;
        }
    }
    std::size_t waiting = 0;
    for (std::size_t index = 0; index < wanted.members; ++index)
    {
        const std::optional<marker> its = marker_in(seen[index]);
        if (its && expected[index] && its->group == expected[index]->group && shows_use(*its))
        {
            return false;
        }
        waiting += !find_misfit(seen[index]) && has_marker(seen[index], expected[index]) ? 1 : 0;
    }
    return waiting >= quorum_of(wanted.members);
}

} // namespace redlock::core
