// SPDX-License-Identifier: BSL-1.0
// Writes the report of a run as text and JSON.
#include "cli/provision/provision_output.hpp"

#include "cli/common/duration.hpp"
#include "cli/common/json.hpp"
#include "cli/common/message.hpp"

#include <boost/asio/error.hpp>
#include <boost/json/array.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace redlock::cli
{

namespace
{

namespace json = boost::json;

/// Returns a finding, and what to do about it if that depends on this master only.
std::string finding_in_words(const provisioned_master& of)
{
    switch (of.found)
    {
    case provision_finding::unmarked:
        return "has no group";
    case provision_finding::unfinished:
        return "is in quarantine";
    case provision_finding::armed:
        return "is armed";
    case provision_finding::changed:
        return "has changed meanwhile";
    case provision_finding::in_service:
        return "isn't armed";
    case provision_finding::other_run:
        return "belongs to an unfinished run with other masters or options";
    case provision_finding::other_group:
        return "can't take part";
    case provision_finding::other_database:
        return "has a group in another database: two groups on one server need different prefixes";
    case provision_finding::unreadable:
        return "has a key of the guarded mode in an unknown form: check the version and --prefix";
    case provision_finding::evicts:
        return "may evict keys: set maxmemory-policy noeviction";
    case provision_finding::replica:
        return "is a replica: give the address of its master";
    case provision_finding::not_empty:
        return "has keys, so the wait can't be skipped: omit --fresh";
    case provision_finding::restarted:
        return "was restarted with its data";
    case provision_finding::emptied:
        return "has lost its data";
    case provision_finding::clock_ahead:
        return "has a wrong clock, or had one";
    case provision_finding::marked:
        return "has a marker";
    case provision_finding::old_group:
        return "belongs to the group that is to be changed, and isn't moved";
    case provision_finding::left_group:
        return "has left its group";
    case provision_finding::stopped:
        return "is stopped";
    case provision_finding::unknown:
        break;
    }
    return of.reason ? "can't be used: " + in_plain_words(of.reason) : std::string{"wasn't asked"};
}

std::string line_about(const provisioned_master& of)
{
    // Its own sentence says it all.
    const bool is_explained = of.found == provision_finding::not_empty || of.detail.empty();
    return fmt::format(
        "{}  {}{}\n", of.name, finding_in_words(of),
        is_explained ? std::string{} : fmt::format(" ({})", of.detail));
}

bool is_old(const provisioned_master& of)
{
    return of.found == provision_finding::left_group || of.found == provision_finding::stopped;
}

/// Returns how many members are armed, as the beginning of a sentence: "2 of 3 masters are".
std::string armed_members(
    const provision_report& of, std::size_t members, std::string_view singular, std::string_view plural)
{
    const auto armed = static_cast<std::size_t>(std::count_if(
        of.masters.begin(), of.masters.end(),
        [](const provisioned_master& each) { return each.found == provision_finding::armed; }));
    const std::string of_all = armed == members ? std::string{} : fmt::format(" of {}", members);
    return fmt::format(
        "{}{} master{} {}", armed, of_all, members == 1 ? "" : "s", armed == 1 ? singular : plural);
}

/// Returns what is said of the group before.
std::string_view change_of(const provision_report& of)
{
    return std::any_of(of.masters.begin(), of.masters.end(), is_old) ? ", and the change is finished" : "";
}

bool has_no_answer(const provisioned_master& of)
{
    return of.found == provision_finding::unknown && of.reason;
}

} // namespace

std::string intention(const provision_options& options, const config& masters)
{
    const std::size_t count = masters.masters.size() - options.leaving;
    const char* const plural = count == 1 ? "" : "s";
    const char* const them = count == 1 ? "it" : "them";
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
        provisioning_wait(options.max_ttl, masters.drift_factor));
    switch (options.action)
    {
    case provision_action::make_group:
        break;
    case provision_action::change_group:
        return fmt::format(
            "changes the group to {} master{} with a max_ttl of {} and the policy {}: no lock can be "
            "acquired for {}, or longer if the old max_ttl is",
            count, plural, in_words(options.max_ttl),
            options.policy == arming_policy::clocks ? "clocks" : "operator", in_words(wait));
    case provision_action::arm:
        return fmt::format(
            "arms a group of {} master{}: puts those that were restarted into quarantine, waits for its "
            "max_ttl, and arms them",
            count, plural);
    case provision_action::arm_again:
        return fmt::format(
            "arms group {} of {} master{} again: puts those that aren't armed into quarantine, waits for its "
            "max_ttl, and arms them, with or without their data",
            masters.guarded->group, count, plural);
    case provision_action::retire:
        return fmt::format("deletes the marker of {} master{}", count, plural);
    }
    const std::string pause =
        options.fresh ? std::string{"without a wait if all of them are empty"}
                      : fmt::format(
                            "waits {}{}", in_words(wait),
                            options.takeover ? ", or longer if the max_ttl of the other run is" : "");
    return fmt::format(
        "makes {} master{} a guarded group with a max_ttl of {}: puts {} into quarantine, {}, and arms {}",
        count, plural, in_words(options.max_ttl), them, pause, them);
}

std::string conclusion_of(const provision_report& of, std::size_t members)
{
    const auto next_after = [&of](std::string_view separator)
    { return of.advice.empty() ? std::string{} : fmt::format("{}{}", separator, of.advice); };
    const char* const interrupted = of.result == boost::asio::error::operation_aborted ? "interrupted: " : "";
    switch (of.outcome)
    {
    case provision_outcome::provisioned:
        return fmt::format(
            "group {}: {} armed now{}{}", of.group, armed_members(of, members, "is", "are"), change_of(of),
            next_after("; "));
    case provision_outcome::incomplete:
        return fmt::format(
            "group {}: {} armed, but the change isn't finished{}", of.group,
            armed_members(of, members, "is", "are"), next_after(": "));
    case provision_outcome::complete:
        return of.group.empty() ? std::string{"there was no marker"}
                                : fmt::format(
                                      "group {}: {} armed already{}", of.group,
                                      armed_members(of, members, "was", "were"), next_after("; "));
    case provision_outcome::retired:
        return "the markers are deleted";
    case provision_outcome::unchanged:
        return fmt::format("{}no master was changed{}", interrupted, next_after(": "));
    case provision_outcome::unfinished:
        break;
    }
    return fmt::format(
        "{}{} is unfinished: {}", interrupted, of.group.empty() ? "the deletion" : "group " + of.group,
        of.advice.empty() ? "run the same command again, which continues" : of.advice);
}

std::string text_of(const provision_report& of, std::size_t members)
{
    std::string text;
    for (const provisioned_master& each : of.masters)
    {
        text += line_about(each);
    }
    return text + conclusion_of(of, members) + '\n';
}

json::object json_of(const provision_report& of)
{
    json::array masters;
    for (const provisioned_master& each : of.masters)
    {
        masters.push_back(json::object{
            {"master", json_string(each.name)},
            {"found", json_string(to_string(each.found))},
            {"error", each.reason ? json_string(in_plain_words(each.reason)) : nullptr},
            {"detail", json_string_or_null(each.detail)}});
    }
    return {
        {"outcome", json_string(to_string(of.outcome))},
        {"group", json_string_or_null(of.group)},
        {"floor", of.floor == 0 ? nullptr : json::value(of.floor)},
        {"advice", json_string_or_null(of.advice)},
        {"masters", std::move(masters)}};
}

exit_code exit_code_of(const provision_report& of)
{
    const auto is_any = [&of](auto is) { return std::any_of(of.masters.begin(), of.masters.end(), is); };
    if (of.result == errc::provisioning_failed && is_any(has_no_answer))
    {
        const auto is_refused = [](const provisioned_master& each)
        { return is_refused_by_system(each.reason); };
        return is_any(is_refused) ? exit_code::system_error : exit_code::no_quorum;
    }
    return exit_code_of(of.result);
}

} // namespace redlock::cli
