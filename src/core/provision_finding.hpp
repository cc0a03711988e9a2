// SPDX-License-Identifier: BSL-1.0
// What provisioning finds on a master.
#pragma once

#include <cstdint>
#include <string_view>

namespace redlock::core
{

/// What a look at a master has shown before it is provisioned.
enum class provision_finding : std::uint8_t
{
    unknown,    // It gave no answer.
    unmarked,   // It belongs to no group, and can be provisioned.
    unfinished, // It is in the quarantine of this group, by a run that hasn't finished. It can be provisioned.
    armed,      // It is armed in this group.
    changed,    // It was looked at again, and didn't have the marker that it should have.
    in_service, // Its group is in use already, and arming it again is left to the clients.
    other_run,  // It is in quarantine by another run that hasn't finished: of another group, list or max_ttl.
    other_group,    // It belongs to another group, or has left one.
    other_database, // Another database of the server has a marker under the same key prefix.
    unreadable,     // A key of the guarded mode has another format or type.
    evicts,         // Its maxmemory-policy isn't noeviction.
    replica         // It is a replica.
};

/// Returns the name of the enumerator, such as "unmarked".
std::string_view to_string(provision_finding value) noexcept;

/// Returns whether a master with this finding can be provisioned, or is already.
constexpr bool is_provisionable(provision_finding value) noexcept
{
    return value == provision_finding::unmarked || value == provision_finding::unfinished ||
           value == provision_finding::armed;
}

} // namespace redlock::core
