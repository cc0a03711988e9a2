// SPDX-License-Identifier: BSL-1.0
// The changes since an earlier run.
#pragma once

#include "output/recorded_results.hpp"

#include <iosfwd>

namespace redlock::bench
{

void write_comparison(std::ostream& out, const recorded_results& base, const recorded_results& now);

} // namespace redlock::bench
