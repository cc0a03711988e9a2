// SPDX-License-Identifier: BSL-1.0
// The changes since an earlier run.
#pragma once

#include "harness/statistics.hpp"
#include "output/results.hpp"

#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench
{

struct recorded_figure
{
    std::string group;
    std::string label;
    double measured = 0;
    std::optional<spread> ratio;
    std::optional<bool> met; // Empty if the figure had no goal.
};

using named_values = std::vector<std::pair<std::string, std::string>>;

/// The part of a results.json that is compared.
struct recorded_results
{
    std::string began;
    named_values machine;
    named_values settings;
    std::vector<recorded_figure> figures;
};

/// Reads the results of an earlier run, possibly by another version of the bench. Throws with the reason if the file
/// can't be read or has another content.
recorded_results read_results(const std::string& file);

void write_comparison(std::ostream& out, const recorded_results& base, const results& measured);

} // namespace redlock::bench
