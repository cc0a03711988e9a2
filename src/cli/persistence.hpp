// SPDX-License-Identifier: BSL-1.0
// What a master remembers after a restart, and what that means for a lock.
#pragma once

#include "cli/finding.hpp"

#include <optional>
#include <string>

namespace redlock::cli
{

/// In two words: "appendfsync always", "appendonly no", "not told".
std::string persistence_of(const master_examination& one);

/// Nothing if every lock is on the disk before it is granted; else a note: it may be so on purpose.
std::optional<finding> about_persistence(const master_examination& one);

} // namespace redlock::cli
