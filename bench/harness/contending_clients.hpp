// SPDX-License-Identifier: BSL-1.0
// Clients that compete for one resource: each acquires it, holds it briefly, pauses and acquires it again.
#pragma once

#include "harness/task_group.hpp"

#include "support/server.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <redlock/redlock.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace redlock::bench
{

namespace asio = boost::asio;

// On average a pause is half as long as a hold, so that a client is waiting nearly all the time.
inline constexpr std::chrono::microseconds min_hold{3000};
inline constexpr std::chrono::microseconds max_hold{7000};
inline constexpr std::chrono::microseconds max_pause{5000};

/// The clients of a measurement.
struct contention_scenario
{
    std::string_view name;
    std::size_t clients;
    bool greedy; // The first client doesn't pause between release and acquire. All others do.
};

/// How a client waits for the resource.
enum class wait_strategy
{
    library, // By `async_acquire`.
    /// One round, and after a failure a random delay, as in other libraries: the README of node-redlock has a
    /// retryDelay of 200 ms and a retryJitter of 200 ms, which is added or subtracted. The delay is uniform in 0 to
    /// 400 ms.
    textbook
};

inline constexpr std::chrono::microseconds max_textbook_delay{400'000};

/// The result of one round.
struct contention_round
{
    std::vector<double> grants; // Per client.
    double repeated_grants = 0; // Grants to the previous holder.
    /// The time from a release to the next grant, if a client waited. The start counts as a release, the end as a
    /// grant.
    std::vector<std::chrono::nanoseconds> hand_overs;
    std::chrono::nanoseconds max_wait{0}; // Includes waits that ended without a grant.
    double rounds = 0;
    double commands = 0; // Commands that all masters ran.
    double seconds = 0;
};

/// The clients of a scenario. Each has its own connections, as a separate process would. They share a thread, so
/// that their events have one order.
class contending_clients
{
  public:
    contending_clients(const config& options, const contention_scenario& scenario, wait_strategy strategy);

    /// May be called once. Throws if two clients hold the resource at the same time, or if the round doesn't end.
    contention_round run(std::span<test::server> masters, std::chrono::milliseconds length);

  private:
    using clock = std::chrono::steady_clock;

    struct client
    {
        client(asio::io_context& io, const config& options) : locks{io, options}, retry{io} {}

        lock_manager locks;
        asio::steady_timer retry;                         // The random delay of the textbook strategy.
        std::optional<clock::time_point> waiting_since{}; // Set while it waits.
    };

    void finish();
    asio::awaitable<void> warm_up(std::size_t number);
    asio::awaitable<void> compete(std::size_t number);
    asio::awaitable<void> end_after(std::chrono::milliseconds length);
    /// Returns an empty lease if the round ended first.
    asio::awaitable<lease> acquire(std::size_t number);
    asio::awaitable<lease> acquire_as_library(client& self);
    asio::awaitable<lease> acquire_as_textbook(client& self);
    void on_grant(std::size_t number);
    void end_hand_over();
    void on_release();
    static bool is_waiting(const client& each) { return each.waiting_since.has_value(); }
    std::chrono::microseconds random_duration(std::chrono::microseconds min, std::chrono::microseconds max);

    contention_scenario scenario_;
    wait_strategy strategy_;
    asio::io_context io_{1};
    std::deque<client> clients_;
    task_group tasks_{io_};
    std::minstd_rand random_{}; // The same sequence for both strategies.
    bool is_held_ = false;
    std::optional<std::size_t> last_holder_{};
    std::optional<clock::time_point> released_{}; // Set while a client waits for a resource that is free.
    bool stopping_ = false;
    contention_round result_{};
};

} // namespace redlock::bench
