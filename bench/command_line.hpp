// SPDX-License-Identifier: BSL-1.0
// The command line of the bench.
#pragma once

#include "harness/options.hpp"

#include <span>
#include <string_view>

namespace redlock::bench
{

extern const std::string_view usage;

/// Throws `std::invalid_argument` with what was wrong and what is allowed.
options parse(std::span<const char* const> arguments);

} // namespace redlock::bench
