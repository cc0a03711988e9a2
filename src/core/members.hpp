// SPDX-License-Identifier: BSL-1.0
// The record of the members of a guarded group, which each of its masters keeps. Text and values only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core
{

/// The members of a group. The text is
///
///     <group> 1=<name> 2=<name> ...
///
/// in one line. A name is `master::name()`: neither user nor password, and no space.
struct member_record
{
    std::string group;              // 16 hexadecimal digits.
    std::vector<std::string> names; // By seat, the first of which is 1. Different from each other.

    friend bool operator==(const member_record&, const member_record&) = default;
};

/// The maximum length of a member's name.
inline constexpr std::size_t max_member_name = 1024;

/// Returns the record with this text; empty if `to_text` returns it for no record.
std::optional<member_record> parse_members(std::string_view text);
/// Returns the text of a record.
std::string to_text(const member_record& of);

/// Returns the names that aren't among others, in their order.
std::vector<std::string> without(std::vector<std::string> names, std::span<const std::string> others);
/// Returns the names as a list for a message.
std::string listed(std::span<const std::string> names);

/// Returns the seat of a member, from 1; empty if the name isn't on the record.
std::optional<std::uint32_t> seat_of(const member_record& record, std::string_view name) noexcept;

} // namespace redlock::core
