// SPDX-License-Identifier: BSL-1.0
// Findings of a usable master. Those of an unusable one are in failure.cpp.
#include "cli/doctor/finding.hpp"

#include "cli/doctor/failure.hpp"
#include "cli/doctor/persistence.hpp"
#include "cli/doctor/probe_finding.hpp"
#include "cli/doctor/standing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

namespace redlock::cli
{

namespace
{

/// Returns what to do about a master that can't be armed.
std::string advice_on_arming(const master_issue& refused)
{
    const std::string_view text = refused.detail;
    if (text.starts_with("maxmemory-policy"))
    {
        return "Set maxmemory-policy noeviction";
    }
    if (const std::optional<refusing_setting> setting = setting_behind(refused.reason))
    {
        return setting->advice;
    }
    if (text.find(": WRONGTYPE ") != std::string_view::npos)
    {
        return "Check the version and --prefix: a key of the guarded mode has another type";
    }
    const bool is_unknown = text.find(": ERR unknown command") != std::string_view::npos ||
                            text.find(": ERR Unknown ") != std::string_view::npos;
    if (!refused.reason || refused.reason == master_errc::no_permission || is_unknown)
    {
        return "Allow the command: its ACL or a rename-command forbids it, see 'ACL' in docs/deployment.md";
    }
    return advice_in(refused.reason);
}

finding of_risk(const master_issue& found)
{
    finding result{severity::warning, "risk", found.detail, {}, {}};
    switch (found.what)
    {
    case risk::eviction:
        result.kind = "eviction";
        result.meaning =
            "When its memory is full, it evicts keys, and another client can acquire their locks";
        result.advice = "Set maxmemory-policy noeviction";
        break;
    case risk::clock:
        result.kind = "clock";
        result.what = "its clock was set, or runs at a different speed than this machine's: " + found.detail;
        result.meaning = "Locks expire too early, while their owner still relies on them, or too late";
        result.advice = "Configure NTP to slew its clock instead of stepping it, then run doctor again";
        break;
    case risk::no_identity:
        result.kind = "no_identity";
        result.meaning =
            "It can't be detected if it is given twice and has two votes, was restarted, or evicts keys";
        result.advice = "Allow INFO: ACL SETUSER ... +info";
        break;
    case risk::cannot_kill_stale_connections:
        result.kind = "cannot_kill_stale_connections";
        result.meaning = "A SET on a broken connection can leave a key without an owner, until its ttl ends";
        result.advice = "Allow both: ACL SETUSER ... +client|id +client|kill";
        break;
    case risk::outdated:
        result.kind = "outdated";
        result.meaning = "This version is no longer maintained, and was never tested with redlock";
        result.advice = "Upgrade to Redis 6 or later, or to Valkey";
        break;
    case risk::release_refused:
        result.kind = "release_refused";
        result.meaning = "Released locks stay on it until their ttl ends";
        result.advice =
            "Allow the scripts: ACL SETUSER ... +eval +evalsha +get +del; rename none of these commands";
        break;
    case risk::limited_queue:
        result.kind = "limited_queue";
        result.meaning = "Clients that wait for a lock get it up to a quarter of a second late";
        result.advice = "Allow the queue: see 'ACL' in docs/deployment.md; use a server that speaks RESP3";
        break;
    case risk::arming_refused:
        result.kind = "arming_refused";
        result.what = "it can't be armed (" + found.detail + ")";
        result.meaning = "Provisioning it, and arming it after a restart, fails";
        result.advice = advice_on_arming(found);
        break;
    }
    return result;
}

finding without_round_trips()
{
    return {
        severity::warning, "unanswered", "it answered no TIME in time",
        "Its clock can't be checked; if it is that slow, its votes arrive too late",
        "Check whether it hangs or is far away; allow TIME: ACL SETUSER ... +time"};
}

std::optional<finding> about_round_trips(const master_examination& one)
{
    const std::chrono::nanoseconds median = one.median_round_trip;
    if (median == std::chrono::nanoseconds::zero())
    {
        return without_round_trips();
    }
    if (median < default_node_timeout / 2)
    {
        return std::nullopt;
    }
    const bool too_slow = median >= default_node_timeout;
    return finding{
        too_slow ? severity::warning : severity::note,
        "slow",
        "its median round trip is",
        fmt::format(
            "With the library's default node timeout of {} ms {} of its votes arrive too late",
            default_node_timeout.count(), too_slow ? "half" : "some"),
        "Raise the node timeout (ttl / 20 in redlock run: raise --ttl), or check its load and the network",
        median};
}

/// Reports an open default user: a warning on a network, and a note on this machine, where it is usually intended.
std::optional<finding> about_strangers(const master_facts& one)
{
    if (!one.is_open)
    {
        return std::nullopt;
    }
    return finding{
        one.is_local ? severity::note : severity::warning, "no_password",
        "the default user needs no password",
        "Every client that can reach it can acquire, release and delete any lock",
        "Create a user for administration and log in as it, create one for locks, then disable the default "
        "user: ACL SETUSER default off resetpass -@all (see docs/deployment.md)"};
}

} // namespace

std::string_view to_string(severity value) noexcept
{
    switch (value)
    {
    case severity::note:
        return "note";
    case severity::warning:
        return "warning";
    case severity::failure:
        return "failure";
    }
    return "unknown";
}

std::string in_ms(std::chrono::nanoseconds value)
{
    return fmt::format("{:.2f} ms", std::chrono::duration<double, std::milli>{value}.count());
}

std::string finding::seen() const
{
    return measured ? fmt::format("{} {}", what, in_ms(*measured)) : what;
}

bool has_risk(const master_examination& one, risk what)
{
    return std::any_of(
        one.risks.begin(), one.risks.end(), [what](const master_issue& each) { return each.what == what; });
}

std::vector<finding> findings_of(const master_facts& one, const std::vector<master_facts>& all)
{
    std::vector<finding> found;
    if (one.examined.reason)
    {
        found.push_back(failure_of(one, all));
        return found;
    }
    // The findings of the probe name the command that has stopped it.
    const bool stops = one.probed && !one.probed->succeeded();
    for (const master_issue& each : one.examined.risks)
    {
        if (!stops || (each.what != risk::release_refused && each.what != risk::limited_queue))
        {
            found.push_back(of_risk(each));
        }
    }
    if (one.probed)
    {
        std::vector<finding> of_probe = findings_of_probe(one, all);
        std::move(of_probe.begin(), of_probe.end(), std::back_inserter(found));
        const std::optional<std::string>& refusal = one.probed->queue_refusal;
        if (refusal && !has_risk(one.examined, risk::limited_queue))
        {
            found.push_back(of_risk({risk::limited_queue, *refusal}));
        }
    }
    for (std::optional<finding> more :
         {about_standing(one.examined, all), about_round_trips(one.examined), about_strangers(one),
          about_persistence(one.examined)})
    {
        if (more)
        {
            found.push_back(std::move(*more));
        }
    }
    return found;
}

} // namespace redlock::cli
