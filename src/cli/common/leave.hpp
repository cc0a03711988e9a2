// SPDX-License-Identifier: BSL-1.0
// The end of the program.
#pragma once

#include "cli/common/exit_code.hpp"

namespace redlock::cli
{

/// How the program ends.
struct ending
{
    int exit_code = 0;
    /// The signal that ends the program instead of the exit code; 0 for none.
    int signal = 0;
};

/// Ends the program without destroying anything: what is pending may take long. stdout must have been flushed.
[[noreturn]] void leave(const ending& how);

/// Flushes stdout, then ends the program. If stdout can't be written, reports that and ends with `system_error`.
[[noreturn]] void leave_with_output(exit_code code);

} // namespace redlock::cli
