// SPDX-License-Identifier: BSL-1.0
// The end of the program.
#pragma once

#include "cli/exit_code.hpp"

namespace redlock::cli
{

/// How the program ends.
struct ending
{
    int exit_code = 0;
    /// If it isn't 0, the program ends by this signal, instead of with the exit code.
    int signal = 0;
};

/// Ends the program without destroying anything: the destructor of an io_context waits for a name that is being
/// resolved, for as long as the name servers like. What was written to stdout must have been flushed.
[[noreturn]] void leave(const ending& how);

/// The same for a program whose stdout is what it was asked for: writes what is left of it. If that can't be done it
/// says so, and ends with `system_error`.
[[noreturn]] void leave_with_output(exit_code code);

} // namespace redlock::cli
