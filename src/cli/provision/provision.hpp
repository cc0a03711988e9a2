// SPDX-License-Identifier: BSL-1.0
// `redlock provision`.
#pragma once

#include "cli/common/arguments.hpp"

namespace redlock::cli
{

/// Makes the masters a guarded group, reports each of them, and ends the program. A signal ends the run between two steps;
/// the same command continues it.
[[noreturn]] void provision(const provision_arguments& asked);

} // namespace redlock::cli
