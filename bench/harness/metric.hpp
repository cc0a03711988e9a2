// SPDX-License-Identifier: BSL-1.0
// A value that is computed from each round, and the figures that compare two kinds of clients by it.
#pragma once

#include "harness/figures.hpp"
#include "harness/statistics.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::bench
{

/// A value of one round.
template <class Round>
struct metric
{
    std::string_view name;
    std::string_view unit;
    double (*of)(const Round& round);
};

template <class Round>
std::vector<double> per_round(const metric<Round>& what, const std::vector<Round>& of)
{
    std::vector<double> values;
    std::ranges::transform(of, std::back_inserter(values), what.of);
    return values;
}

/// Returns the median of the rounds.
template <class Round>
double value_of(const metric<Round>& what, const std::vector<Round>& of)
{
    return spread_of(per_round(what, of)).median;
}

/// Returns a figure without a ratio, for values that may be zero. The goal applies to the measured value.
template <class Round>
figure without_ratio(
    const metric<Round>& what, const std::vector<Round>& reference, const std::vector<Round>& measured,
    std::optional<double> goal = {})
{
    return {
        std::string{what.name},
        std::string{what.unit},
        value_of(what, reference),
        value_of(what, measured),
        {},
        goal};
}

/// Both have as many rounds.
template <class Round>
figure compared(
    const metric<Round>& what, const std::vector<Round>& reference, const std::vector<Round>& measured,
    std::optional<double> goal = {})
{
    figure one = without_ratio(what, reference, measured, goal);
    one.ratio = ratios(per_round(what, measured), per_round(what, reference));
    return one;
}

} // namespace redlock::bench
