// SPDX-License-Identifier: BSL-1.0
// Tests of guarded mode: what an earlier quarantine, count or connection has shown counts for no later one.
#include "guarded_group.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

constexpr clock::duration whole_quarantine = guarded_group::max_ttl + 5s;
constexpr const char* forbidden = "-NOPERM this user has no permissions to run the 'eval' command\r\n";

struct repeating_simulation
{
    explicit repeating_simulation(std::size_t masters = 3) : sim{masters}, group{sim} { group.arm_all(); }

    void restart(std::size_t index, const std::string& run, bool keeps_keys)
    {
        sim.master(index).restart(run, keeps_keys);
        REQUIRE(comes_into(index, core::marker_state::quarantine));
    }
    bool comes_into(std::size_t index, core::marker_state state)
    {
        return sim.run_until([&] { return group.is(index, state); }, whole_quarantine);
    }
    bool is_armed(std::size_t index) const { return group.is(index, core::marker_state::armed); }
    config observed()
    {
        config with = group.options();
        with.observer.on_event = [this](const event& what)
        {
            quarantines += std::holds_alternative<master_quarantined>(what) ? 1U : 0U;
            const auto* const one = std::get_if<master_warning>(&what);
            if (one != nullptr && one->what == risk::arming_refused)
            {
                warnings.push_back(*one);
            }
        };
        return with;
    }

    simulation sim;
    guarded_group group;
    std::vector<master_warning> warnings;
    std::size_t quarantines = 0;
};

} // namespace

TEST_CASE("arming: counters that were read in vain don't add up to a quorum", "[guarded][scenario-79]")
{
    repeating_simulation test;
    constexpr std::uint64_t largest = 9'000'000'000'000'000; // Above every clock.
    test.group.put_counter(2, "stock", largest);
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.restart(0, "another run of 0", true);
    test.restart(1, "another run of 1", true);
    for (const std::size_t index : {1U, 2U})
    {
        test.sim.master(index).habits["largest counter"] = forbidden;
    }
    test.sim.run_for(3 * whole_quarantine);
    CHECK(test.sim.master(0).count("largest counter") > 5);
    CHECK(!test.is_armed(0));
    for (const std::size_t index : {1U, 2U})
    {
        test.sim.master(index).habits.clear();
    }
    REQUIRE(test.comes_into(0, core::marker_state::armed));
    CHECK(std::stoull(test.sim.master(0).field(fence_key, "floor").value()) >= largest);
}

TEST_CASE(
    "arming: a master that may have lost its counters since they were asked for has not kept them",
    "[guarded]")
{
    repeating_simulation test{5}; // Three masters have to show theirs.
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(1).habits["largest counter"] = forbidden;
    test.sim.master(2).habits["largest counter"] = forbidden;
    test.restart(0, "another run of 0", false);
    test.sim.run_for(whole_quarantine);
    CHECK(test.sim.master(1).count("largest counter") > 0);
    REQUIRE(!test.is_armed(0));
    test.sim.master(1).habits.clear();
    test.restart(1, "another run of 1", true); // Its last writes may be lost.
    const std::size_t asked = test.sim.master(1).count("largest counter");
    test.sim.run_for(3 * whole_quarantine);
    CHECK(test.sim.master(1).count("largest counter") > asked);
    CHECK(!test.is_armed(0));
    CHECK(!test.is_armed(1));
}

TEST_CASE("arming: a refusal is reported again for each connection, but not after its end", "[guarded]")
{
    repeating_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.observed());
    test.sim.master(1).habits["largest counter"] = forbidden;
    test.restart(0, "another run", true);
    test.sim.run_for(whole_quarantine);
    REQUIRE(test.warnings.size() == 1);
    CHECK(test.warnings[0].index == 0);
    test.sim.master(0).break_connections();
    test.sim.run_for(whole_quarantine);
    REQUIRE(test.warnings.size() == 2);
    CHECK(test.warnings[1].detail == test.warnings[0].detail);
    // It refuses nothing any more, but it doesn't answer either.
    test.sim.master(1).habits.clear();
    test.sim.master(1).hang();
    test.sim.master(0).break_connections();
    test.sim.run_for(whole_quarantine);
    CHECK(test.warnings.size() == 2);
    CHECK(!test.is_armed(0));
    test.sim.master(1).resume();
    CHECK(test.comes_into(0, core::marker_state::armed));
}

TEST_CASE("arming: a quarantine goes on while the connection to its master breaks", "[guarded][scenario-109]")
{
    repeating_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.observed());
    const clock::time_point lost = test.sim.now();
    test.restart(0, "another run", true);
    for (clock::duration after = 1s; after < guarded_group::max_ttl; after += 1s)
    {
        test.sim.run_for(1s);
        test.sim.master(0).break_connections();
    }
    // Promise G6: 1.01 x max_ttl and 3 s.
    CHECK(test.sim.run_until(
        [&] { return test.is_armed(0); }, lost + guarded_group::max_ttl * 101 / 100 + 3s - test.sim.now()));
    test.sim.run_for(2s);
    CHECK(test.quarantines == 1);
}

TEST_CASE("arming: a quarantine that is put back with its machine begins anew", "[guarded][scenario-63]")
{
    repeating_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.restart(0, "another run", true);
    const clock::time_point began = test.sim.now();
    REQUIRE(test.comes_into(0, core::marker_state::armed));
    test.sim.run_for(2s);
    test.sim.master(0).put_back(test.sim.now() - began - 1s);
    const clock::time_point lost = test.sim.now();
    REQUIRE(test.group.is(0, core::marker_state::quarantine));
    REQUIRE(test.comes_into(0, core::marker_state::armed));
    CHECK(test.sim.now() - lost >= guarded_group::max_ttl);
}

} // namespace redlock::test
