// SPDX-License-Identifier: BSL-1.0
// What a section returns: figures, each with its reference, and plots.
#pragma once

#include "harness/statistics.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench
{

/// One line of the table.
struct figure
{
    std::string name;
    std::string unit;
    std::optional<double> reference; // Empty if there is nothing to compare with.
    double measured = 0;
    std::optional<spread> ratio;   // Of measured to reference, per round.
    std::optional<double> goal;    // The highest acceptable judged_value().
    std::vector<double> samples{}; // Every sample, if they are shown one by one.

    /// Returns the median of the ratios if there is one, otherwise the measured value.
    double judged_value() const { return ratio ? ratio->median : measured; }
    /// Returns whether the goal is met, after rounding to the digits that the table shows. Requires a goal.
    bool met() const
    {
        constexpr double shown = 100;
        return std::round(judged_value() * shown) <= std::round(goal.value_or(0) * shown);
    }
    /// Returns the name followed by the unit.
    std::string label() const { return unit.empty() ? name : name + ", " + unit; }
};

/// A line in a plot.
struct series
{
    std::string name;
    std::vector<std::pair<double, double>> points;
};

/// A diagram of a growth or of a distribution.
struct plot
{
    std::string name; // The file's name without an extension: "throughput".
    std::string title;
    std::string x; // The axis label, with the unit.
    std::string y;
    bool logarithmic_x = false;
    bool logarithmic_y = false;
    std::vector<series> lines;
};

/// Figures with the same reference.
struct figure_group
{
    std::string title;
    std::string reference; // The heading of the reference column.
    std::vector<figure> figures;
    std::vector<plot> plots{};
    std::string measured{"redlock"};     // The heading of the other column.
    std::vector<std::string> notes{};    // Remarks for the reader, one line each.
    std::vector<figure_group> related{}; // Of the same section, compared with another reference.
};

} // namespace redlock::bench
