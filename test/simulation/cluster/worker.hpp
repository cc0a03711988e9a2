// SPDX-License-Identifier: BSL-1.0
// A user of the library: acquires resources and releases them, by every operation of the library.
#pragma once

#include "chance.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace redlock::test
{

class process;
struct call;

/// A held lease, with its number at the oracle.
struct lease_interval
{
    redlock::lease lease{};
    std::size_t known_as = 0;
    std::chrono::milliseconds ttl{};
    bool kept = false;
    bool ending = false;
    std::optional<std::chrono::milliseconds> max_hold{};
};
using lease_interval_ptr = std::shared_ptr<lease_interval>;

class worker
{
  public:
    worker(process& home, std::uint64_t seed) : home_{home}, draws_{seed} {}

    void start();
    /// Begins nothing new, and releases what it holds.
    void stop();

  private:
    void later();
    void act();
    void acquire(std::size_t resource, std::chrono::milliseconds ttl);
    void try_once(std::size_t resource, std::chrono::milliseconds ttl);
    void keep(std::size_t resource, std::chrono::milliseconds ttl);
    void run_body(std::size_t resource, std::chrono::milliseconds ttl);
    void on_won(const lease_interval_ptr& won);
    void hold_on();
    void extend();
    void give_back();
    void on_lost(const lease_interval_ptr& lost);
    void done();
    boost::asio::awaitable<void> work(redlock::lease& held, std::chrono::milliseconds margin);

    process& home_;
    chance draws_;
    bool stopping_ = false;
    std::size_t looks_ = 0; // Extensions that are left before the release.
    std::shared_ptr<call> under_way_;
    lease_interval_ptr has_;
};

} // namespace redlock::test
