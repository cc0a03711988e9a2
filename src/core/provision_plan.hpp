// SPDX-License-Identifier: BSL-1.0
// How a guarded group is provisioned, by what a look at all of its masters has shown. Values only.
#pragma once

#include "core/provision_sight.hpp"
#include "core/replaced_groups.hpp"

#include <redlock/clock.hpp>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace redlock::core
{

/// The group that is wanted.
struct provision_order
{
    std::vector<std::string> names; // Of the masters, different from each other.
    std::chrono::milliseconds max_ttl;
    arming_policy policy;
};

/// What is to be done.
enum class provision_step : std::uint8_t
{
    refuse,   // A master can't be provisioned. Nothing is changed.
    begin,    // There is no run: a new group.
    proceed,  // A run of the same group hasn't finished.
    finish,   // The group is in use: what is left of the one before it is moved. Nothing is armed.
    complete, // All masters are armed already. Nothing is changed.
};

/// The plan for all of them.
struct provision_plan
{
    provision_step next = provision_step::refuse;
    std::string group; // Of the run that was found. Empty for none.
    std::chrono::milliseconds max_ttl{};
    arming_policy policy = arming_policy::clocks;
    std::vector<provision_seat> masters;
    std::string obstacle;                 // Why nothing is done, if that isn't the finding of a master.
    std::vector<replaced_group> replaced; // By a change; first the one that was in use.
    bool may_skip_wait = false; // No client can hold a lock: no master is armed, and all databases are empty.
};

/// Decides what is to be done, by a look at each master in the order of `wanted.names`.
///
/// A run is continued if all that it has left fits: the group, its size, policy and `max_ttl`, the names on the records, and
/// the seat of each master. If one of its masters is armed, the others must all have been in the quarantine of the same run:
/// no master is armed before all were in quarantine, so one without a marker has lost its data, and clients arm it.
provision_plan plan_provisioning(std::span<const provision_sight> seen, const provision_order& wanted);

/// Returns the record of a group whose seats are those of a plan. `names` are those of its members, which come first in the plan.
member_record
record_of(const provision_plan& plan, const std::string& group, std::span<const std::string> names);

/// Compares another look at a master with the marker that it should have. Finds `unfinished` if it has that, or `left_group` if
/// that is one of a master that has left, `armed` if it has its armed form, otherwise what is wrong. A master that leaves may evict
/// keys.
provision_seat check_again(provision_sight seen, const marker& expected);

/// Returns the floor of all masters: the largest counter of any, at least 1.
std::uint64_t floor_of(std::span<const provision_sight> seen) noexcept;

/// Returns how long to wait after the last master went into quarantine: ttl × (1 + drift) + 2 ms, with a drift of 1 % or
/// more. By then each key that another client counts on has expired.
clock::duration provision_wait(std::chrono::milliseconds ttl, double drift_factor) noexcept;

} // namespace redlock::core
