// SPDX-License-Identifier: BSL-1.0
// Writes the report of a run as text and JSON.
#include "cli/provision/provision_output.hpp"

#include "cli/common/duration.hpp"
#include "cli/common/json.hpp"
#include "cli/common/message.hpp"

#include <redlock/vote.hpp>

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

/// Returns whether enough masters are armed for clients to arm the others: each quorum has one of them.
bool can_clients_arm(const provision_report& of, std::size_t members)
{
    const auto armed = std::count_if(
        of.masters.begin(), of.masters.end(),
        [](const provisioned_master& each) { return each.found == provision_finding::armed; });
    return static_cast<std::size_t>(armed) + quorum_of(members) > members;
}

/// Returns a finding and what to do about it.
std::string finding_in_words(const provisioned_master& of, bool clients_can_arm)
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
        return "has changed meanwhile: run the command again";
    case provision_finding::in_service:
        return std::string{"belongs to a group that is in use: its clients arm it again"} +
               (clients_can_arm ? "" : ", or redlock provision --again does");
    case provision_finding::other_run:
        return "belongs to an unfinished run with other masters or options: give the same ones, or "
               "--takeover if that run has ended";
    case provision_finding::other_group:
        return "belongs to another group: give the masters and options of that group, which --change "
               "replaces, or an empty server";
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
        return "has lost its data: only --again arms it";
    case provision_finding::clock_ahead:
        return "has a wrong clock, or had one: only --again arms it";
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

std::string line_about(const provisioned_master& of, bool clients_can_arm)
{
    // Its own sentence says it all.
    const bool is_explained = of.found == provision_finding::not_empty || of.detail.empty();
    return fmt::format(
        "{}  {}{}\n", of.name, finding_in_words(of, clients_can_arm),
        is_explained ? std::string{} : fmt::format(" ({})", of.detail));
}

bool is_old(const provisioned_master& of)
{
    return of.found == provision_finding::left_group || of.found == provision_finding::stopped;
}

/// Returns how many masters are armed, of all if there are others.
std::string armed_masters(const provision_report& of)
{
    const auto armed = std::count_if(
        of.masters.begin(), of.masters.end(),
        [](const provisioned_master& each) { return each.found == provision_finding::armed; });
    const auto members = static_cast<std::ptrdiff_t>(of.masters.size()) -
                         std::count_if(of.masters.begin(), of.masters.end(), is_old);
    return armed == members ? fmt::format("{} masters", armed)
                            : fmt::format("{} of {} masters", armed, members);
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
    const std::string pause = options.fresh ? fmt::format("without a wait if all of them are empty")
                                            : fmt::format("waits {}", in_words(wait));
    return fmt::format(
        "makes {} master{} a guarded group with a max_ttl of {}: puts {} into quarantine, {}, and arms {}",
        count, plural, in_words(options.max_ttl), them, pause, them);
}

std::string conclusion_of(const provision_report& of, std::size_t members)
{
    const bool was_stopped = of.result == boost::asio::error::operation_aborted;
    switch (of.outcome)
    {
    case provision_outcome::provisioned:
        return fmt::format("group {}: {} are armed now{}", of.group, armed_masters(of), change_of(of));
    case provision_outcome::incomplete:
        if (!can_clients_arm(of, members))
        {
            return fmt::format(
                "group {}: {} are armed, too few for clients to arm the others: run redlock provision "
                "--again {} with the members, then the same command again",
                of.group, armed_masters(of), of.group);
        }
        return fmt::format(
            "group {}: {} are armed, but the change isn't finished: run the same command again when the "
            "others can be used, or name those that never come back with --stopped",
            of.group, armed_masters(of));
    case provision_outcome::complete:
        return of.group.empty() ? std::string{"there was no marker"}
                                : fmt::format("group {}: {} were armed already", of.group, armed_masters(of));
    case provision_outcome::retired:
        return "the markers are deleted";
    case provision_outcome::unchanged:
        return was_stopped ? "interrupted: no master was changed" : "no master was changed";
    case provision_outcome::unfinished:
        break;
    }
    const std::string what = of.group.empty() ? "the deletion" : "group " + of.group;
    return fmt::format(
        "{}{} is unfinished: run the same command again, which continues", was_stopped ? "interrupted: " : "",
        what);
}

std::string text_of(const provision_report& of, std::size_t members)
{
    std::string text;
    const bool clients_can_arm = can_clients_arm(of, members);
    for (const provisioned_master& each : of.masters)
    {
        text += line_about(each, clients_can_arm);
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
