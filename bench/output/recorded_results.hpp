// SPDX-License-Identifier: BSL-1.0
// The part of a results.json that --compare uses.
#pragma once

#include "harness/statistics.hpp"
#include "output/results.hpp"

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

/// Returns the results of this run in the same form, by way of the same JSON.
recorded_results recorded(const results& measured);

} // namespace redlock::bench
