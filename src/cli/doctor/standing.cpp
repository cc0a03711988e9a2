// SPDX-License-Identifier: BSL-1.0
// Words the next step of guarded mode. The library decides which one it is.
#include "cli/doctor/standing.hpp"

#include "cli/common/duration.hpp"
#include "cli/common/message.hpp"
#include "cli/doctor/failure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace redlock::cli
{

namespace
{

std::string listed(const std::vector<std::string>& names)
{
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string counted(std::size_t masters)
{
    return fmt::format("{} master{}", masters, masters == 1 ? "" : "s");
}

/// Returns one of two words, by the number of the names.
const char* by_number(const std::vector<std::string>& names, const char* one, const char* several)
{
    return names.size() == 1 ? one : several;
}

/// Returns how the list differs from that of the group: "group 0123456789abcdef has 5 masters, and this list has 3: it lacks
/// redis://d, redis://e".
std::string difference(const guarded_advice& advice, std::size_t in_group, std::size_t in_list)
{
    std::string text =
        in_group == 0 || in_group == in_list
            ? fmt::format("this list isn't that of group {}", advice.group)
            : fmt::format("group {} has {}, and this list has {}", advice.group, counted(in_group), in_list);
    std::vector<std::string> parts;
    if (!advice.lacking.empty())
    {
        parts.push_back("it lacks " + listed(advice.lacking));
    }
    if (!advice.unknown.empty())
    {
        parts.push_back(fmt::format(
            "{} {} belong to the group", listed(advice.unknown),
            by_number(advice.unknown, "doesn't", "don't")));
    }
    return parts.empty() ? text : fmt::format("{}: {}", text, fmt::join(parts, ", and "));
}

/// Returns the number of masters of the group that most masters show; 0 if it isn't known.
std::size_t size_of_group(const std::string& group, const std::vector<master_facts>& all)
{
    const auto shows = [&group](const master_facts& each)
    { return each.examined.guarded && each.examined.guarded->group == group; };
    const auto found = std::find_if(all.begin(), all.end(), shows);
    return found == all.end() ? 0 : found->examined.guarded->masters;
}

/// Returns the step that arms the group again by its name.
std::string by_name(const guarded_advice& advice)
{
    const std::string command = "redlock provision --again " + advice.group;
    if (advice.concerned.empty())
    {
        return "Clients can't arm it, because too few masters are armed: run " + command;
    }
    return fmt::format(
        "Check that {} {}, since an empty one may be the wrong one; then run {}", listed(advice.concerned),
        by_number(advice.concerned, "is the right server", "are the right servers"), command);
}

/// Completes a finding for the next step. `result` has the words for the reason.
void word_step(finding& result, const guarded_examination& its, const std::vector<master_facts>& all)
{
    const guarded_advice& advice = its.advice;
    const bool is_empty = its.group.empty();
    switch (advice.step)
    {
    case guarded_step::none:
        if (its.reason == master_errc::other_group && !is_empty && its.group == advice.group)
        {
            result.what =
                fmt::format("it shows another max_ttl or policy of group {} than most masters", its.group);
            result.advice = "Run redlock provision --retire and its URL; a client of the group then arms it";
        }
        break;
    case guarded_step::provision:
        result.advice =
            "Check its address and --prefix; new masters: redlock provision; a group that was used: redlock "
            "provision --again and its name";
        break;
    case guarded_step::finish_provision:
        result.what = fmt::format("group {} isn't complete: no master of it was armed", advice.group);
        result.advice = "Repeat the redlock provision or redlock provision --change that was interrupted, "
                        "with the same options; if it still runs, wait for it";
        break;
    case guarded_step::use_group_list:
        result.what = difference(advice, size_of_group(advice.group, all), all.size());
        result.advice = "Give the list of the group with --master or REDLOCK_MASTERS";
        break;
    case guarded_step::use_latest_group:
        result.what = fmt::format("it has left its group, which group {} has replaced", its.group);
        result.advice =
            advice.group.empty()
                ? "Give the list of that group; if the change was interrupted, repeat the same command"
            : advice.lacking.empty()
                ? "Give the list of that group"
                : fmt::format("Give the list of that group: this one lacks {}", listed(advice.lacking));
        break;
    case guarded_step::use_recorded_name:
        result.what = fmt::format(
            "its name isn't on the record of group {}, which has {} instead", advice.group,
            listed(advice.lacking));
        result.advice = "Use the recorded address; if it is out of date, see \"Names\" in docs/guarded.md";
        break;
    case guarded_step::check_address:
        result.what = fmt::format("it belongs to no group, and isn't a master of group {}", advice.group);
        result.advice = advice.lacking.empty()
                            ? "Check its address"
                            : fmt::format("Check its address: the list lacks {}", listed(advice.lacking));
        break;
    case guarded_step::check_empty:
        result.what = is_empty
                          ? fmt::format("it belongs to no group, and others show group {}", advice.group)
                          : fmt::format("too few masters show group {}, and none its list", advice.group);
        result.advice = fmt::format(
            "Check that {}; if so: redlock provision --again and the name of the group",
            advice.concerned.empty()
                ? "these are the masters of the group"
                : fmt::format(
                      "{} {}, since an empty one may be the wrong one", listed(advice.concerned),
                      by_number(advice.concerned, "is the right server", "are the right servers")));
        break;
    case guarded_step::wait_for_clients:
        result.advice = fmt::format(
            "Leave a client of the group connected: it arms this master within {}",
            in_words(std::chrono::ceil<std::chrono::seconds>(advice.within)));
        break;
    case guarded_step::bring_back:
        result.advice = fmt::format(
            "Start {} again with {} data, because too few others are armed; if that is impossible, see "
            "\"Masters that stay in quarantine\" in docs/guarded.md",
            listed(advice.concerned), by_number(advice.concerned, "its", "their"));
        break;
    case guarded_step::mend_others:
        result.advice = fmt::format("First do what is said about {}", listed(advice.concerned));
        break;
    case guarded_step::arm:
        result.advice = "Clients don't arm it under the policy operator: run redlock provision --arm";
        break;
    case guarded_step::arm_again:
        result.advice = by_name(advice);
        break;
    case guarded_step::check_version:
        result.what = "it has a key of the guarded mode in an unknown form";
        result.advice = "Check the version and --prefix";
        break;
    }
}

/// Returns what was observed, whatever the next step is.
std::string seen(const guarded_examination& its)
{
    const bool has_group = !its.group.empty();
    if (its.reason == master_errc::not_provisioned && has_group)
    {
        return fmt::format("too few masters show its group {}", its.group);
    }
    if (its.reason == master_errc::not_a_member && its.advice.step != guarded_step::none)
    {
        return in_plain_words(
            master_errc::quarantined); // Its name is on the record, which too few masters show.
    }
    const std::string happened = in_plain_words(its.reason);
    return its.detail.empty() ? happened : fmt::format("{} ({})", happened, its.detail);
}

/// Returns whether a warning of the master says why it can't be armed.
bool refuses_arming(const master_examination& one)
{
    return std::any_of(
        one.risks.begin(), one.risks.end(),
        [](const master_issue& each)
        { return each.what == risk::arming_refused || each.what == risk::eviction; });
}

} // namespace

std::string_view name_of(arming_policy policy) noexcept
{
    return policy == arming_policy::clocks ? "clocks" : "operator";
}

std::string group_lines(const std::vector<const guarded_examination*>& masters)
{
    // A master may show a group with values from before it was armed again.
    std::map<std::tuple<std::string, std::size_t, std::chrono::milliseconds, arming_policy>, std::size_t>
        groups;
    for (const guarded_examination* const each : masters)
    {
        if (each != nullptr && !each->group.empty())
        {
            ++groups[{each->group, each->masters, each->max_ttl, each->policy}];
        }
    }
    std::string text;
    for (const auto& [group, showing] : groups)
    {
        const auto& [name, size, max_ttl, policy] = group;
        text += fmt::format(
            "group {}: {}, max_ttl {}, policy {}", name, counted(size), in_words(max_ttl), name_of(policy));
        text += showing == masters.size()
                    ? "\n"
                    : fmt::format("; {} of {} of this list show it\n", showing, masters.size());
    }
    return text;
}

std::optional<finding> about_standing(const master_examination& one, const std::vector<master_facts>& all)
{
    if (!one.guarded || !one.guarded->reason)
    {
        return std::nullopt;
    }
    const guarded_examination& its = *one.guarded;
    finding result{
        severity::failure, error_name(its.reason), seen(its), "It has no vote in guarded mode",
        advice_in(its.reason)};
    word_step(result, its, all);
    if (its.advice.step == guarded_step::wait_for_clients && refuses_arming(one))
    {
        result.advice = "First do what its warning says, so that a client can arm it";
    }
    return result;
}

} // namespace redlock::cli
