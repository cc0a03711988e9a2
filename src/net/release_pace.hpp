// SPDX-License-Identifier: BSL-1.0
// When outstanding keys are released at one master: in batches, and later after a refusal. No I/O, no clock.
#pragma once

#include <redlock/clock.hpp>

#include "core/backoff.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace redlock::net
{

/// The pace of the releases that wait for a connection, for room or for the end of a refusal. The next batch is sent when
/// the former is answered, so that a long queue never delays other commands. A release that its operation sends itself
/// doesn't wait for any of this.
class release_pace
{
  public:
    /// The most releases from the queue that are in flight.
    static constexpr std::size_t batch = 128;
    /// As many delays in a row, and an unknown error is taken for a permanent refusal.
    static constexpr std::uint32_t patience = 5;

    explicit release_pace(const core::backoff_policy& policy) noexcept : policy_{policy} {}

    /// A connection is new, or gone: nothing is in flight.
    void reset() noexcept { *this = release_pace{policy_}; }
    /// Whether a batch may be sent.
    bool may_send(clock::time_point now) const noexcept { return in_flight_ == 0 && not_before_ <= now; }
    /// Until when nothing is sent after a refusal.
    clock::time_point not_before() const noexcept { return not_before_; }
    /// The master has refused so often in a row that an unknown error won't pass.
    bool gives_up() const noexcept { return refusals_ >= patience; }

    /// One of a batch was sent.
    void on_sent() noexcept { ++in_flight_; }
    /// One of a batch was answered, whatever the answer.
    void on_answered() noexcept { --in_flight_; }
    /// A release was refused temporarily, and is to be repeated.
    void on_refused() noexcept { refused_ = true; }
    /// A release was done, and no other is waiting. What is in flight may yet be refused again.
    void on_all_done() noexcept { refusals_ = in_flight_ == 0 ? 0 : refusals_; }

    /// Puts the next batch off if something was refused since the last call. False if nothing was, or it is put off already.
    bool put_off(clock::time_point now, std::uint64_t random) noexcept
    {
        if (!std::exchange(refused_, false) || now < not_before_)
        {
            return false;
        }
        // The exponent needs no more, and a counter that wraps would start again.
        refusals_ = std::min<std::uint32_t>(refusals_ + 1, most_refusals);
        not_before_ = now + core::backoff_delay(policy_, refusals_, clock::duration::zero(), random);
        return true;
    }
    /// Whether `put_off` has something to do.
    bool refused() const noexcept { return refused_; }

  private:
    static constexpr std::uint32_t most_refusals = 64;

    core::backoff_policy policy_;
    std::size_t in_flight_ = 0;
    std::uint32_t refusals_ = 0; // Delays in a row.
    bool refused_ = false;       // Since the last delay was drawn.
    clock::time_point not_before_{};
};

} // namespace redlock::net
