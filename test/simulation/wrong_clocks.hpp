// SPDX-License-Identifier: BSL-1.0
// A guarded group of three whose clocks, or those of its clients, go wrong while a lease is held.
#pragma once

#include "guarded_group.hpp"

#include <array>
#include <functional>
#include <optional>

namespace redlock::test
{

/// A lease that rests on the masters 0 and 1 of three, and another client, which reaches all of them.
struct held_by_two
{
    guarded_simulation test{3};
    simulation& sim{test.sim};
    lock_manager holder{sim.make_connected_manager(test.group.options())};
    std::optional<lock_manager> other;
    std::array<std::size_t, 3> warnings{}; // Of the other client.
    lease held;

    /// `age`: how old the other client is when the lease is acquired.
    explicit held_by_two(clock::duration age = std::chrono::seconds{5})
    {
        other.emplace(sim.make_connected_manager(options()));
        sim.run_for(age);
        sim.master(2).link(1).hold(); // To the holder.
        held = std::move(test.acquire(holder, {.ttl = 10s, .wait = 0ms})->lease);
        REQUIRE(held.valid());
    }

    config options()
    {
        config with = test.group.options();
        with.observer.on_event = [this](const event& what)
        {
            const auto* const found = std::get_if<master_warning>(&what);
            if (found != nullptr && found->what == risk::clock)
            {
                ++warnings.at(found->index);
            }
        };
        return with;
    }

    /// Runs until the other client has noticed that the clock of the master 1 is wrong.
    void run_until_noticed()
    {
        REQUIRE(sim.run_until([&] { return warnings[1] > 0; }, 3s));
    }

    void check_no_other_holder(const std::function<void()>& meanwhile)
    {
        const clock::time_point valid_until = held.valid_until();
        while (sim.now() < valid_until)
        {
            REQUIRE(test.acquire(*other, {.ttl = 3s, .wait = 0ms})->error);
            meanwhile();
        }
    }
};

/// The machine of all clients stops for a while.
inline void stand_still(simulation& sim, clock::duration length)
{
    for (const auto& each : sim.masters())
    {
        each->clock_of_its_own().jump(sim.now(), length);
    }
}

/// The clock of a master runs too fast for a while.
inline void
run_fast(simulation& sim, std::size_t master, clock::duration length, clock::duration faster = 5ms)
{
    for (clock::duration run{0}; run < length; run += 100ms)
    {
        sim.run_for(100ms);
        sim.master(master).clock_of_its_own().jump(sim.now(), faster);
    }
}

/// Cuts all connections to a master.
inline void send_away(sim_master& master)
{
    master.door = entrance::refuses;
    master.break_connections();
}

} // namespace redlock::test
