// SPDX-License-Identifier: BSL-1.0
// Whether a master may vote in guarded mode, by what a look at it has shown. Values only.
#pragma once

#include "core/marker.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::core
{

/// What a look at a master has shown.
struct sight
{
    std::optional<std::string> marker; // The value of the marker's key. Empty if the key doesn't exist.
    bool has_floor = false;            // Whether its counters exist.
    std::string replication_id;
    bool is_master = true; // Its role. False for a replica.
};

/// A group, with the values that each of its markers has.
struct guarded_group
{
    std::string name;
    std::uint32_t masters;
    std::chrono::milliseconds max_ttl;
    arming_policy policy;

    friend bool operator==(const guarded_group&, const guarded_group&) = default;
};

/// What a master is to a client.
enum class standing : std::uint8_t
{
    armed,         // It is asked.
    quarantine,    // A client, this one or another, waits to arm it.
    forgetful,     // It may have forgotten keys. A client has to put it into quarantine.
    unprovisioned, // It has no marker, and no other master says that it is a member.
    not_a_member,  // Its name is not on the group's record, or belongs to another seat.
    other_group,   // It belongs to another group, or shows another size, `max_ttl` or policy of this one.
    retired,       // It has left its group.
    unreadable,    // Its marker is of another format.
    replica        // It is a replica, and can't grant.
};

/// The standing of a master.
struct judgement
{
    standing what;
    /// Why it is in quarantine or, if it is forgetful, has to be.
    incarnation_end why = incarnation_end::stale;

    friend bool operator==(const judgement&, const judgement&) = default;
};

/// Returns the group that a marker shows.
guarded_group group_in(const marker& its);
/// Returns whether a marker is one of this group, whatever its state.
bool is_of_group(const marker& found, const guarded_group& ours) noexcept;

/// Returns the standing of a master. `is_on_record`: the name of the master is on the record of its group, as enough other
/// masters show it.
///
/// A quarantine that was interrupted by a restart keeps its reason if that is `emptied` or `created`: such a master stays so until
/// it is armed. One that was in quarantine for its clock is `stale`, as if it had been armed. A master that has to have all its
/// counters, and has none, counts as emptied, because they were deleted or evicted.
judgement standing_of(const sight& seen, const guarded_group& ours, bool is_on_record);

/// Returns whether a master has all counters that it has ever had: it is armed, or was so until its clock jumped.
constexpr bool has_kept_counters(const judgement& master) noexcept
{
    return master.what == standing::armed ||
           (master.what == standing::quarantine && master.why == incarnation_end::clock);
}

/// Returns the smallest number of masters that meets every quorum: N − quorum + 1.
constexpr std::uint32_t blocking_set(std::uint32_t masters) noexcept
{
    return masters - masters / 2;
}

} // namespace redlock::core
