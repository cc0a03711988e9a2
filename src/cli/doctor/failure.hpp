// SPDX-License-Identifier: BSL-1.0
// Why a master can't be used, and what to do about it.
#pragma once

#include "cli/doctor/finding.hpp"

#include <optional>
#include <vector>

namespace redlock::cli
{

/// Returns the finding for a master whose examination ended with an error.
finding failure_of(const master_facts& one, const std::vector<master_facts>& all);

/// Returns the finding for a master that doesn't vote in guarded mode; empty if it does, and in plain mode.
std::optional<finding> about_standing(const master_examination& one);

} // namespace redlock::cli
