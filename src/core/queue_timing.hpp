// SPDX-License-Identifier: BSL-1.0
// The times of a client that waits in the queue of a resource. Pure functions: the random number is an argument.
#pragma once

#include <redlock/clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace redlock::core
{

/// The interval of the first client in the queue between two questions. It bounds the cost of a lost message.
inline constexpr std::chrono::milliseconds queue_heartbeat{250};
/// The time after its last question for which the first client in the queue counts as alive.
inline constexpr std::chrono::milliseconds queue_liveness{1000};
/// The longest pause after lost rounds, and the longest interval of a client that polls.
inline constexpr std::chrono::milliseconds max_queue_pause{250};

/// The longest interval of the first client in the queue if it polls. Shorter than the smallest grace, after which a woken
/// client that hasn't come is dropped.
inline constexpr std::chrono::milliseconds max_first_poll{25};

/// Returns the time for which a client that was woken is served ahead of all others: twice the node timeout, at least
/// 50 ms and at most `queue_liveness`. With less, clients that were on their way were skipped; a client that was stopped
/// delays the others for as long.
std::chrono::milliseconds queue_grace(std::chrono::milliseconds node_timeout) noexcept;

/// What a refused question has reported.
struct queue_position
{
    std::size_t rank; // From 0.
    /// Until the present key expires. Empty if it doesn't exist, or doesn't expire.
    std::optional<std::chrono::milliseconds> key_expires_in;
    std::size_t waiting = 0; // Clients in the queue, this one included.
};

/// Returns the delay until the next question of a client that receives messages: the heartbeat, longer for a client
/// far back in the queue, with a jitter of 20 %. The first client also asks 1 ms after the present key expires.
clock::duration next_heartbeat(const queue_position& position, std::uint64_t random) noexcept;

/// Returns the delay until the next question of a client that receives no messages: 1 ms for each client up to it, or
/// a quarter of the time since its rank changed, if that is longer; at most `max_queue_pause`, for the first client
/// `max_first_poll`.
clock::duration next_poll(const queue_position& position, clock::duration since_rank_changed) noexcept;

/// Returns the pause after the `losses`th round in a row that was lost (1 or more): uniformly distributed between 0.5
/// and 1.5 times the duration of the round, which counts as 0.5 ms at least. Doubled with each loss, up to
/// `max_queue_pause`.
clock::duration
pause_after_loss(std::uint32_t losses, clock::duration round_took, std::uint64_t random) noexcept;

/// Detects a queue master that grants a resource again and again while a quorum has the key for another client, because
/// it doesn't know the key.
class overruled_watch
{
  public:
    static constexpr std::uint32_t losses = 3;
    /// A shorter series is that of a peer that is merely slow. Distrust would split the queue.
    static constexpr std::chrono::milliseconds at_least{50};

    /// Records a lost round. `overruled`: the queue master granted, and too many others denied. Returns whether the
    /// queue master should be left: after three such rounds in a row at the same one, the first of which ended at least 50 ms ago.
    bool on_lost(std::size_t queue_master, bool overruled, clock::time_point now) noexcept;
    /// Forgets the series.
    void reset() noexcept { seen_ = 0; }

  private:
    std::size_t queue_master_ = 0;
    std::uint32_t seen_ = 0;
    clock::time_point first_{};
};

} // namespace redlock::core
