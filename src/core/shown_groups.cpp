// SPDX-License-Identifier: BSL-1.0
// Which groups the masters of a change show.
#include "core/shown_groups.hpp"

#include <redlock/vote.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace redlock::core
{

namespace
{

using replaced_groups = std::vector<replaced_group>;

void add(replaced_groups& to, const std::optional<marker>& shown, std::optional<member_record> members)
{
    if (shown && members && members->names.size() == shown->masters && !contains(to, shown->group))
    {
        to.push_back({*shown, *std::move(members)});
    }
}

} // namespace

std::optional<marker> marker_of(std::span<const provision_sight> seen, const std::string& group)
{
    std::optional<marker> found;
    for (const provision_sight& each : seen)
    {
        std::optional<marker> its = marker_in(each);
        if (its && its->group == group && (!found || (shows_use(*its) && !shows_use(*found))))
        {
            found = std::move(its);
        }
    }
    return found;
}

std::vector<replaced_group> replaced_by(std::span<const provision_sight> seen, const std::string& group)
{
    replaced_groups all;
    for (const provision_sight& each : seen)
    {
        const std::optional<marker> its = marker_in(each);
        const bool is_moved = its && its->group == group;
        const std::optional<replaced_groups> kept =
            is_moved && each.replaced ? parse_replaced(*each.replaced) : std::nullopt;
        for (const replaced_group& one : kept.value_or(replaced_groups{}))
        {
            add(all, one.shown, one.members);
        }
    }
    return all;
}

namespace
{

/// Returns whether a group has the list, the `max_ttl` and the policy that are wanted.
bool is_wanted(std::span<const provision_sight> seen, const std::string& group, const change_order& wanted)
{
    const std::optional<member_record> record = record_among(seen, group);
    if (!record || !is_list_of(record, sorted_members(wanted)))
    {
        return false;
    }
    for (std::size_t index = 0; index < seen.size(); ++index)
    {
        const std::optional<marker> its = marker_in(seen[index]);
        if (!its || its->group != group)
        {
            continue;
        }
        const bool has_seat = its->state == marker_state::retired ||
                              (index < wanted.members && its->seat == seat_of(*record, wanted.names[index]));
        if (!has_seat || its->masters != wanted.members || its->max_ttl != wanted.max_ttl ||
            its->policy != wanted.policy)
        {
            return false;
        }
    }
    return true;
}

/// Returns whether a group, none of whose masters is in use, is that of an unfinished run: it has a member, or a group that it
/// replaces has one. Otherwise it is long gone, and a master that has left for it was forgotten.
bool is_run(std::span<const provision_sight> seen, const std::string& group)
{
    const replaced_groups replaced = replaced_by(seen, group);
    return std::any_of(
        seen.begin(), seen.end(),
        [&](const provision_sight& each)
        {
            const std::optional<marker> its = marker_in(each);
            return its && its->state != marker_state::retired &&
                   (its->group == group || contains(replaced, its->group));
        });
}

/// Returns whether a group replaces all others that are in use.
bool replaces_all(
    std::span<const provision_sight> seen, const std::string& group, const std::set<std::string>& in_use)
{
    const replaced_groups replaced = replaced_by(seen, group);
    return std::all_of(
        in_use.begin(), in_use.end(),
        [&](const std::string& each) { return each == group || contains(replaced, each); });
}

/// Returns whether a master can't have forgotten that it was moved to another group.
bool is_present(const provision_sight& seen, const marker& its)
{
    return its.replication_id == seen.replication_id &&
           (its.state == marker_state::armed ||
            (its.state == marker_state::quarantine &&
             (its.why == incarnation_end::created || its.why == incarnation_end::clock)));
}

/// Returns whether a quorum of the masters of a group can't have forgotten that it was replaced.
bool is_present_at_quorum(std::span<const provision_sight> seen, const std::string& group)
{
    std::size_t present = 0;
    std::size_t masters = 0;
    for (const provision_sight& each : seen)
    {
        if (const std::optional<marker> its = marker_in(each); its && its->group == group)
        {
            present += is_present(each, *its) ? 1 : 0;
            masters = its->masters;
        }
    }
    return masters > 0 && present >= quorum_of(masters);
}

shown_groups groups_of(std::span<const provision_sight> seen, const change_order& wanted)
{
    shown_groups found;
    std::set<std::string> idle;
    for (const provision_sight& each : seen)
    {
        if (const std::optional<marker> its = marker_in(each))
        {
            (shows_use(*its) ? found.in_use : idle).insert(its->group);
        }
    }
    for (const std::string& group : idle)
    {
        if (!found.in_use.contains(group) && is_run(seen, group))
        {
            found.of_runs.insert(group);
        }
    }
    for (const std::string& group : found.of_runs)
    {
        if (is_wanted(seen, group, wanted) && replaces_all(seen, group, found.in_use))
        {
            found.target = group;
        }
    }
    found.of_runs.erase(found.target);
    for (const std::string& group : found.in_use)
    {
        if (found.target.empty() && found.of_runs.empty() && is_wanted(seen, group, wanted))
        {
            found.target = group;
        }
    }
    return found;
}

/// Finds the groups that are replaced: that of the masters that are in use, and those of the runs that are taken over.
void find_replaced(shown_groups& found, std::span<const provision_sight> seen, const change_order& wanted)
{
    found.replaced = replaced_by(seen, found.target);
    const auto add_shown = [&](const std::string& group)
    { add(found.replaced, marker_of(seen, group), record_among(seen, group)); };
    if (found.target.empty() && found.in_use.size() == 1 && !wanted.creates)
    {
        add_shown(*found.in_use.begin());
    }
    for (const std::string& group : found.of_runs)
    {
        if (!wanted.takeover)
        {
            continue;
        }
        for (const replaced_group& each : replaced_by(seen, group))
        {
            add(found.replaced, each.shown, each.members);
        }
        add_shown(group);
    }
}

} // namespace

shown_groups find_groups(std::span<const provision_sight> seen, const change_order& wanted)
{
    shown_groups found = groups_of(seen, wanted);
    find_replaced(found, seen, wanted);
    return found;
}

std::string present_group(std::span<const provision_sight> seen, const shown_groups& groups)
{
    std::set<std::string> found;
    for (const std::string& each : groups.in_use)
    {
        if (replaces_all(seen, each, groups.in_use))
        {
            return each;
        }
        if (is_present_at_quorum(seen, each))
        {
            found.insert(each);
        }
    }
    return found.size() == 1 ? *found.begin() : std::string{};
}

std::vector<std::string> sorted_members(const change_order& wanted)
{
    std::vector<std::string> names(
        wanted.names.begin(), wanted.names.begin() + static_cast<std::ptrdiff_t>(wanted.members));
    std::sort(names.begin(), names.end());
    return names;
}

} // namespace redlock::core
