// SPDX-License-Identifier: BSL-1.0
// The change of a group in virtual time, at masters that refuse commands, give no answer or are faster than the run.
#include "change_run.hpp"

#include "net/arming_scripts.hpp"
#include "net/provision_scripts.hpp"
#include "support/script_commands.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <memory>
#include <set>
#include <string>

namespace redlock::test
{

namespace
{

constexpr const char* too_few_replicas = "-NOREPLICAS Not enough good replicas to write.\r\n";

} // namespace

TEST_CASE("change: if a new master would refuse a command, no master is changed", "[guarded]")
{
    std::set<std::string> commands = commands_of(net::provision_quarantine_script());
    commands.merge(commands_of(net::arm_script.text));
    const std::string refused = GENERATE_COPY(from_range(commands.begin(), commands.end()));
    provision_options options = changing;
    options.takeover = GENERATE(false, true);
    CAPTURE(refused, options.takeover);
    simulation sim{4};
    const std::string old_group = make_old_group(sim);
    lock_manager locks = sim.make_connected_manager(guarded_by(sim, one_replaced.from));
    sim.master(3).habits[refused] = "-NOPERM this user has no permissions\r\n";
    const auto run = one_replaced.run(sim, options);
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.outcome == provision_outcome::unchanged);
    CHECK(run->report.masters[2].found == provision_finding::unknown);
    CHECK(run->report.masters[2].reason);
    CHECK(sim.count("quarantine") == 0);
    check_armed(sim, one_replaced.from, old_group);
    CHECK(token_by(sim, locks) > 0);
    sim.master(3).habits.clear();
    CHECK_FALSE(one_replaced.run(sim, options)->error);
}

TEST_CASE("change: an old master that refuses to be changed is left out until it doesn't", "[guarded]")
{
    const std::string refused = GENERATE("SET", "DEL", "SELECT");
    CAPTURE(refused);
    simulation sim{4};
    const std::string old_group = make_old_group(sim);
    sim.master(0).habits[refused] = too_few_replicas;
    const auto run = one_replaced.run(sim);
    INFO(run->report);
    CHECK(run->report.outcome == provision_outcome::incomplete);
    CHECK(run->report.masters[3].found == provision_finding::unknown);
    CHECK(run->report.masters[3].reason == master_errc::no_replicas);
    CHECK(run->report.masters[3].detail.ends_with("(" + refused + ")"));
    CHECK(run->report.advice.starts_with("run the same command again when "));
    CHECK(armed_masters(sim) == 4);
    CHECK(its_marker(sim.master(0))->group == old_group);
    CHECK(one_replaced.run(sim)->report.outcome == provision_outcome::incomplete);
    sim.master(0).habits.clear();
    const auto next = one_replaced.run(sim);
    INFO(next->report);
    CHECK_FALSE(next->error);
    CHECK(is_retired(sim.master(0)));
}

TEST_CASE("change: a master that leaves needs no counters", "[guarded]")
{
    simulation sim{4};
    make_old_group(sim);
    sim.master(0).habits["HSET"] = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    const auto run = one_replaced.run(sim);
    INFO(run->report);
    CHECK_FALSE(run->error);
    CHECK(is_retired(sim.master(0)));
}

TEST_CASE("change: a master that leaves may evict keys", "[guarded]")
{
    simulation sim{4};
    make_old_group(sim);
    sim.master(0).maxmemory_policy = "allkeys-lru";
    const auto run = one_replaced.run(sim);
    INFO(run->report);
    CHECK_FALSE(run->error);
    CHECK(run->report.outcome == provision_outcome::provisioned);
    CHECK(run->report.masters[3].found == provision_finding::left_group);
    CHECK(is_retired(sim.master(0)));
}

TEST_CASE("change: members that are armed may have no memory left when the last master is moved", "[guarded]")
{
    simulation sim{4};
    make_old_group(sim);
    sim.master(0).door = entrance::refuses;
    CHECK(one_replaced.run(sim)->report.outcome == provision_outcome::incomplete);
    sim.master(0).door = entrance::open;
    sim.master(1).habits["HSET"] = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    const auto run = one_replaced.run(sim);
    INFO(run->report);
    CHECK_FALSE(run->error);
    CHECK(is_retired(sim.master(0)));
}

TEST_CASE("change: if one master can't be armed, the change is incomplete, and clients arm it", "[guarded]")
{
    const auto failing = GENERATE(
        scripted_answer{.bytes = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"},
        scripted_answer{.closes = true});
    simulation sim{4};
    make_old_group(sim);
    const auto run = one_replaced.begin(sim);
    fail_step(sim, 3, "arm", 0, failing);
    end_provision(sim, run);
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.outcome == provision_outcome::incomplete);
    CHECK(run->report.masters[2].found == provision_finding::unknown);
    CHECK(run->report.advice == "clients arm each that isn't armed; then run the same command again");
    lock_manager locks = sim.make_connected_manager(guarded_by(sim, one_replaced.to));
    CHECK(sim.run_until([&] { return is_armed(sim.master(3)); }, 10s));
    CHECK_FALSE(one_replaced.run(sim)->error);
}

TEST_CASE("change: a run that was cancelled after the first master was armed says so", "[guarded]")
{
    simulation sim{4};
    make_old_group(sim);
    const auto run = one_replaced.begin(sim);
    sim.master(3).network.back = 50ms;
    REQUIRE(sim.run_until([&] { return sim.master(3).count("arm") == 1; }, 1min));
    sim.run_for(10ms);
    run->cancel.emit(asio::cancellation_type::terminal);
    end_provision(sim, run);
    INFO(run->report);
    CHECK(run->error == asio::error::operation_aborted);
}

TEST_CASE("change: a run that another one forestalls has changed no master", "[guarded]")
{
    simulation sim{4};
    make_old_group(sim);
    const auto run = one_replaced.begin(sim);
    REQUIRE(sim.run_until([&] { return sim.count("trial") == 4; }, 1min));
    // Another run with other options.
    for (std::size_t each : one_replaced.from)
    {
        core::marker its = its_marker(sim.master(each)).value();
        its.group = "00000000000000ff";
        its.state = core::marker_state::quarantine;
        sim.master(each).set(guard_key, core::to_text(its));
    }
    end_provision(sim, run);
    INFO(run->report);
    CHECK(sim.count("quarantine") == 1);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.outcome == provision_outcome::unchanged);
}

TEST_CASE("change: a master that gives no answer doesn't prolong the outage", "[guarded]")
{
    simulation sim{4};
    make_old_group(sim);
    sim.master(0).door = GENERATE(entrance::refuses, entrance::silent);
    sim.master(0).break_connections();
    provision_options options = changing;
    options.stopped = GENERATE(0U, 1U);
    const auto run = one_replaced.run(sim, options);
    INFO(run->report);
    CHECK(armed_masters(sim) == 4);
    const clock::duration outage = sim.master(1).last("arm").at - sim.master(1).last("quarantine").at;
    CHECK(outage < provisioning_wait(group_ttl, sim.options().drift_factor) + 50ms);
}

} // namespace redlock::test
