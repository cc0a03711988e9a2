// SPDX-License-Identifier: BSL-1.0
// The plots of the results as pictures, drawn by gnuplot.
#pragma once

#include "output/results.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace redlock::bench
{

/// The SVG of each plot that was drawn, by the plot's name.
using pictures = std::map<std::string, std::string>;

/// Draws each plot as NAME.svg and NAME.png. pictures.gnuplot, with which that is done, stays beside them. When gnuplot
/// isn't there or fails, it says so on stderr and draws nothing: figures are worth something without pictures.
pictures draw_pictures(const results& measured, const std::filesystem::path& directory);

} // namespace redlock::bench
