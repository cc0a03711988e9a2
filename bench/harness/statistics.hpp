// SPDX-License-Identifier: BSL-1.0
// Exact percentiles, and the median of rounds with its spread.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

namespace redlock::bench
{

inline double microseconds(std::chrono::nanoseconds length)
{
    return std::chrono::duration<double, std::micro>{length}.count();
}

/// The median and the extremes of several rounds.
struct spread
{
    double median = 0;
    double min = 0;
    double max = 0;
};

/// Requires at least one value.
spread spread_of(std::vector<double> rounds);

/// Returns the spread of the ratios of corresponding rounds.
spread ratios(std::span<const double> of, std::span<const double> to);

/// Returns the nearest-rank percentile in microseconds: the smallest sample such that at least this fraction of all
/// samples isn't above it. There are no buckets and no interpolation. Requires samples and a fraction in (0, 1].
double percentile_us(std::span<const std::chrono::nanoseconds> sorted, double fraction);

std::vector<std::chrono::nanoseconds> sorted(std::vector<std::chrono::nanoseconds> samples);

} // namespace redlock::bench
