// SPDX-License-Identifier: BSL-1.0
// Findings of a usable master. Those of an unusable one are in failure.cpp.
#include "cli/finding.hpp"

#include "cli/failure.hpp"
#include "cli/persistence.hpp"
#include "cli/probe_finding.hpp"

#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

namespace redlock::cli
{

namespace
{

finding of_risk(const found_risk& found)
{
    finding result{severity::warning, "risk", found.detail, {}, {}};
    switch (found.what)
    {
    case risk::eviction:
        result.kind = "eviction";
        result.meaning = "When its memory is full it throws locks away, and another client can take them";
        result.advice = "Set maxmemory-policy noeviction";
        break;
    case risk::clock:
        result.kind = "clock";
        result.what = "its clock was set, or runs at another speed than this machine's: " + found.detail;
        result.meaning = "Locks lapse early, beside a holder that relies on them, or late";
        result.advice = "Have NTP slew its clock instead of stepping it, then examine it again";
        break;
    case risk::no_identity:
        result.kind = "no_identity";
        result.meaning =
            "Whether it is given twice and has two votes, was restarted, or evicts locks can't be known";
        result.advice = "Allow the user INFO: ACL SETUSER ... +info";
        break;
    case risk::no_fence:
        result.kind = "no_fence";
        result.meaning =
            "A SET in a connection that broke can leave a lock behind that nobody holds, for a ttl";
        result.advice = "Allow the user both: ACL SETUSER ... +client|id +client|kill";
        break;
    case risk::outdated:
        result.kind = "outdated";
        result.meaning = "Its version gets no corrections any more, and was never tried with redlock";
        result.advice = "Replace it by Redis 6 or newer, or Valkey";
        break;
    case risk::release_refused:
        result.kind = "release_refused";
        result.meaning = "Locks that are released stay there until their ttl ends";
        result.advice =
            "Allow the user the scripts: ACL SETUSER ... +eval +evalsha +get +del; rename neither away";
        break;
    }
    return result;
}

finding without_round_trips()
{
    return {
        severity::warning, "unanswered", "it answered no TIME in time",
        "How its clock goes can't be seen; if it is that slow, its votes come too late",
        "See whether it hangs or is far away; allow the user TIME: ACL SETUSER ... +time"};
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
            "With the library's default node timeout of {} ms {} of its votes come too late",
            default_node_timeout.count(), too_slow ? "half" : "some"),
        "Give a longer node timeout (redlock run has ttl / 20), or see to its load and the network",
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
        "Make a user for locks, then switch the default one off: ACL SETUSER default off resetpass -@all "
        "(see "
        "docs/deployment.md)"};
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

std::vector<finding> findings_of(const master_facts& one, const std::vector<master_facts>& all)
{
    std::vector<finding> found;
    if (one.examined.reason)
    {
        found.push_back(failure_of(one, all));
        return found;
    }
    for (const found_risk& each : one.examined.risks)
    {
        found.push_back(of_risk(each));
    }
    if (one.probed)
    {
        std::vector<finding> of_probe = findings_of_probe(one, all);
        std::move(of_probe.begin(), of_probe.end(), std::back_inserter(found));
    }
    for (std::optional<finding> more :
         {about_round_trips(one.examined), about_strangers(one), about_persistence(one.examined)})
    {
        if (more)
        {
            found.push_back(std::move(*more));
        }
    }
    return found;
}

} // namespace redlock::cli
