// SPDX-License-Identifier: BSL-1.0
// redlock status: who holds a resource, as each master sees it.
#pragma once

#include "cli/arguments.hpp"

namespace redlock::cli
{

/// Asks the masters, writes what they say on stdout, and ends the program.
[[noreturn]] void status(const status_arguments& asked);

} // namespace redlock::cli
