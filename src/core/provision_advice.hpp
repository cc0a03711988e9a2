// SPDX-License-Identifier: BSL-1.0
// The next step of an operator, by what a run of provisioning has found. Values only.
#pragma once

#include "core/provision_plan.hpp"

#include <redlock/provision_action.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace redlock::core
{

/// What a run was asked for.
struct advised_run
{
    provision_action action = provision_action::make_group;
    std::vector<std::string> names; // Of the members, then of the masters that leave.
    std::size_t members = 0;
    std::string group{};                 // Empty: the one that the masters show.
    std::chrono::milliseconds max_ttl{}; // 0: the one that the masters show.
    arming_policy policy = arming_policy::clocks;
};

/// Returns the one next step if a plan isn't carried out, or leaves masters to clients. Empty if nothing is left to do, or if the
/// finding of a master says it.
std::string
advice_on(const provision_plan& plan, std::span<const provision_sight> seen, const advised_run& run);

/// Returns the next step after a run has armed masters. Empty if all are armed and, of a change, all old masters moved. `found` has
/// the finding of each master, `seen` what it shows now.
std::string advice_after(
    std::span<const provision_finding> found, std::span<const provision_sight> seen, const advised_run& run,
    const std::string& group);

} // namespace redlock::core
