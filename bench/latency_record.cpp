// SPDX-License-Identifier: BSL-1.0
// How long something took in the rounds of a client.
#include "latency_record.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace redlock::bench
{

namespace
{

constexpr std::size_t points_of_a_line = 200;

} // namespace

void latency_record::add(std::vector<std::chrono::nanoseconds> samples)
{
    rounds_.push_back(sorted(std::move(samples)));
}

std::size_t latency_record::samples() const
{
    return all().size();
}

std::vector<double> latency_record::percentiles(double fraction) const
{
    std::vector<double> of_each;
    for (const auto& round : rounds_)
    {
        of_each.push_back(percentile_us(round, fraction));
    }
    return of_each;
}

double latency_record::overall(double fraction) const
{
    return percentile_us(all(), fraction);
}

series latency_record::distribution(std::string name) const
{
    const auto samples = all();
    series line{std::move(name), {}};
    for (std::size_t point = 1; point <= points_of_a_line; ++point)
    {
        const double share = static_cast<double>(point) / points_of_a_line;
        line.points.emplace_back(percentile_us(samples, share), share * 100);
    }
    return line;
}

std::vector<std::chrono::nanoseconds> latency_record::all() const
{
    std::vector<std::chrono::nanoseconds> together;
    for (const auto& round : rounds_)
    {
        together.insert(together.end(), round.begin(), round.end());
    }
    return sorted(std::move(together));
}

figure compared(
    std::string name, double fraction, const latency_record& reference, const latency_record& measured,
    std::optional<double> goal)
{
    std::vector<double> to = reference.percentiles(fraction);
    std::vector<double> of = measured.percentiles(fraction);
    const std::size_t both = std::min(of.size(), to.size());
    of.resize(both);
    to.resize(both);
    return {std::move(name), "us", reference.overall(fraction), measured.overall(fraction),
            ratios(of, to),  goal};
}

} // namespace redlock::bench
