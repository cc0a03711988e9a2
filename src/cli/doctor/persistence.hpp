// SPDX-License-Identifier: BSL-1.0
// The persistence of a master, and what it means for locks.
#pragma once

#include "cli/doctor/finding.hpp"

#include <optional>
#include <string>

namespace redlock::cli
{

/// Returns a short description: "appendfsync always", "appendonly no", "unknown".
std::string persistence_of(const master_examination& one);

/// Returns nothing if each lock is on disk before it is granted; in guarded mode, if a restart keeps any data. Else returns a
/// note, since weaker persistence may be intended.
std::optional<finding> about_persistence(const master_examination& one);

} // namespace redlock::cli
