// SPDX-License-Identifier: BSL-1.0
// A proxy in front of each master, which adds latency.
#pragma once

#include "support/proxy.hpp"
#include "support/server.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

namespace redlock::bench
{

/// If there are other CPUs, the proxies run on those, so that they take no CPU time from what is measured.
class proxied_masters
{
  public:
    explicit proxied_masters(std::span<const test::server> masters);

    /// Adds this round-trip delay, half in each direction, to the first `count` masters.
    void set_delay(std::chrono::microseconds there_and_back, std::size_t count);

    std::size_t size() const { return proxies_.size(); }
    std::vector<int> ports() const;
    /// Returns the configuration of a client with default options.
    config options() const;

  private:
    std::vector<test::proxy> proxies_;
};

} // namespace redlock::bench
