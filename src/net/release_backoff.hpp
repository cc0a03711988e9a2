// SPDX-License-Identifier: BSL-1.0
// The pacing of releases of outstanding keys at one master: in batches, with delays after refusals. No I/O, no clock.
#pragma once

#include <redlock/clock.hpp>

#include "core/backoff.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace redlock::net
{

/// The pacing of the releases that were queued because there was no connection or no room, or because they were
/// refused. The next batch is sent when the previous one has been answered, so that a long queue doesn't delay other
/// commands. Releases that are sent directly by an operation are not paced.
class release_backoff
{
  public:
    /// The maximum number of queued releases in flight.
    static constexpr std::size_t batch = 128;
    /// The number of delays in a row after which an unknown error counts as a permanent refusal.
    static constexpr std::uint32_t patience = 5;

    explicit release_backoff(const core::backoff_policy& policy) noexcept : policy_{policy} {}

    /// Resets the state when the connection ends: nothing is in flight.
    void reset() noexcept { *this = release_backoff{policy_}; }
    /// Returns whether a batch may be sent.
    bool may_send(clock::time_point now) const noexcept { return in_flight_ == 0 && not_before_ <= now; }
    /// Returns the end of the current delay.
    clock::time_point not_before() const noexcept { return not_before_; }
    /// Returns whether the master has refused often enough in a row that an unknown error counts as permanent.
    bool gives_up() const noexcept { return refusals_ >= patience; }

    /// A release of a batch was sent.
    void on_sent() noexcept { ++in_flight_; }
    /// A release of a batch was answered, with or without success.
    void on_answered() noexcept { --in_flight_; }
    /// A release was refused temporarily, and will be repeated.
    void on_refused() noexcept { refused_ = true; }
    /// A release succeeded, and no other is queued. Releases in flight may still be refused.
    void on_all_done() noexcept { refusals_ = in_flight_ == 0 ? 0 : refusals_; }

    /// Starts a delay of the next batch if a release was refused since the last call: at most half of the time until `end`, so
    /// that the last attempt is made shortly before. Returns false if none was refused, or if a delay is in effect.
    bool delay(
        clock::time_point now, std::uint64_t random,
        clock::time_point end = clock::time_point::max()) noexcept
    {
        if (!std::exchange(refused_, false) || now < not_before_)
        {
            return false;
        }
        // The back-off has reached its bound by this number; an unlimited counter could wrap around.
        refusals_ = std::min<std::uint32_t>(refusals_ + 1, max_refusals);
        const clock::duration backoff =
            core::backoff_delay(policy_, refusals_, clock::duration::zero(), random);
        const clock::duration half = (end - now) / 2;
        not_before_ = now + std::min(backoff, std::max(half, least_delay));
        return true;
    }
    /// Returns whether a release was refused since the last call of `delay`.
    bool refused() const noexcept { return refused_; }

  private:
    static constexpr std::uint32_t max_refusals = 64;
    static constexpr clock::duration least_delay = std::chrono::milliseconds{1};

    core::backoff_policy policy_;
    std::size_t in_flight_ = 0;
    std::uint32_t refusals_ = 0; // Delays in a row.
    bool refused_ = false;       // Since the last call of delay.
    clock::time_point not_before_{};
};

} // namespace redlock::net
