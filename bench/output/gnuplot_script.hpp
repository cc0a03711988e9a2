// SPDX-License-Identifier: BSL-1.0
// Plots as commands of gnuplot, all in one style.
#pragma once

#include "harness/figures.hpp"

#include <string>
#include <string_view>

namespace redlock::bench
{

/// What all pictures have in common: stands at the head of the script.
extern const std::string_view picture_style;

/// What of a plot can be drawn: no point that isn't a number, or has no logarithm where that is needed, and no line
/// without points.
plot drawable(plot one);

/// The commands that draw a plot with one line or more as NAME.svg and NAME.png. In the names of lines, what stands before
/// a comma chooses the colour, what stands behind it the dashes: "redlock, p99". The one that is called like `reference`
/// is grey.
std::string script_of(const plot& one, std::string_view reference);

} // namespace redlock::bench
