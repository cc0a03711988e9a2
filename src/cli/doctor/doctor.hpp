// SPDX-License-Identifier: BSL-1.0
// redlock doctor: checks whether the masters are fit for locks.
#pragma once

#include "cli/common/arguments.hpp"

namespace redlock::cli
{

/// Examines the masters, writes the diagnosis to stdout, and ends the program.
[[noreturn]] void doctor(const doctor_arguments& asked);

} // namespace redlock::cli
