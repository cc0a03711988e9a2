// SPDX-License-Identifier: BSL-1.0
// What a probe found, in an operator's words: which command, key or setting stands in the way of locks.
#pragma once

#include "cli/finding.hpp"

#include <vector>

namespace redlock::cli
{

/// A finding for each cause, whatever number of steps it spoiled; or that the answers were slow; or nothing. Only for a
/// master that was probed.
std::vector<finding> findings_of_probe(const master_facts& one, const std::vector<master_facts>& all);

} // namespace redlock::cli
