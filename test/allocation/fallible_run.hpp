// SPDX-License-Identifier: BSL-1.0
// Runs a simulation in which the library's allocations may fail.
#pragma once

#include "allocation/failing_allocations.hpp"
#include "simulation/simulation.hpp"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <functional>

namespace redlock::test
{

/// Runs handlers, whose allocations may fail, and the network, whose can't, until the condition holds.
inline bool run(simulation& sim, const std::function<bool()>& done, asio::io_context* other = nullptr)
{
    const clock::time_point limit = sim.now() + 10min;
    while (!done())
    {
        in_background(
            [&]
            {
                bool more = true;
                while (more)
                {
                    more = sim.step(clock::time_point::min()); // Handlers only.
                    if (other != nullptr)
                    {
                        other->restart();
                        more = other->poll_one() > 0 || more;
                    }
                }
            });
        if (done())
        {
            break;
        }
        if (sim.world().empty() || sim.world().next() > limit)
        {
            return false;
        }
        sim.world().run_next();
    }
    return true;
}

inline void finish(simulation& sim, const outcome_ptr& what)
{
    expect(run(sim, [&] { return what->done; }), "a handler was lost");
}

/// Returns true if all masters have been sent what follows a handshake.
inline bool connected(const simulation& sim)
{
    return std::all_of(
        sim.masters().begin(), sim.masters().end(), [](const auto& each) { return each->count("TIME") > 0; });
}

} // namespace redlock::test
