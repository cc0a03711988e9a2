// SPDX-License-Identifier: BSL-1.0
// A diagnosis for a person.
#pragma once

#include "cli/diagnosis.hpp"

#include <string>

namespace redlock::cli
{

/// A table with a line for each master, a line for each finding, and the verdict.
std::string text_of(const diagnosis& all);

} // namespace redlock::cli
