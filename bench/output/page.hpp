// SPDX-License-Identifier: BSL-1.0
// The results as an HTML page in one file.
#pragma once

#include "output/pictures.hpp"
#include "output/results.hpp"

#include <iosfwd>

namespace redlock::bench
{

void write_page(std::ostream& out, const results& measured, const pictures& drawn);

} // namespace redlock::bench
