// SPDX-License-Identifier: BSL-1.0
// Runs of provisioning in virtual time, and what they leave on the masters.
#pragma once

#include "guarded_group.hpp"
#include "simulation.hpp"

#include "api/provision.hpp"
#include "core/marker.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace redlock::test
{

inline constexpr auto group_ttl = 200ms;
inline constexpr provision_options usual_options{.max_ttl = group_ttl};

/// A run in progress, or its result.
struct provision_run
{
    bool done = false;
    error_code error;
    redlock::provision_report report;
    asio::cancellation_signal cancel;
};

inline std::shared_ptr<provision_run>
begin_provision(simulation& sim, const redlock::config& with, provision_options options = usual_options)
{
    auto run = std::make_shared<provision_run>();
    auto handler = asio::bind_cancellation_slot(
        run->cancel.slot(),
        [run](error_code error)
        {
            run->done = true;
            run->error = error;
        });
    detail::status_completion done = detail::type_erase<void(error_code)>(handler, sim.executor());
    api::provision(sim.executor(), with, options, sim.shared_environment(), &run->report, done);
    return run;
}

inline std::shared_ptr<provision_run>
begin_provision(simulation& sim, provision_options options = usual_options)
{
    return begin_provision(sim, sim.options(), options);
}

inline std::shared_ptr<provision_run> end_provision(simulation& sim, std::shared_ptr<provision_run> run)
{
    REQUIRE(sim.run_until([&] { return run->done; }, 10min));
    return run;
}

/// Lets a master answer a step like this once, so that a new connection isn't affected. `earlier` is how often it has run that
/// step before.
inline void fail_step(
    simulation& sim, std::size_t where, const char* what, std::size_t earlier, const scripted_answer& failing)
{
    if (earlier > 0)
    {
        REQUIRE(sim.run_until([&] { return sim.master(where).count(what) == earlier; }, 1min));
        sim.run_for(1ms);
    }
    sim.master(where).answer(what, failing);
}

inline std::optional<core::marker> its_marker(sim_master& at)
{
    const std::optional<std::string> text = at.value(guard_key);
    return text ? core::parse_marker(*text) : std::nullopt;
}

inline bool is_armed(sim_master& at)
{
    const std::optional<core::marker> its = its_marker(at);
    return its && its->state == core::marker_state::armed && its->replication_id == at.replication_id;
}

inline std::uint64_t floor_at(sim_master& at)
{
    return std::stoull(at.field(fence_key, "floor").value_or("0"));
}

/// Returns the largest floor of all masters.
inline std::uint64_t largest_floor(simulation& sim)
{
    std::uint64_t largest = 0;
    for (const auto& each : sim.masters())
    {
        largest = std::max(largest, floor_at(*each));
    }
    return largest;
}

/// Restarts a server, with a run id that no other has.
inline void restart(sim_master& at, bool keeps_keys)
{
    const std::string run_id = at.run_id + "+";
    at.restart(run_id, keeps_keys);
}

inline std::size_t armed_masters(simulation& sim)
{
    return static_cast<std::size_t>(std::count_if(
        sim.masters().begin(), sim.masters().end(), [](const auto& each) { return is_armed(*each); }));
}

/// Checks that all masters are armed in one group.
inline void check_group(simulation& sim)
{
    CHECK(armed_masters(sim) == sim.masters().size());
    std::set<std::string> groups;
    for (const auto& each : sim.masters())
    {
        const std::optional<core::marker> its = its_marker(*each);
        groups.insert(its ? its->group : "none");
    }
    CHECK(groups.size() == 1);
}

} // namespace redlock::test
