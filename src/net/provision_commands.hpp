// SPDX-License-Identifier: BSL-1.0
// The commands with which a group is provisioned, in addition to those of arming, and their replies.
#pragma once

#include "core/marker.hpp"
#include "core/members.hpp"
#include "core/provision_plan.hpp"
#include "net/guard_keys.hpp"
#include "resp/value.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace redlock::net
{

/// The replacement of a marker.
struct marker_change
{
    std::string_view seen; // The text of the marker that was seen; empty for none.
    const core::marker& begun;
    const core::member_record& members;
    std::span<const core::replaced_group> replaced{};
    bool keeps_counters = true; // False: they don't count, and are deleted.
};

// Each of these functions appends one serialised command to `out`. `database` is the one of the master's address.

void append_provision_look(std::string& out, const guard_keys& keys, int database);
/// `leaves`: the master is only moved out of its group. `read_quarantine` reads the reply, an empty marker.
void append_provision_trial(std::string& out, const guard_keys& keys, int database, bool leaves);
/// `read_quarantine` reads the reply.
void append_provision_quarantine(
    std::string& out, const guard_keys& keys, const marker_change& change, int database);
/// `seen` is the text of the marker that was seen. `read_quarantine` reads the reply.
void append_retire(std::string& out, const guard_keys& keys, std::string_view seen, int database);

/// Translates the reply to `append_provision_look`, which isn't an error; empty if it can't be one.
std::optional<core::provision_sight> read_provision_look(const resp::reply& reply);

} // namespace redlock::net
