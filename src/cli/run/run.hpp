// SPDX-License-Identifier: BSL-1.0
// redlock run: runs a command while holding a lock.
#pragma once

#include "cli/common/arguments.hpp"

namespace redlock::cli
{

/// Acquires the lock, runs the command, releases the lock, and ends the program. Must be called on the main thread.
[[noreturn]] void run(const run_arguments& asked);

} // namespace redlock::cli
