// SPDX-License-Identifier: BSL-1.0
// The command line of the bench.
#pragma once

#include "harness/options.hpp"

#include <optional>

namespace redlock::bench
{

/// Returns the options, or nothing if `--help` was given and printed. Throws `std::invalid_argument` with the
/// option and the reason.
std::optional<options> parse_command_line(int count, const char* const* words);

} // namespace redlock::bench
