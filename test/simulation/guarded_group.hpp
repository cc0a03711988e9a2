// SPDX-License-Identifier: BSL-1.0
// Simulated masters as a guarded group.
#pragma once

#include "simulation.hpp"

#include "core/marker.hpp"
#include "core/members.hpp"
#include "core/queue_master.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::test
{

inline constexpr std::string_view group_name = "0123456789abcdef";
inline constexpr const char* guard_key = "lock::redlock-guard";
inline constexpr const char* fence_key = "lock::redlock-fence";
inline constexpr const char* members_key = "lock::redlock-members";

/// Masters that are members of one group, as provisioning leaves them.
class guarded_group
{
  public:
    static constexpr std::chrono::milliseconds max_ttl{10'000};

    explicit guarded_group(simulation& of, std::string_view name = group_name) : sim_{of}, name_{name} {}

    /// Arms all masters with this floor.
    void arm_all(std::uint64_t floor = 1000)
    {
        for (std::size_t index = 0; index < sim_.masters().size(); ++index)
        {
            arm(index, floor);
        }
    }
    void arm(std::size_t index, std::uint64_t floor = 1000)
    {
        put_marker(index, core::marker_state::armed);
        sim_.master(index).set_field(fence_key, "floor", std::to_string(floor));
        sim_.master(index).set(members_key, record());
    }
    /// Writes a marker for the present incarnation of the master.
    void put_marker(
        std::size_t index, core::marker_state state,
        core::incarnation_end why = core::incarnation_end::created)
    {
        sim_.master(index).set(guard_key, core::to_text(marker_of(index, state, why)));
    }
    core::marker marker_of(
        std::size_t index, core::marker_state state,
        core::incarnation_end why = core::incarnation_end::created) const
    {
        return {
            .group = name_,
            .seat = static_cast<std::uint32_t>(index + 1),
            .masters = static_cast<std::uint32_t>(sim_.masters().size()),
            .max_ttl = max_ttl,
            .policy = core::arming_policy::clocks,
            .state = state,
            .why = why,
            .nonce = fmt::format("{:016x}", ++nonces_),
            .replication_id = sim_.master(index).replication_id};
    }
    std::string record() const
    {
        core::member_record all{name_, {}};
        for (const master& each : sim_.options().masters)
        {
            all.names.push_back(each.name());
        }
        return core::to_text(all);
    }
    /// Returns the marker that a master has; empty for none.
    std::optional<core::marker> present(std::size_t index) const
    {
        const std::optional<std::string> text = sim_.master(index).value(guard_key);
        return text ? core::parse_marker(*text) : std::nullopt;
    }
    /// Returns whether the marker of a master has this state, and is that of its present incarnation.
    bool is(std::size_t index, core::marker_state state) const
    {
        const std::optional<core::marker> found = present(index);
        return found && found->state == state && found->replication_id == sim_.master(index).replication_id;
    }
    /// Sets the counter of a resource's slot.
    void put_counter(std::size_t index, std::string_view resource, std::uint64_t counter)
    {
        sim_.master(index).set_field(fence_key, slot_of(resource), std::to_string(counter));
    }
    std::uint64_t counter(std::size_t index, std::string_view resource) const
    {
        return std::stoull(sim_.master(index).field(fence_key, slot_of(resource)).value_or("0"));
    }

    config options() const
    {
        config with = sim_.options();
        with.guarded.emplace();
        return with;
    }

  private:
    static std::string slot_of(std::string_view resource)
    {
        return std::to_string(core::stable_hash(std::string{"lock:"}.append(resource)) % 1024);
    }

    simulation& sim_;
    std::string name_;
    mutable std::uint64_t nonces_ = 0;
};

/// Armed masters, and clients that acquire one resource of theirs.
struct guarded_simulation
{
    explicit guarded_simulation(std::size_t masters) : sim{masters}, group{sim} { group.arm_all(); }

    outcome_ptr acquire(lock_manager& by, const acquire_options& with = {.ttl = 5s, .wait = 0ms})
    {
        outcome_ptr got = sim.acquire(by, "stock", with);
        REQUIRE(sim.finish(got));
        return got;
    }
    /// Returns the time that a master shows, in microseconds.
    std::uint64_t shown(std::size_t index)
    {
        return static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::microseconds>(sim.master(index).now().time_since_epoch())
                .count());
    }

    /// Gives so many masters counters of "stock" that differ, ahead of every hint, so that all but the last have to be raised.
    /// Returns the largest.
    std::uint64_t put_counters_apart(std::size_t masters)
    {
        const std::uint64_t ahead = shown(0) + 1'000'000'000;
        for (std::size_t index = 0; index < masters; ++index)
        {
            group.put_counter(index, "stock", ahead + 2 * index);
        }
        return ahead + 2 * (masters - 1);
    }

    simulation sim;
    guarded_group group;
};

} // namespace redlock::test
