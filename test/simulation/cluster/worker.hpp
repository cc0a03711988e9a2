// SPDX-License-Identifier: BSL-1.0
// A user of the library: acquires resources and releases them, by every operation of the library.
#pragma once

#include "chance.hpp"
#include "oracle.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

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
    std::chrono::milliseconds margin{}; // If it is kept.
    std::size_t endings = 0;            // Those of managers when its acquire began, if it isn't kept.
};
using lease_interval_ptr = std::shared_ptr<lease_interval>;

class worker
{
  public:
    worker(process& home, std::uint64_t seed) : home_{home}, draws_{seed} {}

    void start();
    /// Begins nothing new, and releases what it holds.
    void stop();
    /// A shutdown of the manager has begun.
    void on_shutdown();

  private:
    void later();
    std::shared_ptr<report> used_report();
    void check_executor(bool elsewhere);
    std::chrono::milliseconds draw_min_validity(std::chrono::milliseconds ttl);
    void draw_schedule(keep_options& with);
    std::chrono::milliseconds margin_of(const keep_options& with) const;
    void check_schedule(error_code error);
    void note_kept(const redlock::lease& held, const keep_options& with);
    void act();
    void acquire(std::size_t resource, std::chrono::milliseconds ttl);
    void try_once(std::size_t resource, std::chrono::milliseconds ttl);
    void keep(std::size_t resource, std::chrono::milliseconds ttl);
    void run_body(std::size_t resource, std::chrono::milliseconds ttl);
    /// Compares the report of an acquire that began at this true time with the wire.
    void check_acquire(
        clock::time_point began, std::size_t resource, const report& told, const redlock::lease& won);
    void check_token(const oracle::beginning& began, const report* told, const redlock::lease& won);
    void on_won(const lease_interval_ptr& won);
    void await_expiry_soon(const lease_interval_ptr& held);
    void await_expiry(const lease_interval_ptr& held);
    void hold_on();
    void extend();
    void give_back();
    void on_lost(const lease_interval_ptr& lost);
    void done();
    /// Begins an operation by `begin(token)`, for which a token is drawn that calls `done`.
    template <class Function, class Begin>
    void start(const std::shared_ptr<call>& by, Function done, Begin begin);
    /// `elsewhere`: on another executor, which doesn't learn of a loss while it is busy.
    boost::asio::awaitable<void> work(redlock::lease& held, keep_options with, bool elsewhere);

    process& home_;
    chance draws_;
    bool stopping_ = false;
    std::shared_ptr<report> told_; // Of the last call that had one.
    std::size_t looks_ = 0;        // Extensions that are left before the release.
    std::shared_ptr<call> under_way_;
    lease_interval_ptr has_;
};

} // namespace redlock::test
