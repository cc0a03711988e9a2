// SPDX-License-Identifier: BSL-1.0
// The keys that a master keeps for the guarded mode.
#pragma once

#include <string>
#include <string_view>

namespace redlock::net
{

inline constexpr std::string_view members_key_suffix = ":redlock-members";
inline constexpr std::string_view guard_key_suffix = ":redlock-guard";
inline constexpr std::string_view fence_key_suffix = ":redlock-fence";
inline constexpr std::string_view replaced_key_suffix = ":redlock-guard-before";

/// The names of the keys, which follow from the key prefix of the resources.
struct guard_keys
{
    guard_keys() = default;
    explicit guard_keys(std::string_view key_prefix)
        : members{std::string{key_prefix}.append(members_key_suffix)},
          guard{std::string{key_prefix}.append(guard_key_suffix)},
          fence{std::string{key_prefix}.append(fence_key_suffix)},
          replaced{std::string{key_prefix}.append(replaced_key_suffix)}
    {
    }

    std::string members;  // The record of the members (core/members.hpp).
    std::string guard;    // The marker (core/marker.hpp).
    std::string fence;    // The counters.
    std::string replaced; // The groups before it, on a master that was moved (core/replaced_groups.hpp).
};

} // namespace redlock::net
