// SPDX-License-Identifier: BSL-1.0
// The marker of a master in guarded mode: the text in its data that entitles it to vote. Text and values only.
#pragma once

#include <redlock/arming_policy.hpp>
#include <redlock/incarnation.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::core
{

/// What the marker says about its master.
enum class marker_state : std::uint8_t
{
    armed,      // It may vote.
    quarantine, // It may have forgotten keys, and doesn't vote yet.
    retired     // It has left the group, and is never armed.
};

using redlock::arming_policy;   // `by_hand` is "operator" in the text.
using redlock::incarnation_end; // `created` is "new" in the text.

/// A marker. Its text is
///
///     redlock 1 <group> <seat> <masters> <max ttl in ms> <clocks|operator> <armed|quarantine|retired>
///     <new|stale|emptied|clock> <nonce> <replication id>
///
/// in one line. It belongs to one incarnation of the master's data, which its last word names: a server draws a new
/// replication id (`master_replid`) at each start and at each promotion.
struct marker
{
    std::string group;  // 16 hexadecimal digits.
    std::uint32_t seat; // The master's number in the group, from 1.
    std::uint32_t masters;
    std::chrono::milliseconds max_ttl;
    arming_policy policy;
    marker_state state;
    incarnation_end why;
    std::string nonce;          // 16 hexadecimal digits. Different in each marker that is written.
    std::string replication_id; // 40 hexadecimal digits.

    friend bool operator==(const marker&, const marker&) = default;
};

/// The length of a group's name and of a nonce.
inline constexpr std::size_t guard_id_length = 16;
/// The length of a server's replication id.
inline constexpr std::size_t replication_id_length = 40;

/// Returns the marker with this text; empty if it is none of format 1, and of none that `to_text` returns.
std::optional<marker> parse_marker(std::string_view text);
/// Returns the text of a marker.
std::string to_text(const marker& of);

/// Returns what the markers of a group begin with.
std::string marker_beginning(std::string_view group);

/// Returns the marker that ends the quarantine with this one.
marker armed(marker in_quarantine);

} // namespace redlock::core
