// SPDX-License-Identifier: BSL-1.0
// The changes since an earlier run.
#include "output/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ostream.h>

namespace redlock::bench
{

namespace
{

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

void write_comparison(std::ostream& out, const recorded_results& base, const recorded_results& now)
{
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
