// SPDX-License-Identifier: BSL-1.0
// How long something took in the rounds of a client: their percentiles, and all samples as a distribution.
#pragma once

#include "results.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace redlock::bench
{

class latency_record
{
  public:
    /// Of one round; one sample or more.
    void add(std::vector<std::chrono::nanoseconds> samples);

    bool empty() const { return rounds_.empty(); }
    /// Of all rounds.
    std::size_t samples() const;
    /// Of each round, in microseconds.
    std::vector<double> percentiles(double fraction) const;
    /// Of all rounds together, in microseconds.
    double overall(double fraction) const;
    /// The share of all samples that were no longer, in percent, above the microseconds.
    series distribution(std::string name) const;

  private:
    std::vector<std::chrono::nanoseconds> all() const;

    std::vector<std::vector<std::chrono::nanoseconds>> rounds_; // Sorted, each.
};

/// A percentile of the one beside that of the reference; the ratio is of the rounds that both have.
figure compared(
    std::string name, double fraction, const latency_record& reference, const latency_record& measured,
    std::optional<double> goal);

} // namespace redlock::bench
