// SPDX-License-Identifier: BSL-1.0
// What an operator does to the masters of a group, by what a look at them has shown. Values only.
#pragma once

#include "core/provision_plan.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace redlock::core
{

/// The masters that an operator arms.
struct arming_order
{
    std::vector<std::string> names;      // Of all members, different from each other.
    std::string group{};                 // Empty: the one that the masters show.
    bool accepts_losses = false;         // Masters without their data are armed, too. Needs the group's name.
    std::chrono::milliseconds max_ttl{}; // 0: the one that the masters show.
    arming_policy policy = arming_policy::clocks; // Of a group that no master shows.
};

/// Decides which masters an operator can arm, by a look at each of them in the order of `wanted.names`.
///
/// It is complete if a quorum is armed: clients arm the others. It is refused if a master belongs to another group, and if fewer
/// are armed, but enough for clients to arm the others. Without
/// `accepts_losses`, the same rule applies by which clients arm masters under the policy `clocks`: a quorum was restarted with
/// its data. Those that were armed since count as well. With it, a quorum has to answer. A master that gives no answer isn't
/// needed for either.
provision_plan plan_arming(std::span<const provision_sight> seen, const arming_order& wanted);

/// Returns whether a master with this finding prevents that others are armed.
bool prevents_arming(provision_finding found) noexcept;

/// Returns the floor of masters that are armed although the counters of a quorum may be lost: the largest counter of any, or
/// what the latest of their clocks shows, plus two hours.
std::uint64_t floor_by_clocks(std::span<const provision_sight> seen) noexcept;

/// Decides from which masters a marker is deleted.
provision_plan plan_retirement(std::span<const provision_sight> seen);

} // namespace redlock::core
