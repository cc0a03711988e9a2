// SPDX-License-Identifier: BSL-1.0
// The masters as clients see them, command counts and CPU time of the masters, and proxies in front of them.
#pragma once

#include "support/proxy.hpp"
#include "support/server.hpp"

#include <redlock/redlock.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

namespace redlock::bench
{

/// Returns the ports of masters or proxies.
std::vector<int> ports_of(const auto& masters)
{
    std::vector<int> ports;
    std::ranges::transform(masters, std::back_inserter(ports), [](const auto& each) { return each.port(); });
    return ports;
}

/// Returns a configuration with these masters or proxies and the default options.
config config_for(const auto& masters)
{
    config options;
    for (const auto& each : masters)
    {
        options.masters.emplace_back(each.url());
    }
    return options;
}

/// Returns how many commands of this name (in lower case) all these masters have run, those of scripts included.
double commands_run(std::span<test::server> masters, std::string_view name);

/// Returns the user and system time of all threads of all these masters. The masters must be running.
std::chrono::nanoseconds cpu_of(std::span<const test::server> masters);

/// Returns the sorted round-trip times to the masters or proxies at these ports.
std::vector<std::chrono::nanoseconds> measure_pings(std::span<const int> ports);

/// A proxy in front of each master, which adds latency. If there are other CPUs, the proxies run on those, so that
/// they take no CPU time from what is measured.
class proxied_masters
{
  public:
    explicit proxied_masters(std::span<const test::server> masters);

    /// Adds this round-trip delay, half in each direction, to the first `count` masters.
    void set_delay(std::chrono::microseconds there_and_back, std::size_t count);

    /// Sets the delay of all masters so that a PING takes this long, the time of masters and proxies included.
    void set_round_trip(std::chrono::microseconds there_and_back);

    std::size_t size() const { return proxies_.size(); }
    std::vector<int> ports() const { return ports_of(proxies_); }
    /// Returns the configuration of a client with default options.
    config options() const { return config_for(proxies_); }

  private:
    std::deque<test::proxy> proxies_;
};

} // namespace redlock::bench
