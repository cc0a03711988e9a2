// SPDX-License-Identifier: BSL-1.0
// A diagnosis as JSON.
#pragma once

#include "cli/doctor/diagnosis.hpp"

#include <boost/json/object.hpp>

namespace redlock::cli
{

/// Returns the object that docs/command.md describes. Its keys are stable.
boost::json::object json_of(const diagnosis& all);

} // namespace redlock::cli
