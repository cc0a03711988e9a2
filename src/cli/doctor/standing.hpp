// SPDX-License-Identifier: BSL-1.0
// Why a master doesn't vote in guarded mode, and the next step.
#pragma once

#include "cli/doctor/finding.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::cli
{

/// Returns the name of a policy as an option: "clocks", "operator".
std::string_view name_of(arming_policy policy) noexcept;

/// Returns a line about each group that a master shows: name, number of masters, `max_ttl` and policy. Empty if none shows one.
std::string group_lines(const std::vector<const guarded_examination*>& masters);

/// Returns the finding for a master that doesn't vote in guarded mode; empty if it does, and in plain mode. `all` are all
/// masters of the list.
std::optional<finding> about_standing(const master_examination& one, const std::vector<master_facts>& all);

} // namespace redlock::cli
