// SPDX-License-Identifier: BSL-1.0
// The results of a run as JSON. comparison.cpp reads what is written here.
#include "output/results.hpp"

#include <boost/json.hpp>

#include <cmath>
#include <optional>
#include <vector>

namespace redlock::bench
{

namespace
{

namespace json = boost::json;

/// JSON has no infinity and no NaN; both become null.
json::value number(std::optional<double> value)
{
    return value && std::isfinite(*value) ? json::value(*value) : json::value(nullptr);
}

template <class Range, class Convert>
json::array array_of(const Range& values, Convert convert)
{
    json::array out;
    for (const auto& each : values)
    {
        out.push_back(convert(each));
    }
    return out;
}

json::object figure_object(const figure& one)
{
    json::object out{
        {"name", one.name},
        {"unit", one.unit},
        {"reference", number(one.reference)},
        {"measured", number(one.measured)}};
    if (one.ratio)
    {
        out["ratio"] = {
            {"median", number(one.ratio->median)},
            {"least", number(one.ratio->min)},
            {"most", number(one.ratio->max)}};
    }
    if (one.goal)
    {
        out["goal"] = *one.goal;
        out["met"] = one.met();
    }
    if (!one.samples.empty())
    {
        out["samples"] = array_of(one.samples, number);
    }
    return out;
}

json::object plot_object(const plot& one)
{
    const auto point = [](const auto& each) { return json::array{number(each.first), number(each.second)}; };
    const auto line = [&](const series& each) {
        return json::object{{"name", each.name}, {"points", array_of(each.points, point)}};
    };
    return {
        {"name", one.name},
        {"title", one.title},
        {"x", one.x},
        {"y", one.y},
        {"logarithmic_x", one.logarithmic_x},
        {"logarithmic_y", one.logarithmic_y},
        {"lines", array_of(one.lines, line)}};
}

json::object group_object(const figure_group& group)
{
    return {
        {"title", group.title},
        {"reference", group.reference},
        {"measured", group.measured},
        {"notes", json::value_from(group.notes)},
        {"figures", array_of(group.figures, figure_object)},
        {"plots", array_of(group.plots, plot_object)}};
}

} // namespace

json::object to_json(const results& measured)
{
    const machine_info& machine = measured.machine;
    const options& settings = measured.settings;
    return {
        {"machine",
         {{"processor", machine.processor},
          {"cores", machine.cores},
          {"kernel", machine.kernel},
          {"compiler", machine.compiler},
          {"boost", machine.boost},
          {"server", machine.server},
          {"cpu", machine.cpu},
          {"load", machine.load}}},
        {"settings",
         {{"quick", settings.quick},
          {"masters", settings.masters},
          {"rounds", settings.rounds},
          {"pairs", settings.pairs},
          {"kept", json::value_from(settings.kept)},
          {"keep_for_ms", settings.keep_for.count()},
          {"trial_s", settings.trials.rolling.count()},
          {"trial_hung_runs", settings.trials.hung_runs},
          {"trial_races", settings.trials.races}}},
        {"began", measured.began},
        {"groups", array_of(measured.groups, group_object)}};
}

} // namespace redlock::bench
