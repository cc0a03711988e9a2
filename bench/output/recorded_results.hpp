// SPDX-License-Identifier: BSL-1.0
// What stands in a results.json, as far as two runs are compared. It may come from another version of the bench.
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
    std::optional<bool> met; // Its goal; empty if it had none.
};

struct recorded_results
{
    std::string began;
    std::vector<std::pair<std::string, std::string>> machine; // Names and values, in words.
    std::vector<std::pair<std::string, std::string>> settings;
    std::vector<recorded_figure> figures;
};

/// Throws with what was wrong when the file isn't one that write_json wrote.
recorded_results read_results(const std::string& file);

/// The same of a run that has just ended: by the same way, so that both are alike.
recorded_results recorded(const results& measured);

} // namespace redlock::bench
