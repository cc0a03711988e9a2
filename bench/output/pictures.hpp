// SPDX-License-Identifier: BSL-1.0
// The plots as pictures, drawn by gnuplot.
#pragma once

#include "output/results.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace redlock::bench
{

/// Maps the name of each plot to its SVG.
using pictures = std::map<std::string, std::string>;

/// Draws each plot as NAME.svg and NAME.png and leaves the script, pictures.gnuplot, next to them. If gnuplot is
/// missing or fails, prints the reason on stderr and leaves out pictures: the figures are useful without them.
pictures draw_pictures(const results& measured, const std::filesystem::path& directory);

} // namespace redlock::bench
