// SPDX-License-Identifier: BSL-1.0
// Tests of guarded mode: faults of others while a master is in quarantine for its clock. It has kept its counters.
#include "guarded_group.hpp"

#include <catch2/generators/catch_generators.hpp>

#include <string>

namespace redlock::test
{

namespace
{

/// The first master is in quarantine for its clock.
struct quarantined_for_clock
{
    guarded_simulation test;
    simulation& sim{test.sim};
    lock_manager locks{sim.make_connected_manager(test.group.options())};

    explicit quarantined_for_clock(std::size_t masters) : test{masters}
    {
        sim.run_for(3s);
        sim.master(0).clock_of_its_own().jump(sim.now(), 30s);
        REQUIRE(sim.run_until([&] { return test.group.is(0, core::marker_state::quarantine); }, 5s));
        REQUIRE(test.group.present(0)->why == core::incarnation_end::clock);
        sim.run_for(2s);
    }

    bool armed(std::size_t index) const { return test.group.is(index, core::marker_state::armed); }
};

} // namespace

TEST_CASE(
    "a minority that restarts beside a quarantine for a clock is armed with it", "[guarded][scenario-4]")
{
    const std::size_t masters = GENERATE(3U, 4U, 5U, 6U, 7U);
    const bool comes_back_empty = GENERATE(false, true);
    CAPTURE(masters, comes_back_empty);
    quarantined_for_clock after{masters};
    const std::size_t minority = (masters - 1) / 2;
    for (std::size_t index = 1; index <= minority; ++index)
    {
        after.sim.master(index).restart("restarted " + std::to_string(index), !comes_back_empty);
    }
    after.sim.run_for(3 * guarded_group::max_ttl);
    for (std::size_t index = 0; index < masters; ++index)
    {
        CHECK(after.armed(index));
    }
}

TEST_CASE("a power cut in a quarantine for a clock leaves a quorum to be armed", "[guarded][scenario-65]")
{
    const std::size_t masters = GENERATE(3U, 4U, 5U, 6U, 7U);
    CAPTURE(masters);
    quarantined_for_clock after{masters};
    for (std::size_t index = 0; index < masters; ++index)
    {
        const bool comes_back_empty = index == masters - 1;
        after.sim.master(index).restart("cut " + std::to_string(index), !comes_back_empty);
    }
    after.sim.run_for(3 * guarded_group::max_ttl);
    CHECK(!after.test.acquire(after.locks)->error);
}

TEST_CASE("a quarantine for a clock answers for its counters only while they exist", "[guarded][scenario-4]")
{
    quarantined_for_clock after{3};
    const std::uint64_t restored = after.test.group.counter(1, "stock");
    after.sim.master(0).remove_hash(fence_key);
    after.sim.master(1).restart("restarted", true);
    after.sim.run_for(6 * guarded_group::max_ttl);
    CHECK(after.test.group.present(0)->why == core::incarnation_end::emptied);
    CHECK(!after.armed(0));
    CHECK(!after.armed(1));
    CHECK(after.test.group.counter(1, "stock") == restored);
}

TEST_CASE("a master in quarantine for its clock and its copy answer once", "[guarded][scenario-48]")
{
    quarantined_for_clock after{5};
    after.sim.master(1).replication_id = after.sim.master(0).replication_id;
    after.sim.master(1).set(guard_key, after.sim.master(0).value(guard_key).value());
    for (const std::size_t index : {3U, 4U})
    {
        after.sim.master(index).restart("restarted " + std::to_string(index), true);
    }
    after.sim.run_for(6 * guarded_group::max_ttl);
    CHECK(!after.armed(3));
    CHECK(!after.armed(4));
}

} // namespace redlock::test
