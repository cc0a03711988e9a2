// SPDX-License-Identifier: BSL-1.0
// Clients that wait in the queue of the resource "stock", for tests.
#pragma once

#include "simulation.hpp"

#include "core/queue_master.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

/// How a server refuses commands while its memory is full.
inline const std::string full_memory = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

/// The usual round trip to a master.
inline constexpr clock::duration trip = 200us;

/// Returns the index of the queue master of a resource if the master at the index `passed_over` can't be it.
inline std::size_t
queue_master_index(simulation& sim, const std::string& resource, std::optional<std::size_t> passed_over = {})
{
    const std::uint64_t key = core::stable_hash("lock:" + resource);
    std::size_t best = passed_over == 0U ? 1 : 0;
    const auto weight = [&](std::size_t of)
    { return core::queue_weight(core::stable_hash(sim.master(of).run_id), key); };
    for (std::size_t index = 0; index < sim.masters().size(); ++index)
    {
        best = index != passed_over && weight(index) > weight(best) ? index : best;
    }
    return best;
}

inline sim_master& queue_master_of(simulation& sim, const std::string& resource)
{
    return sim.master(queue_master_index(sim, resource));
}

/// Returns the master that is the queue master while that one is passed over.
inline sim_master& next_queue_master_of(simulation& sim, const std::string& resource)
{
    return sim.master(queue_master_index(sim, resource, queue_master_index(sim, resource)));
}

/// A client that holds the resource, and some that wait for it in their order.
struct waiting_clients
{
    explicit waiting_clients(
        simulation& in, std::size_t count, const config& options, std::chrono::milliseconds ttl = 60s)
        : sim{in}, holder{sim.make_connected_manager(options)}
    {
        const outcome_ptr got = sim.acquire(holder, "stock", {.ttl = ttl});
        REQUIRE(sim.finish(got));
        REQUIRE(!got->error);
        held = std::move(got->lease);
        for (std::size_t each = 0; each < count; ++each)
        {
            managers.push_back(sim.make_connected_manager(options));
            waits.push_back(sim.acquire(managers.back(), "stock", {.ttl = ttl, .wait = no_limit}));
            sim.run_for(5ms);
        }
    }

    simulation& sim;
    lock_manager holder;
    lease held;
    std::vector<lock_manager> managers;
    std::vector<outcome_ptr> waits;
};

} // namespace redlock::test
