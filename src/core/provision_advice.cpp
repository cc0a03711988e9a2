// SPDX-License-Identifier: BSL-1.0
// The next step of an operator, by what a run of provisioning has found.
#include "core/provision_advice.hpp"

#include "core/arming_plan.hpp"
#include "core/change_plan.hpp"
#include "core/shown_groups.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

namespace redlock::core
{

namespace
{

std::string policy_name(arming_policy policy)
{
    return policy == arming_policy::clocks ? "clocks" : "operator";
}

/// Returns a time with its unit, in whole seconds if it is.
std::string in_text(std::chrono::milliseconds value, const char* before_unit)
{
    const bool is_whole = value.count() % 1000 == 0;
    return std::to_string(is_whole ? value.count() / 1000 : value.count()) + before_unit +
           (is_whole ? "s" : "ms");
}

/// Returns whether the marker of a master doesn't fit.
bool is_refused(const provision_seat& its) noexcept
{
    return its.found == provision_finding::other_run || its.found == provision_finding::other_group;
}

/// Returns whether the line about a master says what to do about it.
bool is_explained(const provision_seat& its) noexcept
{
    return prevents_arming(its.found) && !is_refused(its);
}

bool has(const provision_plan& plan, provision_finding what)
{
    return std::any_of(
        plan.masters.begin(), plan.masters.end(),
        [what](const provision_seat& each) { return each.found == what; });
}

bool is_arming(const advised_run& run) noexcept
{
    return run.action == provision_action::arm || run.action == provision_action::arm_again;
}

std::vector<std::string> members_of(const advised_run& run)
{
    return {run.names.begin(), run.names.begin() + static_cast<std::ptrdiff_t>(run.members)};
}

std::set<std::string> shown_by(std::span<const provision_sight> seen)
{
    std::set<std::string> groups;
    for (const provision_sight& each : seen)
    {
        if (const std::optional<marker> its = marker_in(each))
        {
            groups.insert(its->group);
        }
    }
    return groups;
}

/// Returns whether no master of a group has been armed: a run that makes it hasn't finished.
bool is_unfinished(std::span<const provision_sight> seen, const std::string& group)
{
    bool is_new = false;
    for (const provision_sight& each : seen)
    {
        const std::optional<marker> its = marker_in(each);
        if (!its || its->group != group)
        {
            continue;
        }
        if (shows_use(*its))
        {
            return false;
        }
        is_new = is_new || (its->state == marker_state::quarantine && its->why == incarnation_end::created);
    }
    return is_new;
}

/// Returns the group of an unfinished run that prevents this one; empty for none.
std::string unfinished_group(const provision_plan& plan, std::span<const provision_sight> seen)
{
    for (std::size_t index = 0; index < seen.size(); ++index)
    {
        const std::optional<marker> its = marker_in(seen[index]);
        if (its && is_refused(plan.masters[index]) && is_unfinished(seen, its->group))
        {
            return its->group;
        }
    }
    return {};
}

/// Returns the command that makes an unfinished group, as far as its masters show it.
std::string command_of(std::span<const provision_sight> seen, const std::string& group)
{
    const marker its = marker_of(seen, group).value();
    const member_record record = record_among(seen, group).value_or(member_record{});
    const std::vector<replaced_group> replaced = replaced_by(seen, group);
    std::string command = "redlock provision ";
    command.append(replaced.empty() ? "" : "--change ").append("--max-ttl ");
    command.append(in_text(its.max_ttl, ""));
    command.append(its.policy == arming_policy::by_hand ? " --policy operator" : "");
    for (const std::string& each : record.names)
    {
        command.append(" --master ").append(each);
    }
    std::set<std::string> leaving;
    for (const replaced_group& each : replaced)
    {
        const std::vector<std::string> left = without(each.members.names, record.names);
        leaving.insert(left.begin(), left.end());
    }
    for (const std::string& each : leaving)
    {
        command.append(" --from ").append(each);
    }
    return command;
}

std::string
advice_on_run(std::span<const provision_sight> seen, const std::string& group, const advised_run& run)
{
    const bool is_change = !replaced_by(seen, group).empty();
    const bool can_take_over =
        !is_arming(run) && (run.action == provision_action::change_group || !is_change);
    return "group " + group + " is that of an unfinished run: repeat " + command_of(seen, group) +
           (can_take_over ? "; if that run is given up, add --takeover to this one" : "");
}

/// Returns the names that aren't members of a group, as a sentence.
std::string strangers(const std::vector<std::string>& names)
{
    return listed(names) + (names.size() == 1 ? " isn't one of them" : " aren't among them");
}

/// Returns how the list differs from that of a group; empty if it doesn't, or if the masters show neither.
std::string other_list(
    const std::optional<marker>& shown, const std::optional<member_record>& record, const advised_run& run)
{
    const std::vector<std::string> names = members_of(run);
    const std::size_t masters = shown ? shown->masters : record ? record->names.size() : names.size();
    if (masters == names.size() && is_list_of(record, names))
    {
        return {};
    }
    std::string text = std::to_string(masters) + (masters == 1 ? " master" : " masters");
    if (masters != names.size())
    {
        text.append(", and the list has ").append(std::to_string(names.size()));
    }
    const std::vector<std::string> members = record ? record->names : names;
    const std::vector<std::string> lacking = without(members, names);
    const std::vector<std::string> foreign = without(names, members);
    text.append(lacking.empty() ? "" : ": the list lacks " + listed(lacking));
    return text.append(foreign.empty() ? "" : (lacking.empty() ? ": " : "; ") + strangers(foreign));
}

/// Returns how a group differs from what was asked for, and what to do about it; empty if it doesn't differ.
std::string
advice_on_options(std::span<const provision_sight> seen, const std::string& group, const advised_run& run)
{
    const std::string subject = "group " + group + " has ";
    const std::optional<marker> shown = marker_of(seen, group);
    if (const std::string list = other_list(shown, record_among(seen, group), run); !list.empty())
    {
        return subject + list + ". Give the masters of the group" +
               (is_arming(run) ? "" : ", or another list with --change");
    }
    if (shown && run.max_ttl.count() != 0 && run.max_ttl != shown->max_ttl)
    {
        return subject + "a max_ttl of " + in_text(shown->max_ttl, " ") + ", not " +
               in_text(run.max_ttl, " ") +
               (is_arming(run) ? ": omit --max-ttl" : ": redlock provision --change replaces it");
    }
    if (shown && !is_arming(run) && run.policy != shown->policy)
    {
        return subject + "the policy " + policy_name(shown->policy) + ", not " + policy_name(run.policy) +
               ": redlock provision --change replaces it";
    }
    return {};
}

/// Returns the names of the masters that are refused, and whose marker fits.
template <class Fits>
std::vector<std::string> refused_masters(
    const provision_plan& plan, std::span<const provision_sight> seen, const advised_run& run, Fits fits)
{
    std::vector<std::string> names;
    for (std::size_t index = 0; index < seen.size(); ++index)
    {
        const std::optional<marker> its = marker_in(seen[index]);
        if (its && is_refused(plan.masters[index]) && fits(*its))
        {
            names.push_back(run.names[index]);
        }
    }
    return names;
}

/// Advises on masters that have left a group; empty if there are none.
std::string
advice_on_leavers(const provision_plan& plan, std::span<const provision_sight> seen, const advised_run& run)
{
    std::string group;
    const std::vector<std::string> left = refused_masters(
        plan, seen, run,
        [&group](const marker& its)
        {
            const bool has_left = its.state == marker_state::retired && (group.empty() || group == its.group);
            group = has_left ? its.group : group;
            return has_left;
        });
    if (left.empty())
    {
        return {};
    }
    const std::optional<member_record> record = record_among(seen, group);
    if (is_arming(run) && left.size() < seen.size())
    {
        return {}; // The others show what is wrong.
    }
    if (is_arming(run) && record)
    {
        return listed(left) + " left when group " + group + " was made: give the masters of that group, " +
               listed(record->names);
    }
    if (has(plan, provision_finding::unknown))
    {
        // Their markers may be all that is left of an interrupted change.
        return listed(left) + " left when group " + group +
               " was made, whose masters may be those that give no answer: run the same command again when "
               "they can be reached";
    }
    std::string text =
        listed(left) + (left.size() == 1 ? " has" : " have") + " left group " + group + ": redlock provision";
    for (const std::string& each : left)
    {
        text.append(" --retire ").append(each);
    }
    return text + ", then the same command again";
}

/// Advises on masters of other groups; empty if there are none.
std::string
advice_on_strangers(const provision_plan& plan, std::span<const provision_sight> seen, const advised_run& run)
{
    const std::vector<std::string> all = refused_masters(plan, seen, run, [](const marker&) { return true; });
    if (all.empty())
    {
        return {};
    }
    const std::set<std::string> groups = shown_by(seen);
    if (!run.group.empty() && !groups.contains(run.group))
    {
        const auto has_replaced = [&](const std::string& each)
        { return contains(replaced_by(seen, each), run.group); };
        const auto next = std::find_if(groups.begin(), groups.end(), has_replaced);
        return next != groups.end()
                   ? "group " + run.group + " was replaced by group " + *next + ": give that name"
                   : "no master shows group " + run.group + ", but group " + *groups.begin() +
                         ": check the name and the addresses";
    }
    if (std::any_of(
            plan.masters.begin(), plan.masters.end(),
            [](const provision_seat& each) { return each.found == provision_finding::other_run; }))
    {
        return "the masters show no use of group " + *groups.begin() + ": give all of its masters";
    }
    const bool is_change = run.action == provision_action::change_group;
    if (!is_change && groups.size() == 1)
    {
        return listed(all) + (all.size() == 1 ? " differs" : " differ") +
               " from the other masters of group " + *groups.begin() +
               ": check the address; if it is right, redlock provision --retire it, then the "
               "same command again";
    }
    if (const std::optional<member_record> record = record_among(seen, *groups.begin());
        record && groups.size() == 1)
    {
        return listed(all) + (all.size() == 1 ? " isn't" : " aren't") + " on the record of group " +
               record->group + ": give its masters as they are there, " + listed(record->names);
    }
    if (is_change && all.size() == seen.size())
    {
        return "the masters show several groups: check the addresses; if they are right, redlock provision "
               "--again with the name that was armed last";
    }
    if (!is_change && run.group.empty())
    {
        return "the markers don't fit together: check the addresses";
    }
    const std::string who = listed(all) + (all.size() == 1 ? " doesn't" : " don't") + " belong to ";
    return is_change
               ? who + "the group that is to be changed: check the address; if its group was replaced while "
                       "it was away, redlock provision --retire deletes its marker"
               : who + "group " + run.group + ": check the address";
}

/// What arms the members of a group that aren't armed.
enum class armer : std::uint8_t
{
    none, // All are armed, or nothing can.
    clients,
    by_operator,
    again,
    absent_masters,         // Once they give an answer.
    absent_masters_or_again // If they never do.
};

/// The members of a group, and what they show.
struct group_members
{
    const std::string& group;
    std::vector<std::string> names;
    std::vector<provision_sight> seen;
};

/// Finds it by the plans of the commands that might, so that no advice is refused.
armer find_armer(const group_members& of)
{
    const auto plan_with = [&of](bool accepts_losses)
    {
        const arming_order order{.names = of.names, .group = of.group, .accepts_losses = accepts_losses};
        return plan_arming(of.seen, order);
    };
    const provision_plan plan = plan_with(false);
    const bool is_silent = has(plan, provision_finding::unknown);
    if (plan.next == provision_step::proceed)
    {
        return armer::by_operator;
    }
    if (has(plan, provision_finding::in_service) || (plan.next == provision_step::complete && is_silent))
    {
        return armer::clients;
    }
    if (plan_with(true).next == provision_step::proceed)
    {
        return is_silent ? armer::absent_masters_or_again : armer::again;
    }
    return is_silent ? armer::absent_masters : armer::none;
}

std::string advice_on_armer(armer who, const std::string& group)
{
    switch (who)
    {
    case armer::none:
        break;
    case armer::clients:
        return "clients arm each that isn't armed: leave one running";
    case armer::by_operator:
        return "redlock provision --arm arms them";
    case armer::again:
        return "if these are the masters of the group, redlock provision --again " + group + " arms them";
    case armer::absent_masters:
        return "start the masters that give no answer, with their data";
    case armer::absent_masters_or_again:
        return "start the masters that give no answer, with their data; if they never come back, "
               "redlock provision --again " +
               group;
    }
    return {};
}

group_members
members_in(const advised_run& run, std::span<const provision_sight> seen, const std::string& group)
{
    const auto members = seen.first(run.members);
    return {group, members_of(run), {members.begin(), members.end()}};
}

/// Returns what the old group of a change needs before it can be moved; empty if that isn't known.
std::string
advice_on_replaced(const provision_plan& plan, std::span<const provision_sight> seen, const advised_run& run)
{
    for (const replaced_group& each : plan.replaced)
    {
        group_members its{each.shown.group, each.members.names, {}};
        for (const std::string& name : its.names)
        {
            const auto at = std::find(run.names.begin(), run.names.end(), name);
            if (at != run.names.end())
            {
                its.seen.push_back(seen[static_cast<std::size_t>(at - run.names.begin())]);
            }
        }
        const armer who = its.seen.size() == its.names.size() ? find_armer(its) : armer::none;
        if (who != armer::none)
        {
            return advice_on_armer(who, its.group) + "; then the same command again";
        }
    }
    return {};
}

std::string in_one(const std::string& why, const std::string& advice)
{
    return why + (why.empty() || advice.empty() ? "" : ": ") + advice;
}

/// Returns the group that a run is about: the one that it names, or the only one that masters show. Empty if there is none.
std::string subject_of(std::span<const provision_sight> seen, const advised_run& run)
{
    const std::set<std::string> groups = shown_by(seen);
    return run.group.empty() && groups.size() == 1 ? *groups.begin() : run.group;
}

/// Advises on masters whose markers don't fit; empty if there are none.
std::string
advice_on_misfits(const provision_plan& plan, std::span<const provision_sight> seen, const advised_run& run)
{
    if (const std::string group = unfinished_group(plan, seen); !group.empty())
    {
        return advice_on_run(seen, group, run);
    }
    const std::string subject = subject_of(seen, run);
    const std::optional<marker> shown = marker_of(seen, subject);
    const bool has_left = shown && shown->state == marker_state::retired;
    std::string advice;
    if (!has_left && run.action != provision_action::change_group &&
        std::any_of(plan.masters.begin(), plan.masters.end(), is_refused))
    {
        advice = advice_on_options(seen, subject, run);
    }
    advice = advice.empty() ? advice_on_leavers(plan, seen, run) : advice;
    return advice.empty() ? advice_on_strangers(plan, seen, run) : advice;
}

} // namespace

std::string
advice_on(const provision_plan& plan, std::span<const provision_sight> seen, const advised_run& run)
{
    const auto by_members = [&]
    { return advice_on_armer(find_armer(members_in(run, seen, plan.group)), plan.group); };
    if (plan.next == provision_step::complete && is_arming(run))
    {
        return by_members();
    }
    if (plan.next != provision_step::refuse || run.action == provision_action::retire ||
        std::any_of(plan.masters.begin(), plan.masters.end(), is_explained))
    {
        return {};
    }
    if (const std::string advice = advice_on_misfits(plan, seen, run); !advice.empty())
    {
        return advice;
    }
    switch (run.action)
    {
    case provision_action::arm:
        return plan.group.empty() && has(plan, provision_finding::unmarked)
                   ? "no master shows a group: redlock provision --again and its name arms one that was used"
                   : in_one(plan.obstacle, by_members());
    case provision_action::change_group:
        return plan.obstacle.empty() ? std::string{}
                                     : in_one(plan.obstacle, advice_on_replaced(plan, seen, run));
    case provision_action::arm_again:
        return plan.obstacle.empty() ? by_members() : plan.obstacle;
    case provision_action::make_group:
    case provision_action::retire:
        break;
    }
    return has(plan, provision_finding::in_service) ? by_members() : plan.obstacle;
}

std::string advice_after(
    std::span<const provision_finding> found, std::span<const provision_sight> seen, const advised_run& run,
    const std::string& group)
{
    const auto is_armed = [](provision_finding each) { return each == provision_finding::armed; };
    const auto members = found.first(run.members);
    const armer who = std::all_of(members.begin(), members.end(), is_armed)
                          ? armer::none
                          : find_armer(members_in(run, seen, group));
    if (is_arming(run) || (who != armer::none && who != armer::clients))
    {
        return advice_on_armer(who, group) + (is_arming(run) ? "" : "; then the same command again");
    }
    std::vector<std::string> unmoved;
    for (std::size_t index = run.members; index < found.size(); ++index)
    {
        if (!ends_change(found[index]))
        {
            unmoved.push_back(run.names[index]);
        }
    }
    if (!unmoved.empty())
    {
        return "run the same command again when " + listed(unmoved) + " can be used, or with --stopped if " +
               (unmoved.size() == 1 ? "it never comes back" : "they never come back");
    }
    return who == armer::clients ? "clients arm each that isn't armed; then run the same command again"
                                 : std::string{};
}

} // namespace redlock::core
