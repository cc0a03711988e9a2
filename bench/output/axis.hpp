// SPDX-License-Identifier: BSL-1.0
// The range and the tics of an axis, as gnuplot commands.
#pragma once

#include <span>
#include <string>

namespace redlock::bench
{

/// Requires at least one value. The axis starts at zero unless there are negative values, so that heights are
/// proportional.
std::string linear_axis(char which, std::span<const double> values);

/// Requires at least one value, all positive. The axis starts and ends at a tic. gnuplot's own tics are powers of
/// ten, and there may be none in the range.
std::string logarithmic_axis(char which, std::span<const double> values);

} // namespace redlock::bench
