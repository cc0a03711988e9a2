// SPDX-License-Identifier: BSL-1.0
// The commands with which a master is put into quarantine and armed, and their replies.
#pragma once

#include "core/marker.hpp"
#include "core/members.hpp"
#include "net/command.hpp"
#include "net/guard_keys.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::net
{

// Each of the following functions appends one serialised command to `out`. See arming_scripts.hpp.

/// `seen` is the text of the marker that was seen; empty for none. `database` is the one of the master's address. `members` is the
/// record of the group.
void append_quarantine(
    std::string& out, const guard_keys& keys, std::string_view seen, const core::marker& begun, int database,
    const core::member_record& members, script_form form);
/// `marker` is the text of the marker that the master was seen with.
void append_largest_counter(
    std::string& out, const guard_keys& keys, std::string_view marker, script_form form);
/// `waited_for` is the marker of the quarantine; `floor` is 1 to 2^53 − 1.
void append_arm(
    std::string& out, const guard_keys& keys, const core::marker& waited_for, std::uint64_t floor,
    const core::member_record& members, script_form form);

/// The reply to one of these commands.
struct arming_reply
{
    error_code
        reason;      // Why the master has changed nothing, or has no counter. Empty if it has done as asked.
    int refusal = 0; // The script's negative answer, such as `guard_differs`; 0 for none.
    std::string_view detail; // The server's error text. Both views are valid as long as the reply.
    core::server_error error = core::server_error::none; // The kind of an error reply.
    std::string_view marker;   // After a quarantine: the marker that the master has. Empty for none.
    std::uint64_t counter = 0; // Otherwise: the largest counter, or the floor after arming.
};

/// Translates the reply to `append_quarantine`. There is no `reason` if the master has another marker than the one begun:
/// another client came first.
arming_reply read_quarantine(const resp::reply& reply) noexcept;
/// Translates the reply to `append_largest_counter` or `append_arm`.
arming_reply read_counter(const resp::reply& reply) noexcept;

} // namespace redlock::net
