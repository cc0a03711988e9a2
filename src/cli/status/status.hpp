// SPDX-License-Identifier: BSL-1.0
// redlock status: shows which owner holds a resource on each master.
#pragma once

#include "cli/common/arguments.hpp"

namespace redlock::cli
{

/// Inspects the resource, writes the masters' answers to stdout, and ends the program.
[[noreturn]] void status(const status_arguments& asked);

} // namespace redlock::cli
