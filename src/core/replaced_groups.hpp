// SPDX-License-Identifier: BSL-1.0
// The groups that a change replaces, which each moved master keeps. Text and values only.
#pragma once

#include "core/marker.hpp"
#include "core/members.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core
{

/// A group whose masters are moved to another one.
struct replaced_group
{
    marker shown; // The marker of one of its masters, when that was moved.
    member_record members;

    friend bool operator==(const replaced_group&, const replaced_group&) = default;
};

/// Returns whether a marker shows that its group was in use: this master has been armed in it. A new one hasn't, nor one that has
/// left, and one that was emptied may not have been: clients put it into quarantine also while the group waits to be armed.
bool shows_use(const marker& its) noexcept;

/// The maximum length of their text, so that a look at a master stays a short reply.
inline constexpr std::size_t max_replaced_text = 28'000;

/// Returns the groups with this text: a line with the marker and one with the record for each. Empty if it isn't one that
/// `to_text` returns for one group or more.
std::optional<std::vector<replaced_group>> parse_replaced(std::string_view text);
/// Returns the text of the groups.
std::string to_text(std::span<const replaced_group> groups);

/// Returns whether a group is one of them.
bool contains(std::span<const replaced_group> groups, std::string_view name) noexcept;

} // namespace redlock::core
