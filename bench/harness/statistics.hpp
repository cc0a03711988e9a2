// SPDX-License-Identifier: BSL-1.0
// Exact percentiles, and the middle of several rounds with its spread.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

namespace redlock::bench
{

/// The middle one of several rounds, and the extremes.
struct spread
{
    double median = 0;
    double min = 0;
    double max = 0;
};

/// Of one value or more.
spread spread_of(std::vector<double> rounds);

/// Of the one to the other in the same round.
spread ratios(std::span<const double> of, std::span<const double> to);

/// The smallest sample that is not exceeded by this fraction of them, in microseconds; no interpolation, no
/// buckets. `sorted` isn't empty; `fraction` is above 0 and at most 1.
double percentile_us(std::span<const std::chrono::nanoseconds> sorted, double fraction);

std::vector<std::chrono::nanoseconds> sorted(std::vector<std::chrono::nanoseconds> samples);

} // namespace redlock::bench
