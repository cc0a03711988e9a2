// SPDX-License-Identifier: BSL-1.0
// Turns causes into findings, and judges slow answers.
#include "cli/doctor/probe_finding.hpp"

#include "cli/common/times.hpp"
#include "cli/doctor/failure.hpp"
#include "cli/doctor/probe_causes.hpp"

#include <redlock/report.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace redlock::cli
{

namespace
{

using std::chrono::milliseconds;

/// The default of --ttl.
constexpr milliseconds default_ttl{10'000};

/// Returns what the failures mean for locks.
std::string meaning_of(const probe& made)
{
    const auto failed = [&made](probe_step which)
    { return made.at(which).tried && !made.at(which).succeeded(); };
    if (failed(probe_step::acquire))
    {
        return "No lock can be acquired on it";
    }
    if (failed(probe_step::extend) && failed(probe_step::release))
    {
        return "Locks on it can be neither extended nor released: they stay until their ttl ends";
    }
    if (failed(probe_step::extend))
    {
        return "Locks on it can't be extended";
    }
    if (failed(probe_step::release))
    {
        return "Locks on it can't be released: they stay until their ttl ends";
    }
    return "It can't show which owner holds a lock, and locks work only until it loses its scripts (SCRIPT "
           "FLUSH)";
}

finding of_forbidden(const master_facts& one, const words& commands, severity level)
{
    return {
        .level = level,
        .kind = "permission",
        .what = fmt::format("its ACL forbids the user {}: {}", one.user, fmt::join(commands, ", ")),
        .meaning = meaning_of(*one.probed),
        .advice = fmt::format("Allow it: ACL SETUSER {} +{}", one.user, fmt::join(commands, " +"))};
}

finding of_unknown(const master_facts& one, const words& commands, severity level)
{
    return {
        .level = level,
        .kind = "no_command",
        .what = fmt::format("it doesn't know the command {}", fmt::join(commands, ", ")),
        .meaning = meaning_of(*one.probed),
        .advice =
            "Remove rename-command from its configuration; use an ACL to forbid other users the command"};
}

finding of_keys(const master_facts& one, severity level)
{
    const std::string prefix{short_text{one.key_prefix}.view()};
    return {
        .level = level,
        .kind = "permission",
        .what = fmt::format("its ACL forbids the user {} keys that begin with '{}'", one.user, prefix),
        .meaning = meaning_of(*one.probed),
        .advice = fmt::format(
            "Allow them: ACL SETUSER {} ~{}*; or give the prefix that its ACL allows with --prefix", one.user,
            prefix)};
}

finding of_key_gone()
{
    return {
        .level = severity::failure,
        .kind = "loses_keys",
        .what = "a key that was set on it a moment before was gone",
        .meaning = "Locks on it can vanish while they are held",
        .advice = "Check its maxmemory-policy, its clock, and which other clients delete keys on it"};
}

finding of_no_answer(severity level)
{
    return {
        .level = level,
        .kind = "slow",
        .what = fmt::format("it didn't answer a command of the probe within {} ms", probe_timeout.count()),
        .meaning = "Its votes arrive too late",
        .advice = "Check whether it hangs, is far away, or waits for a slow disk (appendfsync)"};
}

/// Describes another error in the library's words, with more precise advice if a setting causes it.
finding of_reason(const master_facts& one, const probe_outcome& failed, const std::vector<master_facts>& all)
{
    master_facts refused = one;
    refused.examined.reason = failed.reason;
    refused.examined.detail = failed.detail;
    finding result = failure_of(refused, all);
    result.meaning = meaning_of(*one.probed);
    if (const std::optional<refusing_setting> setting = setting_behind(failed.reason))
    {
        result.kind = setting->kind;
        result.advice = setting->advice;
    }
    return result;
}

/// Reports slow answers to the probe's commands, unless slow round trips, which have their own finding, explain them.
std::optional<finding> about_slowness(const master_facts& one)
{
    const std::chrono::nanoseconds took = one.probed->slowest();
    if (took < probe_is_slow || one.examined.median_round_trip >= probe_is_slow)
    {
        return std::nullopt;
    }
    const milliseconds limit = default_node_timeout;
    const milliseconds of_run = node_timeout(default_ttl);
    std::string meaning = fmt::format(
        "With the library's default node timeout of {} ms {} of its votes arrive too late", limit.count(),
        took >= limit ? "all" : "some");
    if (took >= of_run)
    {
        meaning +=
            fmt::format(", and with that of redlock run ({} ms for its default --ttl) too", of_run.count());
    }
    return finding{
        .level = took >= limit ? severity::warning : severity::note,
        .kind = "slow",
        .what = fmt::format(
            "its slowest answer to a command of the probe, in the best of {} tries, took", one.probed->tries),
        .meaning = std::move(meaning),
        .advice = "Its round trips are faster, so it waits for its disk (appendfsync always waits for each "
                  "write): use "
                  "a faster disk, or raise the node timeout (ttl / 20 in redlock run: raise --ttl)",
        .measured = took};
}

} // namespace

std::vector<finding> findings_of_probe(const master_facts& one, const std::vector<master_facts>& all)
{
    const probe& made = *one.probed;
    const causes why = causes_of(made);
    const bool locks_work = made.at(probe_step::acquire).succeeded() &&
                            made.at(probe_step::extend).succeeded() &&
                            made.at(probe_step::release).succeeded();
    const severity level = locks_work ? severity::warning : severity::failure;
    std::vector<finding> found;
    if (!why.forbidden.empty())
    {
        found.push_back(of_forbidden(one, why.forbidden, level));
    }
    if (!why.unknown.empty())
    {
        found.push_back(of_unknown(one, why.unknown, level));
    }
    if (why.keys)
    {
        found.push_back(of_keys(one, level));
    }
    if (why.key_gone)
    {
        found.push_back(of_key_gone());
    }
    if (why.no_answer)
    {
        found.push_back(of_no_answer(level));
    }
    for (const probe_outcome* each : why.others)
    {
        found.push_back(of_reason(one, *each, all));
    }
    if (std::optional<finding> slow = about_slowness(one); slow && made.succeeded())
    {
        found.push_back(std::move(*slow));
    }
    return found;
}

} // namespace redlock::cli
