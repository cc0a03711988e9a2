// SPDX-License-Identifier: BSL-1.0
// The findings of a master that can be used; those of one that can't are in failure.cpp.
#include "cli/finding.hpp"

#include "cli/failure.hpp"
#include "cli/persistence.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

namespace redlock::cli
{

namespace
{

using std::chrono::milliseconds;

/// What a vote may take by default (config::node_timeout, for a ttl of half a second or more).
constexpr milliseconds default_node_timeout{50};

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
        too_slow ? severity::warning : severity::note, "slow",
        fmt::format(
            "its median round trip is {:.1f} ms", std::chrono::duration<double, std::milli>{median}.count()),
        fmt::format(
            "With the library's default node timeout of {} ms {} of its votes come too late",
            default_node_timeout.count(), too_slow ? "half" : "some"),
        "Give a longer node timeout (redlock run has ttl / 20), or see to its load and the network"};
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

std::vector<finding> findings_of(const master_examination& one, const std::vector<master_examination>& all)
{
    std::vector<finding> found;
    if (one.reason)
    {
        found.push_back(failure_of(one, all));
        return found;
    }
    for (const found_risk& each : one.risks)
    {
        found.push_back(of_risk(each));
    }
    std::optional<finding> more = about_round_trips(one);
    if (more)
    {
        found.push_back(std::move(*more));
    }
    more = about_persistence(one);
    if (more)
    {
        found.push_back(std::move(*more));
    }
    return found;
}

} // namespace redlock::cli
