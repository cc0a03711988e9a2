// SPDX-License-Identifier: BSL-1.0
// Plots as gnuplot commands in a common style.
#pragma once

#include "harness/figures.hpp"

#include <string>
#include <string_view>

namespace redlock::bench
{

/// The settings for all plots, which the script begins with.
extern const std::string_view picture_style;

/// Returns the plot without what can't be drawn: points that aren't finite or, on a logarithmic axis, not positive,
/// and lines without points.
plot drawable(plot one);

/// Returns the commands that draw a plot with at least one line as NAME.svg and NAME.png. In the name of a line,
/// the text before a comma selects the colour, the text after it the dashes: "redlock, p99". The line named
/// `reference` is grey.
std::string script_of(const plot& one, std::string_view reference);

} // namespace redlock::bench
