// SPDX-License-Identifier: BSL-1.0
// Time and random numbers of a simulation: a clock that only the test moves, and the scheduled events.
#pragma once

#include <redlock/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace redlock::test
{

/// The kinds of events that keep a simulation from being idle.
enum class event_kind : std::uint8_t
{
    network, // Bytes, connections and their ends in flight.
    timer    // An alarm of the library, which may well be set for ever.
};

/// The order of events at the same time.
enum class ties : std::uint8_t
{
    in_order, // In the order of scheduling.
    by_chance // Random.
};

/// Some days after the start of the machine: a library that forgets a time point uses zero.
inline constexpr clock::time_point beginning{std::chrono::hours{100}};

/// Virtual time. One thread.
class virtual_world
{
  public:
    using action = std::function<void()>;

    explicit virtual_world(std::uint64_t seed, ties between = ties::in_order) : ties_{between}, chance_{seed}
    {
    }

    clock::time_point now() const noexcept { return now_; }
    void at(clock::time_point when, event_kind kind, action what);

    bool empty() const noexcept { return events_.empty(); }
    /// Returns the time of the next event, which may be in the past after a jump. Precondition: there is one.
    clock::time_point next() const noexcept { return events_.front().when; }
    /// Returns true if only timers are left.
    bool quiet() const noexcept { return network_events_ == 0; }
    /// Moves the clock to the next event and runs it. Precondition: there is one.
    void run_next();
    /// Moves the clock without running events, as if the machine slept or the process was stopped.
    void jump(clock::duration by) noexcept { now_ += by; }
    /// The same; of the events that are due then, timers run before those of the network.
    void jump_with_timers_first(clock::duration by);

    /// Drops all events, which may own the processes that own this world.
    void end() noexcept { std::vector<event>{}.swap(events_); }

    std::uint64_t random_number() noexcept { return chance_(); }
    /// Returns a number below `bound`.
    std::size_t random_below(std::size_t bound) noexcept { return chance_() % bound; }

    /// Returns how many of `bytes` fit into a buffer: all of them, unless the buffer is (randomly) almost full.
    std::size_t room_for(std::size_t bytes) noexcept;

  private:
    struct event
    {
        clock::time_point when;
        std::uint64_t tie; // Of two at the same time the lower one comes first.
        std::uint64_t number;
        event_kind kind;
        action what;
    };
    struct later
    {
        bool operator()(const event& left, const event& right) const noexcept;
    };

    clock::time_point now_ = beginning;
    ties ties_;
    std::uint64_t last_ = 0;
    std::vector<event> events_; // A heap with the next one in front.
    std::size_t network_events_ = 0;
    std::mt19937_64 chance_;
};

} // namespace redlock::test
