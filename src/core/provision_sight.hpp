// SPDX-License-Identifier: BSL-1.0
// What provisioning sees on a master, and what it finds by that. Values only.
#pragma once

#include "core/marker.hpp"
#include "core/members.hpp"
#include "core/provision_finding.hpp"

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
    std::optional<std::string> marker;    // Empty if the key doesn't exist, like the next three.
    std::optional<std::string> members;   // The record.
    std::optional<std::string> replaced;  // The groups that its group replaces, if it was moved to it.
    std::optional<std::uint64_t> largest; // The largest counter, the floor included.
    bool has_floor = false;
    bool has_foreign_key = false; // One of these keys has another type.
    std::string replication_id;
    bool is_master = true; // Its role. False for a replica.
    std::string maxmemory_policy;
    bool has_other_keys = false;       // A database has a key that isn't one of these.
    std::optional<int> other_database; // Another database that has a marker.
    std::string other_marker;          // Its text.
    std::chrono::microseconds clock{}; // Since the Unix epoch, at most 2^53.
};

/// The plan for one master.
struct provision_seat
{
    provision_finding found = provision_finding::unknown;
    std::string detail;     // What was seen, in a refusal.
    std::uint32_t seat = 0; // From 1.
    std::optional<marker>
        keeps; // The marker that it has and keeps, in quarantine or armed. Empty: it needs a new one.
    incarnation_end why = incarnation_end::created; // Of the quarantine that it needs.
    bool takes_part = true;                         // False: it stays as it is.
    bool leaves = false;                            // It is moved out of its group, and into no other.
    bool keeps_counters = true;                     // False: they don't count, and are deleted.
};

/// Returns a plan with a finding.
provision_seat seat_with(provision_finding found, std::string detail = {});

/// Returns the marker that was seen, or that there is none, for the detail of a finding: without the nonce and the replication id,
/// which mean nothing to a person.
std::string quoted_marker(const provision_sight& seen);

/// Returns a finding that depends neither on the marker nor on other masters; empty if there is none.
std::optional<provision_seat> find_misfit(const provision_sight& seen);

/// Returns the marker of a master; empty if it isn't known, or has none in a form that is.
std::optional<marker> marker_in(const provision_sight& seen);

/// Returns the seats of the members: those on the record; without one, those that markers of the group show. The others are taken
/// by the sorted names, so that runs with another order of the list agree. A seat that two masters show is that of the first.
std::vector<std::uint32_t> seats_of(
    std::span<const provision_sight> seen, const std::string& group,
    const std::optional<member_record>& record, std::span<const std::string> names);

/// Returns the record of a group; empty if no master shows it.
std::optional<member_record> record_among(std::span<const provision_sight> seen, const std::string& group);
/// Returns whether a record has these names, in any order. No record is as good: a run ended before it wrote one.
bool is_list_of(const std::optional<member_record>& record, std::vector<std::string> names);

} // namespace redlock::core
