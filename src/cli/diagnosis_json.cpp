// SPDX-License-Identifier: BSL-1.0
// The keys of doctor --json.
#include "cli/diagnosis_json.hpp"

#include "cli/json.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>

namespace redlock::cli
{

namespace
{

std::string setting(const std::optional<std::string>& value)
{
    return value ? json_string(*value) : std::string{"null"};
}

std::string microseconds(std::chrono::nanoseconds value)
{
    return value.count() == 0
               ? std::string{"null"}
               : fmt::format("{:.1f}", std::chrono::duration<double, std::micro>{value}.count());
}

/// How long a step of the probe took; null if it wasn't tried or failed.
std::string microseconds(const std::optional<probe>& made, probe_step step)
{
    return made && made->at(step).took ? microseconds(*made->at(step).took) : std::string{"null"};
}

std::string json_of(const finding& one)
{
    return fmt::format(
        R"({{"level":{},"kind":{},"what":{},"meaning":{},"advice":{}}})", json_string(to_string(one.level)),
        json_string(one.kind), json_string(one.seen()), json_string(one.meaning), json_string(one.advice));
}

std::string json_of(const master_diagnosis& one)
{
    std::string findings;
    for (const finding& each : one.findings)
    {
        findings += (findings.empty() ? "" : ",") + json_of(each);
    }
    const master_examination& examined = one.facts.examined;
    return fmt::format(
        R"({{"master":{},"verdict":{},"server":{},"run_id":{},"fastest_round_trip_us":{},"median_round_trip_us":{},)"
        R"("acquire_us":{},"extend_us":{},"release_us":{},)"
        R"("appendonly":{},"appendfsync":{},"save":{},"findings":[{}]}})",
        json_string(examined.name), json_string(to_string(one.result)), json_string_or_null(examined.server),
        json_string_or_null(examined.run_id), microseconds(examined.fastest_round_trip),
        microseconds(examined.median_round_trip), microseconds(one.facts.probed, probe_step::acquire),
        microseconds(one.facts.probed, probe_step::extend),
        microseconds(one.facts.probed, probe_step::release), setting(examined.appendonly),
        setting(examined.appendfsync), setting(examined.save), findings);
}

} // namespace

std::string json_of(const diagnosis& all)
{
    std::string masters;
    for (const master_diagnosis& each : all.masters)
    {
        masters += (masters.empty() ? "" : ",") + json_of(each);
    }
    return fmt::format(
        R"({{"verdict":{},"usable":{},"quorum":{},"may_fail":{},"masters":[{}]}})",
        json_string(to_string(all.result)), all.usable, all.quorum, all.may_fail(), masters);
}

} // namespace redlock::cli
