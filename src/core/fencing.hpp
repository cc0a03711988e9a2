// SPDX-License-Identifier: BSL-1.0
// The choice of a fencing token from the masters' counters. Values only.
#pragma once

#include "core/clock_watch.hpp"

#include <redlock/vote.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace redlock::core
{

/// The counters of one round. A token is issued once a quorum of masters has exactly its value for this round's key:
/// granted with it, or raised to it by an acknowledged command. Exactly, because a master gives the rounds of one resource
/// disjoint ranges of numbers, so two rounds can't both have a value at a quorum.
class token_choice
{
  public:
    /// `masters` is 1 to `max_masters`.
    explicit token_choice(std::size_t masters) noexcept : masters_{masters} {}

    /// A master has granted with this counter, which is at least 1. Each grants once.
    void add_grant(std::size_t master, std::uint64_t counter) noexcept;
    /// A master has acknowledged that its counter was raised to the target, and that the key was ours then.
    void add_raised(std::size_t master) noexcept;

    /// A master hasn't acknowledged that its counter was raised: its grant counts no more.
    void add_failed_raise(std::size_t master) noexcept;

    /// Returns whether a quorum may still get a token, if as many masters as `pending` may still grant.
    bool is_possible(std::size_t pending) const noexcept;
    /// Returns the largest counter of a grant; 0 if there is none.
    std::uint64_t largest() const noexcept { return largest_; }
    /// Returns the token; empty as long as fewer than a quorum have it exactly.
    std::optional<std::uint64_t> token() const noexcept;
    /// Returns the value that counters are raised to: the largest of the first quorum of grants, if they differ. 0 if there
    /// is none.
    std::uint64_t target() const noexcept { return target_; }
    /// Returns whether this master's counter has to be raised to the target.
    bool is_below_target(std::size_t master) const noexcept
    {
        return counters_[master] != 0 && counters_[master] < target_;
    }

    /// Returns how many grants count no more because their raise has failed.
    std::size_t failed_raises() const noexcept { return count(failed); }

  private:
    static constexpr std::uint64_t failed = ~std::uint64_t{0}; // In the place of a counter.

    std::size_t count(std::uint64_t counter) const noexcept;

    std::array<std::uint64_t, max_masters> counters_{}; // 0: no grant.
    std::size_t masters_;
    std::uint64_t target_ = 0;
    std::uint64_t largest_ = 0;
};

/// Returns the value that a round proposes to all masters as their next counter, so that their answers are equal: the
/// median of the masters' clocks in microseconds, more than the largest counter that this manager has seen. The lower
/// median, so that with N = 2 a single wrong clock doesn't decide upwards. `clocks` is reordered.
std::uint64_t counter_hint(std::span<std::chrono::microseconds> clocks, std::uint64_t largest_seen) noexcept;

/// Returns the floor of a master that is armed although the counters of a quorum may be lost: its present time in microseconds
/// plus two hours. A counter is at most an hour ahead of the clocks, or continues such a floor of before, by less than one in a
/// microsecond.
std::uint64_t floor_by_clock(const clock_reading& last, clock::time_point now) noexcept;
/// Returns the same for a master whose clock shows this now.
std::uint64_t floor_by_clock(std::chrono::microseconds shown) noexcept;

/// Returns the latest time by a master's clock at which a command may run that is sent now: what its clock can show at most
/// when the node timeout has passed, by the last reading and the permitted drift since.
std::chrono::microseconds latest_at(
    const clock_reading& last, clock::time_point now, std::chrono::milliseconds node_timeout,
    double drift_factor) noexcept;

} // namespace redlock::core
