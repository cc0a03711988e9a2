// SPDX-License-Identifier: BSL-1.0
// How long one client takes to acquire, and what it costs, beside the reference in the same round.
#include "sections.hpp"

#include "raw_client.hpp"
#include "redlock_client.hpp"

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

/// What a client's rounds gave.
class client_record
{
  public:
    void add(const stretch& round)
    {
        const auto samples = sorted(round.acquires);
        p50.push_back(percentile_us(samples, 0.5));
        p99.push_back(percentile_us(samples, 0.99));
        p999.push_back(percentile_us(samples, 0.999));
        const auto pairs = static_cast<double>(round.pairs());
        cpu.push_back(std::chrono::duration<double, std::micro>{round.cpu}.count() / pairs);
        allocations.push_back(static_cast<double>(round.allocations) / pairs);
        unconfirmed += static_cast<double>(round.unconfirmed);
        all_.insert(all_.end(), samples.begin(), samples.end());
    }

    /// Of the acquires of all rounds together.
    double overall_us(double fraction) const { return percentile_us(sorted(all_), fraction); }

    std::vector<double> p50;
    std::vector<double> p99;
    std::vector<double> p999;
    std::vector<double> cpu;
    std::vector<double> allocations;
    double unconfirmed = 0;

  private:
    std::vector<std::chrono::nanoseconds> all_;
};

} // namespace

figure_group measure_latency(std::span<test::server> masters, const options& asked, progress& shown)
{
    raw_client raw{masters};
    redlock_client redlock{config_for(masters)};
    const work round{asked.pairs};
    shown.show("one client: warming up");
    raw.run(round);
    redlock.run(round);

    client_record raws;
    client_record redlocks;
    for (std::size_t done = 0; done < asked.rounds; ++done)
    {
        shown.show(fmt::format("one client: round {} of {}", done + 1, asked.rounds));
        raws.add(raw.run(round));
        redlocks.add(redlock.run(round));
    }
    const auto latency = [&](const char* name, double fraction, std::vector<double> client_record::*each,
                             std::optional<double> goal) -> figure
    {
        return {name,
                "us",
                raws.overall_us(fraction),
                redlocks.overall_us(fraction),
                ratios(redlocks.*each, raws.*each),
                goal};
    };
    const spread raw_cpu = spread_of(raws.cpu);
    const spread redlock_cpu = spread_of(redlocks.cpu);
    return {
        "One client, one lock after the other",
        "raw",
        {latency("acquire p50", 0.5, &client_record::p50, 1.1),
         latency("acquire p99", 0.99, &client_record::p99, 1.2),
         latency("acquire p99.9", 0.999, &client_record::p999, {}),
         {"client CPU per pair", "us", raw_cpu.median, redlock_cpu.median, ratios(redlocks.cpu, raws.cpu),
          1.2},
         {"heap allocations per pair", "", {}, spread_of(redlocks.allocations).median, {}, 0.0},
         {"releases not confirmed in time", "", {}, redlocks.unconfirmed, {}, {}}}};
}

} // namespace redlock::bench
