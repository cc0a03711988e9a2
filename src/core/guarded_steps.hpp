// SPDX-License-Identifier: BSL-1.0
// The next step of each master in guarded mode, by what a look at all of them has shown. Values only.
#pragma once

#include "core/provision_sight.hpp"

#include <redlock/guarded_step.hpp>

#include <span>
#include <string>
#include <vector>

namespace redlock::core
{

/// Returns the next step of each master, by a look at each in the order of `names`. What clients and operators can arm is
/// decided by `plan_arming`, so that no step is advised that the command refuses.
std::vector<guarded_advice> guarded_steps(
    std::span<const provision_sight> seen, const std::vector<std::string>& names, double drift_factor);

} // namespace redlock::core
