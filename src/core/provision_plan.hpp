// SPDX-License-Identifier: BSL-1.0
// How a guarded group is provisioned, by what a look at all of its masters has shown. Values only.
#pragma once

#include "core/marker.hpp"
#include "core/members.hpp"
#include "core/provision_finding.hpp"

#include <redlock/clock.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace redlock::core
{

/// What a look at a master has shown.
struct provision_sight
{
    bool is_known = true;                 // False if it gave no answer: the rest is meaningless.
    std::optional<std::string> marker;    // Empty if the key doesn't exist, like the next two.
    std::optional<std::string> members;   // The record.
    std::optional<std::uint64_t> largest; // The largest counter, the floor included.
    bool has_floor = false;
    bool has_foreign_key = false; // One of these keys has another type.
    std::string replication_id;
    bool is_master = true; // Its role. False for a replica.
    std::string maxmemory_policy;
    bool has_other_keys = false;       // A database has a key that isn't one of these.
    std::optional<int> other_database; // Another database that has a marker.
    std::string other_marker;          // Its text.
};

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
    complete, // All masters are armed already. Nothing is changed.
};

/// The plan for one master.
struct provision_seat
{
    provision_finding found = provision_finding::unknown;
    std::string detail;     // What was seen, in a refusal.
    std::uint32_t seat = 0; // From 1.
    std::optional<marker>
        keeps; // The marker that it has and keeps, in quarantine or armed. Empty: it needs a new one.
};

/// The plan for all of them.
struct provision_plan
{
    provision_step next = provision_step::refuse;
    std::string group; // Of the run that was found. Empty for none.
    std::vector<provision_seat> masters;
    bool may_skip_wait = false; // No client can hold a lock: no master is armed, and all databases are empty.
};

/// Decides what is to be done, by a look at each master in the order of `wanted.names`.
///
/// A run is continued if all that it has left fits: the group, its size, policy and `max_ttl`, the names on the records, and
/// the seat of each master. If one of its masters is armed, the others must all have been in the quarantine of the same run:
/// no master is armed before all were in quarantine, so one without a marker has lost its data, and clients arm it.
provision_plan plan_provisioning(std::span<const provision_sight> seen, const provision_order& wanted);

/// Returns the record of a group whose seats are those of a plan.
member_record
record_of(const provision_plan& plan, const std::string& group, std::span<const std::string> names);

/// Compares another look at a master with the marker that it should have. Finds `unfinished` if it has that, `armed` if it has
/// its armed form, otherwise what is wrong. `seen` is known.
provision_seat check_again(const provision_sight& seen, const marker& expected);

/// Returns the floor of all masters: the largest counter of any, at least 1.
std::uint64_t floor_of(std::span<const provision_sight> seen) noexcept;

/// Returns how long to wait after the last master went into quarantine: ttl × (1 + drift) + 2 ms, with a drift of 1 % or
/// more. By then each key that another client counts on has expired.
clock::duration provision_wait(std::chrono::milliseconds ttl, double drift_factor) noexcept;

} // namespace redlock::core
