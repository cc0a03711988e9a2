// SPDX-License-Identifier: BSL-1.0
// The keys that belong to the library itself, and can't be resources.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redlock::net
{

/// Returns whether a text contains the name of a key of the guarded mode.
bool contains_guard_name(std::string_view text) noexcept;

/// Recognises resources whose keys would be in the place of a queue, or of a key of the guarded mode. All managers refuse them,
/// so that no lock can destroy what the masters keep.
class reserved_keys
{
  public:
    explicit reserved_keys(std::string_view key_prefix);

    bool contains(std::string_view resource) const noexcept;

  private:
    std::vector<std::string> beginnings_; // Of resources, where a name begins in the prefix.
};

} // namespace redlock::net
