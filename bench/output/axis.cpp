// SPDX-License-Identifier: BSL-1.0
// The range and the tics of an axis, as gnuplot commands.
#include "output/axis.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace redlock::bench
{

namespace
{

constexpr std::string_view plain_numbers = "%.10g"; // 100000, not 1e+05.

/// Returns the candidates for tics of a logarithmic axis, beyond both extremes. The fewer powers of ten they span,
/// the more steps each has.
std::vector<double> marks(double min, double max)
{
    const double powers = std::log10(max / min);
    std::vector<double> steps{1};
    if (powers <= 1)
    {
        steps = {1, 1.5, 2, 3, 5, 7};
    }
    else if (powers <= 3)
    {
        steps = {1, 2, 5};
    }
    std::vector<double> out;
    const int last = static_cast<int>(std::ceil(std::log10(max))) + 1;
    for (int power = static_cast<int>(std::floor(std::log10(min))); power <= last; ++power)
    {
        for (const double step : steps)
        {
            out.push_back(step * std::pow(10.0, power));
        }
    }
    return out;
}

} // namespace

std::string linear_axis(char which, std::span<const double> values)
{
    const auto [min, max] = std::minmax_element(values.begin(), values.end());
    const std::string_view begin = *min < 0 ? "*" : "0";
    const std::string_view end = *min == 0 && *max == 0 ? "1" : "*";
    return fmt::format(
        "unset logscale {0}\nset {0}range [{1}:{2}]\nset {0}tics autofreq\nset format {0} '{3}'\n", which,
        begin, end, plain_numbers);
}

std::string logarithmic_axis(char which, std::span<const double> values)
{
    const auto [min, max] = std::minmax_element(values.begin(), values.end());
    const std::vector<double> all = marks(*min, *max);
    constexpr double rounding = 1e-9;
    // The last tic that isn't above the minimum, and the first one after it that isn't below the maximum.
    const auto first = std::prev(std::upper_bound(all.begin() + 1, all.end(), *min * (1 + rounding)));
    const auto last = std::lower_bound(std::next(first), std::prev(all.end()), *max * (1 - rounding));
    std::vector<std::string> written;
    for (auto mark = first; mark <= last; ++mark)
    {
        written.push_back(fmt::format("'{0:.10g}' {0:.10g}", *mark));
    }
    return fmt::format(
        "set logscale {0}\nset {0}range [{1:.10g}:{2:.10g}]\nset {0}tics ({3})\n", which, *first, *last,
        fmt::join(written, ", "));
}

} // namespace redlock::bench
