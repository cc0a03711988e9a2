// SPDX-License-Identifier: BSL-1.0
// A diagnosis as text.
#pragma once

#include "cli/doctor/diagnosis.hpp"

#include <string>

namespace redlock::cli
{

/// Returns a table of the masters, a line for each finding, and the verdict.
std::string text_of(const diagnosis& all);

} // namespace redlock::cli
