// SPDX-License-Identifier: BSL-1.0
// Runs that change a group in virtual time, and what clients of both groups see.
#pragma once

#include "provision_run.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redlock::test
{

using indices = std::vector<std::size_t>;

inline constexpr provision_options changing{.action = provision_action::change_group, .max_ttl = group_ttl};

/// Returns options with these masters of the simulation.
inline redlock::config listing(const simulation& sim, const indices& masters)
{
    redlock::config with = sim.options();
    const std::vector<redlock::master> all = with.masters;
    with.masters.clear();
    for (const std::size_t each : masters)
    {
        with.masters.push_back(all.at(each));
    }
    return with;
}

inline redlock::config guarded_by(const simulation& sim, const indices& masters)
{
    redlock::config with = listing(sim, masters);
    with.guarded.emplace();
    return with;
}

/// Lists of masters, and the run that leads from one to the other.
struct change_of
{
    indices from;
    indices to;

    /// The new list, then the masters that leave.
    indices all() const
    {
        indices every = to;
        std::copy_if(
            from.begin(), from.end(), std::back_inserter(every),
            [this](std::size_t each) { return std::find(to.begin(), to.end(), each) == to.end(); });
        return every;
    }
    std::shared_ptr<provision_run> begin(simulation& sim, provision_options options = changing) const
    {
        options.leaving = all().size() - to.size();
        return begin_provision(sim, listing(sim, all()), options);
    }
    std::shared_ptr<provision_run> run(simulation& sim, provision_options options = changing) const
    {
        return end_provision(sim, begin(sim, options));
    }
};

inline const change_of one_replaced{{0, 1, 2}, {1, 2, 3}};
inline const change_of disjoint{{0, 1, 2}, {3, 4, 5}};

/// Makes a group of the masters of the old list.
inline std::string make_old_group(simulation& sim, const indices& masters = {0, 1, 2})
{
    const auto made = end_provision(sim, begin_provision(sim, listing(sim, masters), usual_options));
    REQUIRE_FALSE(made->error);
    for (const auto& each : sim.masters())
    {
        each->forget_log();
    }
    return made->report.group;
}

/// Checks that these masters, and no others, are armed, in one group.
inline void check_armed(simulation& sim, const indices& members, const std::string& group)
{
    for (std::size_t index = 0; index < sim.masters().size(); ++index)
    {
        CAPTURE(index);
        const bool is_member = std::find(members.begin(), members.end(), index) != members.end();
        CHECK(is_armed(sim.master(index)) == is_member);
        const std::optional<core::marker> its = its_marker(sim.master(index));
        if (is_member && its)
        {
            CHECK(its->group == group);
        }
    }
}

/// Returns the time that a master shows, in microseconds.
inline std::uint64_t shown_by(const sim_master& at)
{
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(at.now().time_since_epoch()).count());
}

/// Acquires, and returns the token; 0 if it wasn't acquired.
inline std::uint64_t token_by(simulation& sim, lock_manager& locks, std::chrono::milliseconds wait = 0ms)
{
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 100ms, .wait = wait});
    REQUIRE(sim.finish(got));
    const std::uint64_t token = got->error ? 0 : got->lease.fencing_token().value_or(0);
    if (!got->error)
    {
        const outcome_ptr released = sim.release(got->lease);
        REQUIRE(sim.finish(released));
    }
    return token;
}

inline bool is_retired(sim_master& at)
{
    const std::optional<core::marker> its = its_marker(at);
    return its && its->state == core::marker_state::retired;
}

/// Runs until the wait of a change has begun.
inline void run_until_moved(simulation& sim, const change_of& what)
{
    REQUIRE(sim.run_until(
        [&]
        {
            const indices all = what.all();
            return std::all_of(
                all.begin(), all.end(),
                [&sim](std::size_t each) { return sim.master(each).count("quarantine") > 0; });
        },
        1min));
    sim.run_until_idle();
}

} // namespace redlock::test
