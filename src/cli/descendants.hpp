// SPDX-License-Identifier: BSL-1.0
// The processes that descend from this one, whatever process group or session they are in.
#pragma once

#include <vector>

#include <sys/types.h>

namespace redlock::cli
{

/// Returns the living processes that descend from this one, as /proc shows them at this moment. Zombies are left out.
/// `excluded` are left out with all that descends from them. Empty without /proc.
std::vector<pid_t> descendants(const std::vector<pid_t>& excluded = {});

} // namespace redlock::cli
