// SPDX-License-Identifier: BSL-1.0
// How a guarded group is replaced by another one, by what a look at the masters of both has shown. Values only.
#pragma once

#include "core/provision_plan.hpp"
#include "core/shown_groups.hpp"

#include <chrono>
#include <optional>
#include <span>

namespace redlock::core
{

/// Decides what is to be done, by a look at each master in the order of `wanted.names`.
///
/// All members are needed; of each replaced group a quorum, and the counters of enough of its masters to meet each quorum. A
/// run is continued if its markers, its record and the groups that it replaces fit. Once a master is armed, clients arm the
/// others, and what is left to do is to move the masters that weren't.
provision_plan plan_change(std::span<const provision_sight> seen, const change_order& wanted);

/// Returns the longest `max_ttl` of all groups of a plan.
std::chrono::milliseconds longest_ttl(const provision_plan& of) noexcept;

/// Returns whether the group of a plan can be armed, by another look after the wait: a quorum of each replaced group has the
/// expected markers, the counters of enough of its masters can be read, a quorum of the members has the expected markers, and
/// none is armed. `expected` has the marker of each master, empty for none.
bool is_moved(
    std::span<const provision_sight> seen, std::span<const std::optional<marker>> expected,
    const provision_plan& plan, const change_order& wanted);

/// Returns whether a change is finished with this finding on each of its masters.
constexpr bool ends_change(provision_finding found) noexcept
{
    return found == provision_finding::armed || found == provision_finding::left_group ||
           found == provision_finding::stopped;
}

} // namespace redlock::core
