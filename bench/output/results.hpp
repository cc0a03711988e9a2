// SPDX-License-Identifier: BSL-1.0
// The results of a run, and the forms in which they are written.
#pragma once

#include "harness/figures.hpp"
#include "harness/machine.hpp"
#include "harness/options.hpp"

#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

namespace redlock::bench
{

struct results
{
    machine_info machine;
    options settings;
    std::vector<figure_group> groups;
    std::string began{}; // "2026-08-01 14:05 UTC".
};

/// Returns explanations of the figures, one paragraph each.
std::vector<std::string> notes_on(const results& measured);

void write_table(std::ostream& out, const results& measured);

/// Returns the content of results.json.
boost::json::object to_json(const results& measured);

/// Maps the name of each plot to its SVG.
using pictures = std::map<std::string, std::string>;

/// Draws each plot as NAME.svg and NAME.png and leaves the script, pictures.gnuplot, next to them. If gnuplot is
/// missing or fails, prints the reason on stderr and leaves out pictures: the figures are useful without them.
pictures draw_pictures(const results& measured, const std::filesystem::path& directory);

/// Writes the results as an HTML page in one file.
void write_page(std::ostream& out, const results& measured, const pictures& drawn);

/// Creates the directory of the results. Throws if it isn't writable, so that this is reported before the measurement.
void create_results_directory(const std::filesystem::path& directory);

/// Writes JSON, pictures and the page, index.html. Replaces the files of an earlier run.
void write_files(const results& measured, const std::filesystem::path& directory);

} // namespace redlock::bench
