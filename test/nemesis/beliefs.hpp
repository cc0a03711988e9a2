// SPDX-License-Identifier: BSL-1.0
// What clients believed, as they wrote it down, and whether that can be true.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::nemesis
{

/// Nanoseconds of CLOCK_BOOTTIME, which all processes of a machine share.
using instant = std::int64_t;
inline constexpr instant never = std::numeric_limits<instant>::max();

/// One lease, as its holder saw it.
struct belief
{
    std::string client{};
    std::string id{};
    std::string resource{};
    std::string owner{};
    bool is_kept = false;
    std::uint64_t token = 0; // In guarded mode.
    instant began = 0;       // Its acquire.
    instant from = 0;
    instant until = 0;     // The end of its validity, as seen last.
    instant ended = never; // Its holder had stopped working under it, and was about to release it.
    instant lost = never;  // Its holder was notified, and had stopped working.
    bool released = false; // A quorum has confirmed it.

    /// Until when no other client may hold it.
    instant end() const noexcept { return std::min({until, ended, lost}); }
};

/// A process didn't run.
struct pause
{
    instant from = 0;
    instant to = 0;
};

/// All that one client wrote down.
struct diary
{
    std::vector<belief> leases{};
    std::vector<pause> pauses{};
    instant last = 0; // It was there at that time.
};

/// Of a client of this name. A last line that isn't whole is left out.
///   held|kept id now until resource owner began token
///   extended|ended id now until
///   lost|released id now
///   paused from to
///   done now
diary read_diary(const std::string& client, std::string_view text);

/// Two that held the same resource at the same time, in words.
std::vector<std::string> overlaps(const std::vector<diary>& of);
/// Fencing tokens that were issued twice (G2), or not in the order of the acquires (G3), nor of the leases (G4), in words.
std::vector<std::string> wrong_tokens(const std::vector<diary>& of);
/// Bodies that worked under a kept lease beyond its validity, in words. Not where their process didn't run.
std::vector<std::string> late_losses(const std::vector<diary>& of);

} // namespace redlock::nemesis
