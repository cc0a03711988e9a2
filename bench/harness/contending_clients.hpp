// SPDX-License-Identifier: BSL-1.0
// Clients that all want the same resource, hold it for a moment, and want it again.
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

// A client is back before the next one is done: somebody waits nearly all the time.
inline constexpr std::chrono::microseconds min_hold{3000};
inline constexpr std::chrono::microseconds max_hold{7000};
inline constexpr std::chrono::microseconds max_pause{5000};

/// Who wants the resource.
struct contention_scenario
{
    std::string_view name;
    std::size_t clients;
    bool greedy; // The first one asks again at once after its release. All others pause before.
};

/// How they wait for it.
enum class wait_strategy
{
    library, // However `async_acquire` does it.
    /// One round, and after a refusal a pause. The other libraries': node-redlock's README has a retryDelay of 200 ms and a
    /// retryJitter of 200 ms, which it adds or takes away. That is even between nothing and 400 ms.
    textbook
};

inline constexpr std::chrono::microseconds max_textbook_delay{400'000};

/// What there was to see.
struct contention_round
{
    std::vector<double> grants; // Of each client.
    double repeated_grants = 0; // Grants to the one who had it last.
    /// From a release to the next grant, if somebody waited for it. The beginning counts as a release, the end as a grant.
    std::vector<std::chrono::nanoseconds> hand_overs;
    std::chrono::nanoseconds max_wait{0}; // Of those too that waited in vain.
    double rounds = 0;
    double commands = 0; // That the masters ran, all of them together.
    double seconds = 0;
};

/// The clients of a scene, each with connections of its own as if it were a process of its own. They share a thread, so
/// that what they see is one sequence.
class contending_clients
{
  public:
    contending_clients(const config& options, const contention_scenario& scenario, wait_strategy strategy);

    /// Once. Throws if two of them hold the resource at the same time, and if they don't come to an end.
    contention_round run(std::span<test::server> masters, std::chrono::milliseconds length);

  private:
    using clock = std::chrono::steady_clock;

    struct client
    {
        client(asio::io_context& io, const config& options) : locks{io, options}, retry{io} {}

        lock_manager locks;
        asio::steady_timer retry;                         // Until the next round, in the textbook.
        std::optional<clock::time_point> waiting_since{}; // While it waits.
    };

    void finish();
    asio::awaitable<void> warm_up(std::size_t number);
    asio::awaitable<void> compete(std::size_t number);
    asio::awaitable<void> end_after(std::chrono::milliseconds length);
    /// Empty if the end came first.
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
    std::minstd_rand random_{}; // The same for all kinds of clients.
    bool is_held_ = false;
    std::optional<std::size_t> last_holder_{};
    std::optional<clock::time_point> released_{}; // While somebody waits and nobody has it.
    bool stopping_ = false;
    contention_round result_{};
};

} // namespace redlock::bench
