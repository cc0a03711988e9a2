// SPDX-License-Identifier: BSL-1.0
// The keys of doctor --json.
#include "cli/doctor/diagnosis_json.hpp"

#include "cli/common/json.hpp"
#include "cli/doctor/standing.hpp"

#include <boost/json/array.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace redlock::cli
{

namespace
{

namespace json = boost::json;

json::value setting(const std::optional<std::string>& value)
{
    return value ? json_string(*value) : nullptr;
}

/// Whole numbers, because Boost.JSON writes all others with an exponent.
json::value microseconds(std::chrono::nanoseconds value)
{
    return value.count() == 0 ? json::value(nullptr)
                              : std::chrono::ceil<std::chrono::microseconds>(value).count();
}

/// The duration of a step of the probe; null if it wasn't tried or failed.
json::value microseconds(const std::optional<probe>& made, probe_step step)
{
    return made && made->at(step).took ? microseconds(*made->at(step).took) : nullptr;
}

json::object json_of(const finding& one)
{
    return {
        {"level", json_string(to_string(one.level))},
        {"kind", json_string(one.kind)},
        {"what", json_string(one.seen())},
        {"meaning", json_string(one.meaning)},
        {"advice", json_string(one.advice)}};
}

/// Null without --guarded.
json::value json_of(const std::optional<guarded_examination>& one)
{
    if (!one)
    {
        return nullptr;
    }
    return {
        {"armed", !one->reason},
        {"reason", one->reason ? json_string(error_name(one->reason)) : json::value(nullptr)},
        {"group", json_string_or_null(one->group)},
        {"seat", one->seat == 0 ? json::value(nullptr) : json::value(one->seat)},
        {"masters", one->seat == 0 ? json::value(nullptr) : json::value(one->masters)},
        {"max_ttl_ms", one->seat == 0 ? json::value(nullptr) : json::value(one->max_ttl.count())},
        {"policy", one->seat == 0 ? json::value(nullptr) : json_string(name_of(one->policy))},
        {"armed_in_ms", one->armed_in ? json::value(one->armed_in->count()) : json::value(nullptr)},
        {"next_step", one->advice.step == guarded_step::none ? json::value(nullptr)
                                                             : json_string(to_string(one->advice.step))}};
}

json::object json_of(const master_diagnosis& one)
{
    json::array findings;
    for (const finding& each : one.findings)
    {
        findings.push_back(json_of(each));
    }
    const master_examination& examined = one.facts.examined;
    return {
        {"master", json_string(examined.name)},
        {"verdict", json_string(to_string(one.result))},
        {"server", json_string_or_null(examined.server)},
        {"run_id", json_string_or_null(examined.run_id)},
        {"fastest_round_trip_us", microseconds(examined.fastest_round_trip)},
        {"median_round_trip_us", microseconds(examined.median_round_trip)},
        {"acquire_us", microseconds(one.facts.probed, probe_step::acquire)},
        {"extend_us", microseconds(one.facts.probed, probe_step::extend)},
        {"release_us", microseconds(one.facts.probed, probe_step::release)},
        {"appendonly", setting(examined.appendonly)},
        {"appendfsync", setting(examined.appendfsync)},
        {"save", setting(examined.save)},
        {"guarded", json_of(examined.guarded)},
        {"findings", std::move(findings)}};
}

} // namespace

json::object json_of(const diagnosis& all)
{
    json::array masters;
    for (const master_diagnosis& each : all.masters)
    {
        masters.push_back(json_of(each));
    }
    return {
        {"verdict", json_string(to_string(all.result))},
        {"usable", all.usable},
        {"quorum", all.quorum},
        {"may_fail", all.may_fail()},
        {"masters", std::move(masters)}};
}

} // namespace redlock::cli
