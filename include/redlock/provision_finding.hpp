// SPDX-License-Identifier: BSL-1.0
// What provisioning finds on a master. Includes the standard library only, because the pure layers use it.
#pragma once

#include <redlock/detail/export.hpp>

#include <cstdint>
#include <string_view>

namespace redlock
{

/// What provisioning found on a master.
enum class provision_finding : std::uint8_t
{
    unknown,  ///< It gave no answer, or refused a command.
    unmarked, ///< It belongs to no group, and can be provisioned.
    unfinished, ///< It is in the quarantine of this group, by a run that hasn't finished. It can be provisioned.
    armed,      ///< It is armed in this group.
    changed, ///< It was looked at again, and no longer had the marker of this run: another client, or a restart.
    in_service, ///< Its group is in use already, and arming it again is left to the clients.
    other_run, ///< It is in quarantine by another run that hasn't finished: of another group, list or max_ttl.
    other_group,    ///< It belongs to another group, or has left one.
    other_database, ///< Another database of the server has a marker under the same key prefix.
    unreadable,     ///< A key of the guarded mode has another format or type.
    evicts,         ///< Its maxmemory-policy isn't noeviction.
    replica,        ///< It is a replica.
    not_empty,      ///< It has keys, so that the wait can't be skipped.
    restarted,      ///< It was restarted or promoted with its data, and isn't armed again.
    emptied,        ///< It has lost its data or its counters, and isn't armed again.
    clock_ahead, ///< It is in quarantine because its clock was ahead, or its clock can't be used for a floor.
    marked,      ///< It has a marker, which is to be deleted.
    old_group,   ///< It belongs to the group that is to be changed, and isn't moved.
    left_group,  ///< It has left the group that was changed, and never votes in it again.
    stopped      ///< It gave no answer, and was named as one that never comes back.
};

/// Returns the name of the enumerator, such as "unmarked". Names never change. Thread-safe.
REDLOCK_API std::string_view to_string(provision_finding value) noexcept;

} // namespace redlock
