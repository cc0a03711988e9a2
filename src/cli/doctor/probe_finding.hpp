// SPDX-License-Identifier: BSL-1.0
// Findings of a probe: the command, key or setting that prevents locks.
#pragma once

#include "cli/doctor/finding.hpp"

#include <vector>

namespace redlock::cli
{

/// Returns one finding for each cause of failed steps, or one about slow answers, or none. The master must have been
/// probed.
std::vector<finding> findings_of_probe(const master_facts& one, const std::vector<master_facts>& all);

} // namespace redlock::cli
