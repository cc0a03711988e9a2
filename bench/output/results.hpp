// SPDX-License-Identifier: BSL-1.0
// The results of a run, printed as a table.
#pragma once

#include "harness/figures.hpp"
#include "harness/machine.hpp"
#include "harness/options.hpp"

#include <iosfwd>
#include <string>
#include <vector>

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

} // namespace redlock::bench
