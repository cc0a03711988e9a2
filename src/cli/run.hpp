// SPDX-License-Identifier: BSL-1.0
// redlock run: a command under a lock.
#pragma once

#include "cli/arguments.hpp"

namespace redlock::cli
{

/// Acquires, runs the command, gives back, and ends the program. To be called on the main thread.
[[noreturn]] void run(const run_arguments& asked);

} // namespace redlock::cli
