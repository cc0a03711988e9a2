// SPDX-License-Identifier: BSL-1.0
// From where to where an axis of a picture goes, and what is written at it, as commands of gnuplot.
#pragma once

#include <span>
#include <string>

namespace redlock::bench
{

/// Of one value or more. From zero, unless there are values below it: what is twice as high is twice as much.
std::string linear_axis(char which, std::span<const double> values);

/// Of one value or more, all above zero. It begins and ends at a mark. gnuplot itself marks powers of ten only, of
/// which there may be none between the values.
std::string logarithmic_axis(char which, std::span<const double> values);

} // namespace redlock::bench
