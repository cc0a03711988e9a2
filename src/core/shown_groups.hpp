// SPDX-License-Identifier: BSL-1.0
// Which groups the masters of a change show: the one that is wanted, and those that it replaces. Values only.
#pragma once

#include "core/provision_sight.hpp"
#include "core/replaced_groups.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace redlock::core
{

/// The group that is wanted, and the masters of the one before it.
struct change_order
{
    std::vector<std::string> names; // Of the members, then of the masters that leave. Each is there once.
    std::size_t members = 0;
    std::size_t stopped = 0; // How many of the last ones never come back: they needn't answer.
    std::chrono::milliseconds max_ttl{};
    arming_policy policy{};
    bool creates = false;  // There is no group before it, except those of unfinished runs.
    bool takeover = false; // The groups of other unfinished runs are replaced, too.
};

/// The groups whose markers the masters show.
struct shown_groups
{
    std::set<std::string> in_use;
    std::set<std::string> of_runs;        // Unfinished ones: no master has been armed.
    std::string target;                   // The one that is wanted, if it exists. Empty for none.
    std::vector<replaced_group> replaced; // By the target.
};

/// Returns a marker of a group, by which its size and its `max_ttl` are known; one that shows its use if there is one. Empty if no
/// master shows the group.
std::optional<marker> marker_of(std::span<const provision_sight> seen, const std::string& group);

/// Returns the groups that a group replaces, as the masters keep them that were moved to it.
std::vector<replaced_group> replaced_by(std::span<const provision_sight> seen, const std::string& group);

/// Returns the groups that the masters show, in the order of `wanted.names`.
shown_groups find_groups(std::span<const provision_sight> seen, const change_order& wanted);

/// Returns which of several groups that are in use is the latest: the one that has replaced the others, as its masters keep, or
/// the only one that a quorum of its masters shows who can't have forgotten a change. Empty if neither is certain.
std::string present_group(std::span<const provision_sight> seen, const shown_groups& groups);

/// Returns the names of the members, sorted: a run with another order has the same seats.
std::vector<std::string> sorted_members(const change_order& wanted);

} // namespace redlock::core
