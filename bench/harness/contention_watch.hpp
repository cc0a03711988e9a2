// SPDX-License-Identifier: BSL-1.0
// Follows a contended resource: who holds it, who waits for it, and for how long it is idle meanwhile.
#pragma once

#include "harness/contender.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace redlock::bench
{

/// What happened to a resource in the measured time. The samples are sorted.
struct contention_record
{
    std::vector<double> grants; // Per client.
    double repeated = 0;        // Grants to the previous holder.
    double ahead = 0;           // Grants while another client had waited for longer.
    double ahead_waited = 0;    // Of these, the grants to clients that had waited as well.
    /// How much longer another client had waited at a grant to a client that had waited as well.
    std::chrono::nanoseconds max_lead{0};
    /// The time from a release to the next grant, if a client waited.
    std::vector<std::chrono::nanoseconds> hand_overs;
    std::vector<std::chrono::nanoseconds> waits; // Of acquires that ended with a grant.
    std::chrono::nanoseconds max_wait{0};    // Since the start. Includes waits that ended without a grant.
    std::chrono::nanoseconds first_grant{0}; // The time from the start to the first grant.
    std::chrono::nanoseconds idle{0};        // The resource was free while a client waited.
    std::chrono::nanoseconds held{0};        // The sum of all holds that ended.
    std::chrono::nanoseconds length{0};      // Of the measured time.

    /// At least 1: a round may end without a grant if the votes are split in every attempt.
    double total_grants() const;
};

class contention_watch
{
  public:
    using clock = std::chrono::steady_clock;

    explicit contention_watch(std::size_t clients);

    void start(clock::time_point now) { started_ = now; }
    /// Forgets what was measured so far, except the first grant and the longest wait.
    void begin_measurement(clock::time_point now);
    /// Ends the measurement. A hand-over that hasn't ended has lasted at least this long.
    contention_record finish(clock::time_point now);

    void on_wait(std::size_t client, clock::time_point now);
    /// Throws if another client holds the resource.
    void on_grant(std::size_t client, grant how, clock::time_point now);
    /// The client has ended its wait without a grant.
    void on_gave_up(std::size_t client, clock::time_point now);
    void on_release(clock::time_point now);

    bool is_waiting(std::size_t client) const { return arrivals_[client].has_value(); }

  private:
    clock::time_point end_wait(std::size_t client, clock::time_point now);
    void count_order(grant how, clock::time_point arrival);
    void end_hand_over(clock::time_point now);
    void follow_idle(clock::time_point now);

    contention_record record_;
    std::vector<std::optional<clock::time_point>> arrivals_;           // Of the clients that wait.
    std::set<std::pair<clock::time_point, std::size_t>> by_arrival_{}; // The same, the oldest first.
    std::optional<std::size_t> last_holder_{};
    std::optional<clock::time_point> held_since_{};
    std::optional<clock::time_point> idle_since_{}; // Set while the resource is free and a client waits.
    std::optional<clock::time_point> released_{};   // Set from a release to the next grant.
    clock::time_point started_{};
    clock::time_point measured_since_{};
    bool granted_once_ = false;
};

} // namespace redlock::bench
