// SPDX-License-Identifier: BSL-1.0
// A diagnosis for a program.
#pragma once

#include "cli/diagnosis.hpp"

#include <string>

namespace redlock::cli
{

/// One object, without a line's end. Its keys are in docs/command.md, and stay.
std::string json_of(const diagnosis& all);

} // namespace redlock::cli
