// SPDX-License-Identifier: BSL-1.0
// A proxy in front of each master, so that the way to it takes some time.
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

/// They work on other CPUs than the thread that makes them, where there are any: what they do is no part of what is
/// measured.
class proxied_masters
{
  public:
    explicit proxied_masters(std::span<const test::server> masters);

    /// So much later than without it: half of it each way, for the first so many.
    void set_delay(std::chrono::microseconds there_and_back, std::size_t of);

    std::size_t size() const { return proxies_.size(); }
    std::vector<int> ports() const;
    /// For a client of these, all options at their defaults.
    config options() const;

  private:
    std::vector<test::proxy> proxies_;
};

} // namespace redlock::bench
