// SPDX-License-Identifier: BSL-1.0
// What was measured, as a table for a person and as JSON.
#pragma once

#include "machine.hpp"
#include "options.hpp"
#include "statistics.hpp"

#include <iosfwd>
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
    std::optional<double> reference; // What the ratio is to; empty if there is nothing to compare with.
    double measured = 0;
    std::optional<spread> ratio;   // Of measured to reference in the same round.
    std::optional<double> goal;    // Of the median of the ratios, else of what was measured: at most so much.
    std::vector<double> samples{}; // Every single one, where they are worth a look.

    double judged() const { return ratio ? ratio->median : measured; }
    /// Only with a goal. The same digits count as are shown.
    bool met() const;
};

/// A line in a plot.
struct series
{
    std::string name;
    std::vector<std::pair<double, double>> points;
};

/// A picture of how something grows, or is distributed.
struct plot
{
    std::string name; // Of its file, without an ending: "throughput".
    std::string title;
    std::string x; // What is on the axis, with its unit.
    std::string y;
    bool logarithmic_x = false;
    bool logarithmic_y = false;
    std::vector<series> lines;
};

/// Figures with the same reference.
struct figure_group
{
    std::string title;
    std::string reference; // The heading of its column.
    std::vector<figure> figures;
    std::vector<plot> plots{};
    std::string measured{"redlock"};     // The heading of the other column.
    std::vector<std::string> notes{};    // What has to be known with the figures, a line each.
    std::vector<figure_group> further{}; // Of the same section, with another reference.
};

struct results
{
    machine on;
    options with;
    std::vector<figure_group> groups;
    std::string began{}; // "2026-08-01 14:05 UTC".
};

/// What it is, with its unit.
std::string label_of(const figure& one);
/// What has to be known to understand the figures, a paragraph each.
std::vector<std::string> notes_on(const results& measured);

void write_table(std::ostream& out, const results& measured);
void write_json(std::ostream& out, const results& measured);

} // namespace redlock::bench
