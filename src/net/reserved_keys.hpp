// SPDX-License-Identifier: BSL-1.0
// The keys that belong to the library itself, and can't be resources.
#pragma once

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::net
{

/// The length of ":redlock-guard" and ":redlock-fence".
inline constexpr std::size_t shortest_guard_name = 14;

/// Returns whether a text contains the name of a key of the guarded mode.
bool contains_guard_name(std::string_view text) noexcept;

/// Recognises resources whose keys would be in the place of a queue, or of a key of the guarded mode. All managers refuse them,
/// so that no lock can destroy what the masters keep.
class reserved_keys
{
  public:
    explicit reserved_keys(std::string_view key_prefix);

    bool contains(std::string_view resource) const noexcept
    {
        // Quick for nearly all resources, because every acquire passes here.
        const bool may_begin = !resource.empty() && may_begin_[static_cast<unsigned char>(resource.front())];
        return (may_begin && begins_with_name(resource)) ||
               (resource.size() >= shortest_guard_name && contains_guard_name(resource));
    }

  private:
    bool begins_with_name(std::string_view resource) const noexcept;

    std::vector<std::string> beginnings_; // Of resources, where a name begins in the prefix.
    std::bitset<256> may_begin_;          // The first bytes of these.
};

} // namespace redlock::net
