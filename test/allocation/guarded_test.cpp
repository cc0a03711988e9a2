// SPDX-License-Identifier: BSL-1.0
// Failed allocations in guarded mode: runs of provisioning, and clients that arm a master.
#include "allocation/fallible_run.hpp"
#include "simulation/guarded_group.hpp"
#include "simulation/provision_run.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>

namespace redlock::test
{

namespace
{

/// Runs provisioning until it succeeds: a run whose memory was short may fail, and the next one continues it.
void provision(simulation& sim, const config& with, const provision_options& options)
{
    bool succeeded = false;
    for (int runs = 0; !succeeded; ++runs)
    {
        std::shared_ptr<provision_run> one;
        call([&] { one = begin_provision(sim, with, options); });
        expect(run(sim, [&] { return one->done; }), "a run has lost its handler");
        succeeded = !one->error;
        expect(succeeded || (has_failed() && runs == 0), "a run has failed");
    }
    expect(sim.environment().streams() == 0, "a connection is left");
    expect(sim.environment().alarms() == 0, "an alarm is left");
}

config listing(const simulation& sim, std::initializer_list<std::size_t> masters)
{
    config with = sim.options();
    with.masters.clear();
    for (const std::size_t each : masters)
    {
        with.masters.push_back(sim.options().masters[each]);
    }
    return with;
}

/// Runs end by themselves, so what happens in them either ends the program or is coped with.
void check_background(const endings& seen)
{
    CHECK(seen.terminated > 0);
    CHECK(seen.crashed == 0);
}

} // namespace

TEST_CASE("failed allocations while a group is provisioned", "[allocation][guarded]")
{
    check_background(fail_each_allocation(
        []
        {
            simulation sim{3};
            provision(sim, sim.options(), {.max_ttl = group_ttl, .fresh = true});
            expect(armed_masters(sim) == 3, "a master isn't armed");
        }));
}

TEST_CASE("failed allocations while a group is changed", "[allocation][guarded]")
{
    check_background(fail_each_allocation(
        []
        {
            simulation sim{4};
            {
                const auto made =
                    begin_provision(sim, listing(sim, {0, 1, 2}), {.max_ttl = group_ttl, .fresh = true});
                sim.run_until([&] { return made->done; }, 10min);
            }
            provision(
                sim, listing(sim, {1, 2, 3, 0}),
                {.action = provision_action::change_group, .max_ttl = group_ttl, .leaving = 1});
            expect(
                armed_masters(sim) == 3 && !is_armed(sim.master(0)),
                "another group than the new one is armed");
        }));
}

TEST_CASE("failed allocations while clients arm a master that was emptied", "[allocation][guarded]")
{
    const endings seen = fail_each_allocation(
        []
        {
            guarded_simulation with{3};
            std::optional<lock_manager> locks{with.sim.make_connected_manager(with.group.options())};
            with.sim.master(0).restart("another run", false);
            expect(
                run(with.sim, [&] { return with.group.is(0, core::marker_state::armed); }),
                "a master isn't armed again");
            outcome_ptr won;
            call([&] { won = with.sim.acquire(*locks, "stock", {.ttl = 5s}); });
            finish(with.sim, won);
            expect(won->lease.valid(), "a free resource wasn't acquired");
            expect(won->lease.fencing_token().has_value(), "a lease has no token");
            outcome_ptr shut;
            call([&] { shut = with.sim.shut_down(*locks); });
            finish(with.sim, shut);
            expect(with.sim.environment().streams() == 0, "a connection is left");
        });
    CHECK(seen.reported > 0);
    CHECK(seen.terminated > 0);
    CHECK(seen.crashed == 0);
}

} // namespace redlock::test
