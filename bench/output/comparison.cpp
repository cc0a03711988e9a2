// SPDX-License-Identifier: BSL-1.0
// The changes since an earlier run, of which the results.json is read.
#include "output/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ostream.h>

namespace redlock::bench
{

namespace
{

namespace json = boost::json;

/// Throws if the member is missing or has another type.
template <class T>
T get(const json::object& from, std::string_view name)
{
    if (const json::value* found = from.if_contains(name); found != nullptr)
    {
        if (auto converted = json::try_value_to<T>(*found))
        {
            return std::move(*converted);
        }
    }
    throw std::runtime_error{fmt::format("\"{}\" is missing or has the wrong type", name)};
}

named_values named_values_in(const json::object& values)
{
    named_values out;
    for (const auto& [name, value] : values)
    {
        if (const double* number = value.if_double(); number != nullptr)
        {
            // serialize() would write 0.12 as 1.2E-1.
            out.emplace_back(name, fmt::format("{:.6g}", *number));
            continue;
        }
        const json::string* text = value.if_string();
        out.emplace_back(name, text != nullptr ? std::string{*text} : json::serialize(value));
    }
    return out;
}

/// Returns nothing for a figure with a value that isn't finite, which is written as null: it can't be compared.
std::optional<recorded_figure> figure_in(const json::object& from, const std::string& group)
{
    using number = std::optional<double>;
    const auto unit = get<std::string>(from, "unit");
    const auto measured = get<number>(from, "measured");
    if (!measured)
    {
        return std::nullopt;
    }
    recorded_figure out{
        group, get<std::string>(from, "name") + (unit.empty() ? "" : ", " + unit), *measured, {}, {}};
    if (from.contains("ratio"))
    {
        const auto ratio = get<json::object>(from, "ratio");
        const auto median = get<number>(ratio, "median");
        const auto min = get<number>(ratio, "least");
        const auto max = get<number>(ratio, "most");
        if (!median || !min || !max)
        {
            return std::nullopt;
        }
        out.ratio = {*median, *min, *max};
    }
    if (from.contains("goal"))
    {
        out.met = get<bool>(from, "met");
    }
    return out;
}

recorded_results results_in(const json::object& top)
{
    using objects = std::vector<json::object>;
    recorded_results out;
    out.began = get<std::string>(top, "began");
    out.machine = named_values_in(get<json::object>(top, "machine"));
    out.settings = named_values_in(get<json::object>(top, "settings"));
    for (const json::object& group : get<objects>(top, "groups"))
    {
        const auto title = get<std::string>(group, "title");
        for (const json::object& each : get<objects>(group, "figures"))
        {
            if (auto figure = figure_in(each, title))
            {
                out.figures.push_back(*std::move(figure));
            }
        }
    }
    return out;
}

constexpr std::string_view explanation =
    R"(The change is that of the ratio, if the figure has one, because ratios vary least between runs and machines.
Otherwise it is that of the measured value. For figures with a goal, lower is better.
* outside the spread of both runs: the highest ratio of one run is below the lowest of the other. Figures
  without a ratio have one measurement, hence no known spread and never this mark.
)";

const recorded_figure* find(const recorded_results& in, const recorded_figure& wanted)
{
    const auto same = [&](const recorded_figure& each)
    { return each.group == wanted.group && each.label == wanted.label; };
    const auto found = std::find_if(in.figures.begin(), in.figures.end(), same);
    return found == in.figures.end() ? nullptr : &*found;
}

/// The same figure in two runs.
struct figure_change
{
    const recorded_figure& base;
    const recorded_figure& now;

    bool uses_ratio() const { return base.ratio && now.ratio; }
    double base_value() const { return uses_ratio() ? base.ratio->median : base.measured; }
    double new_value() const { return uses_ratio() ? now.ratio->median : now.measured; }

    /// Returns the change in per cent, or nothing if the base value is shown as zero.
    std::string change() const
    {
        constexpr double shown_as_zero = 0.005;
        if (std::abs(base_value()) < shown_as_zero)
        {
            return {};
        }
        return fmt::format("{:+.1f} %", (new_value() - base_value()) / std::abs(base_value()) * 100);
    }

    bool beyond_the_spread() const
    {
        return uses_ratio() && (now.ratio->max < base.ratio->min || base.ratio->max < now.ratio->min);
    }

    std::string_view goal() const
    {
        if (!base.met || !now.met || *base.met == *now.met)
        {
            return {};
        }
        return *now.met ? "goal now met" : "goal NO LONGER MET";
    }
};

void write_figures(std::ostream& out, const recorded_results& base, const recorded_results& now)
{
    std::string group;
    for (const recorded_figure& one : now.figures)
    {
        const recorded_figure* before = find(base, one);
        if (before == nullptr)
        {
            continue;
        }
        if (group != one.group)
        {
            group = one.group;
            fmt::print(out, "\n{}\n{:<58}{:>11}{:>11}{:>11}\n", group, "", "base", "now", "change");
        }
        const figure_change both{*before, one};
        const std::string line = fmt::format(
            "  {:<56}{:>11.2f}{:>11.2f}{:>11} {} {}", one.label + (both.uses_ratio() ? ": ratio" : ""),
            both.base_value(), both.new_value(), both.change(), both.beyond_the_spread() ? '*' : ' ',
            both.goal());
        fmt::print(out, "{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
    }
}

/// Writes the figures of one run that the other one lacks.
void write_missing(
    std::ostream& out, std::string_view title, const recorded_results& of, const recorded_results& in)
{
    std::string group;
    bool first = true;
    for (const recorded_figure& one : of.figures)
    {
        if (find(in, one) != nullptr)
        {
            continue;
        }
        if (std::exchange(first, false))
        {
            fmt::print(out, "\n{}\n", title);
        }
        if (std::exchange(group, one.group) != one.group)
        {
            fmt::print(out, "  {}\n", group);
        }
        fmt::print(out, "    {}\n", one.label);
    }
}

std::string_view value_of(std::string_view name, const named_values& in)
{
    const auto same = [&](const auto& each) { return each.first == name; };
    const auto found = std::find_if(in.begin(), in.end(), same);
    return found == in.end() ? std::string_view{"unknown"} : std::string_view{found->second};
}

void write_differences(
    std::ostream& out, std::string_view title, const named_values& base, const named_values& now)
{
    named_values all = base;
    const auto is_new = [&](const auto& each) { return value_of(each.first, base) == "unknown"; };
    std::copy_if(now.begin(), now.end(), std::back_inserter(all), is_new);
    bool first = true;
    for (const auto& [name, value] : all)
    {
        // The load always differs and has its own line.
        if (name == "load" || value_of(name, base) == value_of(name, now))
        {
            continue;
        }
        if (std::exchange(first, false))
        {
            fmt::print(out, "{}\n", title);
        }
        fmt::print(out, "  {}: {}, now {}\n", name, value_of(name, base), value_of(name, now));
    }
}

} // namespace

recorded_results read_results(const std::string& file)
{
    std::ifstream in{file};
    const std::string content{std::istreambuf_iterator<char>{in}, {}};
    if (content.empty())
    {
        throw std::runtime_error{fmt::format(
            "--compare: cannot read the file '{}', or it is empty; give the results.json of an earlier run",
            file)};
    }
    try
    {
        return results_in(json::parse(content).as_object());
    }
    catch (const std::exception& problem)
    {
        throw std::runtime_error{fmt::format(
            "--compare: the file '{}' is not the results.json of an earlier run: {}", file, problem.what())};
    }
}

void write_comparison(std::ostream& out, const recorded_results& base, const results& measured)
{
    const recorded_results now = results_in(to_json(measured)); // The same form, by way of the same JSON.
    fmt::print(
        out, "\nChanges since the base of {}\nload before: {}, now {}\n", base.began,
        value_of("load", base.machine), value_of("load", now.machine));
    write_differences(
        out, "The machines differ; compare ratios with care and other values not at all:", base.machine,
        now.machine);
    write_differences(out, "The settings differ:", base.settings, now.settings);
    write_figures(out, base, now);
    write_missing(out, "Figures of the base only:", base, now);
    write_missing(out, "Figures of this run only:", now, base);
    fmt::print(out, "\n{}", explanation);
}

} // namespace redlock::bench
