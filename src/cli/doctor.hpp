// SPDX-License-Identifier: BSL-1.0
// redlock doctor: whether the masters are fit to keep locks.
#pragma once

#include "cli/arguments.hpp"

namespace redlock::cli
{

/// Examines the masters, writes what was found on stdout, and ends the program.
[[noreturn]] void doctor(const doctor_arguments& asked);

} // namespace redlock::cli
