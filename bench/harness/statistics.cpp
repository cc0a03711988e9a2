// SPDX-License-Identifier: BSL-1.0
// Exact percentiles, and the median of rounds with its spread.
#include "harness/statistics.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace redlock::bench
{

spread spread_of(std::vector<double> rounds)
{
    assert(!rounds.empty());
    std::sort(rounds.begin(), rounds.end());
    const std::size_t middle = rounds.size() / 2;
    const bool odd = rounds.size() % 2 == 1;
    return {odd ? rounds[middle] : (rounds[middle - 1] + rounds[middle]) / 2, rounds.front(), rounds.back()};
}

spread ratios(std::span<const double> of, std::span<const double> to)
{
    assert(of.size() == to.size());
    std::vector<double> values;
    for (std::size_t round = 0; round < of.size(); ++round)
    {
        values.push_back(of[round] / to[round]);
    }
    return spread_of(std::move(values));
}

double percentile_us(std::span<const std::chrono::nanoseconds> sorted, double fraction)
{
    assert(!sorted.empty());
    const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
    const std::chrono::nanoseconds sample = sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
    return microseconds(sample);
}

std::vector<std::chrono::nanoseconds> sorted(std::vector<std::chrono::nanoseconds> samples)
{
    std::sort(samples.begin(), samples.end());
    return samples;
}

} // namespace redlock::bench
