// SPDX-License-Identifier: BSL-1.0
// Provisioning in virtual time: the wait, a failure and a cancellation at each step, and several runs at once.
#include "provision_run.hpp"

#include "net/arming_scripts.hpp"
#include "net/provision_scripts.hpp"
#include "support/script_commands.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace redlock::test
{

TEST_CASE(
    "provisioning: every master is in quarantine for max_ttl and the drift before any is armed", "[guarded]")
{
    simulation sim{3};
    sim.master(2).network.back = 30ms; // Its quarantine is the last one that is known of.
    const auto run = end_provision(sim, begin_provision(sim));
    INFO(run->report);
    REQUIRE_FALSE(run->error);
    check_group(sim);
    const clock::duration wait = provisioning_wait(group_ttl, sim.options().drift_factor);
    CHECK(wait >= group_ttl * 1.01 + 2ms);
    for (const auto& begun : sim.masters())
    {
        for (const auto& armed : sim.masters())
        {
            CHECK(armed->last("arm").at - begun->last("quarantine").at >= wait);
        }
    }
    CHECK(sim.master(0).last("arm").at - sim.master(2).last("quarantine").at >= wait + 30ms);
}

TEST_CASE("provisioning: masters that are known to be empty are armed at once", "[guarded]")
{
    simulation sim{3};
    const clock::time_point started = sim.now();
    const auto run =
        end_provision(sim, begin_provision(sim, {.max_ttl = std::chrono::hours{24}, .fresh = true}));
    INFO(run->report);
    REQUIRE_FALSE(run->error);
    CHECK(sim.now() - started < 1s);
    check_group(sim);
    for (const auto& each : sim.masters())
    {
        each->flush_all();
    }
    const auto other = end_provision(sim, begin_provision(sim, {.max_ttl = 1h, .fresh = true}));
    REQUIRE_FALSE(other->error);
    CHECK(other->report.group != run->report.group);
}

TEST_CASE(
    "provisioning: a key that appears on an empty master prevents that it is armed without the wait",
    "[guarded]")
{
    simulation sim{3};
    const auto run = begin_provision(sim, {.max_ttl = group_ttl, .fresh = true});
    REQUIRE(sim.run_until([&] { return sim.master(1).count("quarantine") == 1; }, 1min));
    sim.master(1).set("lock:stock", "owner");
    end_provision(sim, run);
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.outcome == provision_outcome::unfinished);
    CHECK(run->report.masters[1].found == provision_finding::not_empty);
    CHECK(armed_masters(sim) == 0);
    CHECK_FALSE(end_provision(sim, begin_provision(sim))->error);
    check_group(sim);
}

TEST_CASE(
    "provisioning: nothing is armed if a master was restarted during the wait, and another run is",
    "[guarded]")
{
    simulation sim{3};
    const bool keeps_keys = GENERATE(true, false);
    const auto run = begin_provision(sim);
    REQUIRE(sim.run_until([&] { return sim.master(2).count("quarantine") == 1; }, 1min));
    sim.run_for(group_ttl / 2);
    sim.master(1).restart("another run", keeps_keys);
    end_provision(sim, run);
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.outcome == provision_outcome::unfinished);
    CHECK(run->report.masters[0].found == provision_finding::unfinished);
    CHECK(run->report.masters[1].found == provision_finding::changed);
    CHECK(
        run->report.masters[1].detail ==
        (keeps_keys ? "it was restarted, or a replica was attached to it" : "it has no marker"));
    CHECK(armed_masters(sim) == 0);
    const clock::time_point again = sim.now();
    CHECK_FALSE(end_provision(sim, begin_provision(sim))->error);
    CHECK(sim.now() - again >= group_ttl);
    check_group(sim);
    CHECK(its_marker(sim.master(0))->group == run->report.group);
}

TEST_CASE("provisioning: a failure at any step is reported, and another run continues", "[guarded]")
{
    struct failing_step
    {
        const char* command;
        std::size_t earlier; // Commands of this kind that succeed.
    };
    const auto [what, earlier] = GENERATE(
        failing_step{"look", 0}, failing_step{"trial", 0}, failing_step{"quarantine", 0},
        failing_step{"look", 1}, failing_step{"arm", 0});
    const auto failing = GENERATE(
        scripted_answer{.bytes = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"},
        scripted_answer{.bytes = ":1\r\n", .nonsense = true}, scripted_answer{.closes = true},
        scripted_answer{.bytes = "-ERR it ran\r\n", .runs = true}, scripted_answer{});
    const std::size_t where = GENERATE(0U, 2U);
    CAPTURE(what, earlier, where, failing.bytes, failing.runs, failing.closes);
    const bool is_counter = failing.nonsense && std::string_view{what} == "arm";
    if (is_counter)
    {
        return; // A number is what it answers.
    }
    simulation sim{3};
    const auto run = begin_provision(sim);
    fail_step(sim, where, what, earlier, failing);
    end_provision(sim, run);
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.masters[where].found == provision_finding::unknown);
    CHECK(run->report.masters[where].reason);
    CHECK(
        (run->report.outcome == provision_outcome::unchanged) ==
        ((std::string_view{what} == "look" && earlier == 0) || std::string_view{what} == "trial"));
    const auto next = end_provision(sim, begin_provision(sim));
    INFO(next->report);
    REQUIRE_FALSE(next->error);
    check_group(sim);
    if (run->report.outcome != provision_outcome::unchanged && sim.master(0).count("quarantine") == 1)
    {
        CHECK(its_marker(sim.master(0))->group == run->report.group);
    }
}

TEST_CASE("provisioning: a master whose policy is changed before it is armed is reported", "[guarded]")
{
    simulation sim{3};
    const auto run = begin_provision(sim);
    fail_step(sim, 1, "arm", 0, {.bytes = ":-4\r\n"});
    end_provision(sim, run);
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.masters[1].found == provision_finding::evicts);
    CHECK(run->report.masters[1].detail == "maxmemory-policy isn't noeviction");
    CHECK_FALSE(end_provision(sim, begin_provision(sim))->error);
    check_group(sim);
}

TEST_CASE("provisioning: a master that would refuse a change is named before any is changed", "[guarded]")
{
    struct refusal
    {
        std::string bytes;
        error_code reason;
        std::string words; // In a script.
    };
    const auto is = GENERATE(
        refusal{
            "-ERR unknown command, with args beginning with: \r\n", master_errc::command_failed,
            "ERR Unknown Redis command called from script"},
        refusal{
            "-NOPERM this user has no permissions\r\n", master_errc::no_permission,
            "ERR The user executing the script can't run this command or subcommand"},
        refusal{
            "-OOM command not allowed when used memory > 'maxmemory'.\r\n", master_errc::out_of_memory,
            "OOM command not allowed when used memory > 'maxmemory'."});
    const std::string refused = GENERATE("SET", "HSET", "HMGET", "SELECT", "DEL");
    CAPTURE(is.bytes, refused);
    simulation sim{3};
    sim.master(2).habits[refused] = is.bytes;
    const auto run = end_provision(sim, begin_provision(sim));
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.outcome == provision_outcome::unchanged);
    CHECK(run->report.masters[2].reason == is.reason);
    CHECK(run->report.masters[2].detail == fmt::format("{} ({})", is.words, refused));
    for (std::size_t other : {0U, 1U})
    {
        CHECK(run->report.masters[other].found == provision_finding::unmarked);
        CHECK(sim.master(other).count("quarantine") == 0);
    }
    sim.master(2).habits.clear();
    CHECK_FALSE(end_provision(sim, begin_provision(sim))->error);
    check_group(sim);
}

TEST_CASE("provisioning: no master is changed if one refuses any command of the scripts", "[guarded]")
{
    std::set<std::string> commands = commands_of(net::provision_quarantine_script());
    commands.merge(commands_of(net::arm_script.text));
    const std::string refused = GENERATE_COPY(from_range(commands.begin(), commands.end()));
    CAPTURE(refused);
    simulation sim{3};
    sim.master(1).habits[refused] = "-NOPERM this user has no permissions\r\n";
    const auto run = end_provision(sim, begin_provision(sim));
    INFO(run->report);
    CHECK(run->error == errc::provisioning_failed);
    CHECK(run->report.outcome == provision_outcome::unchanged);
    CHECK(run->report.masters[1].reason);
    CHECK(sim.count("quarantine") == 0);
}

TEST_CASE("provisioning: trying the commands changes nothing", "[guarded]")
{
    constexpr const char* groups_before = "lock::redlock-guard-before";
    simulation sim{1};
    sim.master(0).set(groups_before, "of a stranger");
    sim.master(0).set_field(fence_key, "floor", "7");
    sim.master(0).habits["quarantine"] = "-ERR not today\r\n";
    end_provision(sim, begin_provision(sim));
    CHECK(sim.master(0).count("trial") == 1);
    CHECK(sim.master(0).value(groups_before) == "of a stranger");
    CHECK(floor_at(sim.master(0)) == 7);
    CHECK(sim.master(0).key_count() == 2);
}

TEST_CASE("provisioning: a group in use needs nothing but a look", "[guarded]")
{
    simulation sim{3};
    REQUIRE_FALSE(end_provision(sim, begin_provision(sim))->error);
    sim.master(1).habits["SET"] = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    const auto run = end_provision(sim, begin_provision(sim));
    INFO(run->report);
    CHECK_FALSE(run->error);
    CHECK(run->report.outcome == provision_outcome::complete);
    CHECK(sim.master(1).count("trial") == 1);
}

TEST_CASE("provisioning: a cancellation at any moment is obeyed, and another run continues", "[guarded]")
{
    const auto type = asio::cancellation_type::terminal;
    bool cancelled = true;
    for (std::size_t steps = 0; cancelled; ++steps)
    {
        CAPTURE(steps);
        simulation sim{3};
        const auto run = begin_provision(sim);
        for (std::size_t step = 0; step < steps && !run->done; ++step)
        {
            sim.step();
        }
        cancelled = !run->done;
        if (cancelled)
        {
            const clock::time_point then = sim.now();
            run->cancel.emit(type);
            end_provision(sim, run);
            const bool finished_first = !run->error && armed_masters(sim) == 3;
            CHECK((run->error == asio::error::operation_aborted || finished_first));
            CHECK(sim.now() - then < 100ms);
        }
        const auto next = end_provision(sim, begin_provision(sim));
        INFO(next->report);
        REQUIRE_FALSE(next->error);
        check_group(sim);
    }
}

TEST_CASE("provisioning: a run that continues another one adds the masters' clocks", "[guarded]")
{
    simulation sim{3};
    const auto stopped = begin_provision(sim);
    REQUIRE(sim.run_until([&] { return sim.master(2).count("quarantine") == 1; }, 1min));
    const clock::time_point begun = sim.now();
    const bool is_armed_first = GENERATE(false, true);
    CAPTURE(is_armed_first);
    std::uint64_t token = 0;
    if (is_armed_first)
    {
        // The group is used. Then all masters fall back to their quarantine.
        REQUIRE_FALSE(end_provision(sim, stopped)->error);
        config with = sim.options();
        with.guarded.emplace();
        lock_manager locks = sim.make_connected_manager(with);
        const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 100ms, .wait = 0ms});
        REQUIRE(sim.finish(got));
        REQUIRE_FALSE(got->error);
        token = got->lease.fencing_token().value();
        for (const auto& each : sim.masters())
        {
            each->lose_writes_of(sim.now() - begun);
        }
    }
    else
    {
        stopped->cancel.emit(asio::cancellation_type::terminal);
        end_provision(sim, stopped);
        sim.run_until_idle();
    }
    const auto run = end_provision(sim, begin_provision(sim));
    INFO(run->report);
    REQUIRE_FALSE(run->error);
    CHECK(run->report.group == stopped->report.group);
    const auto shown = std::chrono::duration_cast<std::chrono::microseconds>(
        sim.master(1).now().time_since_epoch() + 2h - 1s);
    CHECK(run->report.floor >= static_cast<std::uint64_t>(shown.count()));
    CHECK(run->report.floor > token);
}

TEST_CASE("provisioning: runs at once make one group, however their commands interleave", "[guarded]")
{
    const auto seed = GENERATE(range(1, 200));
    CAPTURE(seed);
    simulation sim{5, static_cast<std::uint64_t>(seed)};
    const auto below = [&sim](std::size_t bound)
    { return std::chrono::microseconds{sim.world().random_below(bound)}; };
    const clock::time_point started = sim.now();
    std::vector<std::shared_ptr<provision_run>> runs;
    const auto all_done = [&runs]
    { return std::all_of(runs.begin(), runs.end(), [](const auto& each) { return each->done; }); };
    while (runs.size() < 3 || !all_done())
    {
        REQUIRE(sim.now() < started + 1min);
        if (runs.size() < 3 && sim.world().random_below(10) == 0)
        {
            redlock::config with = sim.options();
            std::rotate(
                with.masters.begin(),
                with.masters.begin() + static_cast<std::ptrdiff_t>(sim.world().random_below(5)),
                with.masters.end());
            runs.push_back(begin_provision(sim, with, {.max_ttl = group_ttl, .fresh = seed % 2 == 0}));
        }
        // Each command has another latency, so that those of different runs arrive in any order.
        for (const auto& each : sim.masters())
        {
            each->network.there = below(2000);
            each->network.back = below(2000);
        }
        sim.run_for(below(200));
    }
    for (const auto& each : runs)
    {
        INFO(each->report);
        CHECK_FALSE(each->error);
        CHECK(each->report.group == runs.front()->report.group);
        CHECK(each->report.floor <= largest_floor(sim)); // A run reports what the masters have.
    }
    check_group(sim);
}

TEST_CASE(
    "provisioning: a quarantine that a master begins after its run has ended disturbs no other run",
    "[guarded]")
{
    simulation sim{3};
    const auto late = begin_provision(sim);
    REQUIRE(sim.run_until([&] { return sim.master(0).count("quarantine") == 1; }, 1min));
    sim.master(2).hang();
    end_provision(sim, late);
    CHECK(late->error == errc::provisioning_failed);
    CHECK(late->report.masters[2].found == provision_finding::unknown);
    const auto next = begin_provision(sim);
    sim.run_for(std::chrono::milliseconds{GENERATE(0, 1, 100)});
    sim.master(2).resume();
    end_provision(sim, next);
    INFO(next->report);
    CHECK_FALSE(next->error);
    check_group(sim);
}

TEST_CASE("provisioning: an empty master that joins later isn't armed by another run", "[guarded]")
{
    simulation sim{3};
    REQUIRE_FALSE(end_provision(sim, begin_provision(sim))->error);
    sim.master(1).restart("another run", false);
    const auto again = end_provision(sim, begin_provision(sim));
    INFO(again->report);
    CHECK(again->error == errc::provisioning_failed);
    CHECK(again->report.outcome == provision_outcome::unchanged);
    CHECK(again->report.masters[1].found == provision_finding::in_service);
    CHECK(armed_masters(sim) == 2);
}

TEST_CASE("provisioning: its execution context may be destroyed at any moment", "[guarded]")
{
    const std::size_t steps = GENERATE(0U, 1U, 10U, 50U, 70U, 90U, 100U);
    simulation sim{3};
    const auto run = begin_provision(sim);
    for (std::size_t step = 0; step < steps; ++step)
    {
        sim.step();
    }
    sim.destroy_context();
    CHECK_FALSE(run->done);
}

TEST_CASE("provisioning: the group notices a promotion, which keeps the run id", "[guarded][scenario-70]")
{
    simulation sim{3};
    for (std::size_t index = 0; index < 3; ++index)
    {
        sim.master(index).run_id = std::string(40, static_cast<char>('a' + index)); // As servers show it.
    }
    const auto run = end_provision(sim, begin_provision(sim));
    REQUIRE_FALSE(run->error);
    config with = sim.options();
    with.guarded.emplace();
    lock_manager locks = sim.make_connected_manager(with);
    const acquire_options once{.ttl = 100ms, .wait = 0ms};
    const outcome_ptr first = sim.acquire(locks, "stock", once);
    REQUIRE(sim.finish(first));
    REQUIRE(!first->error);
    sim.run_until_idle();
    CHECK(sim.master(0).value("lock:stock"));
    sim.run_for(200ms);
    sim.master(0).lose_writes_of(0ms);
    const outcome_ptr next = sim.acquire(locks, "stock", once);
    REQUIRE(sim.finish(next));
    CHECK(!next->error);
    CHECK(next->report.masters()[0].vote == vote::failed);
    CHECK(next->report.masters()[0].reason == master_errc::incarnation_changed);
    CHECK(sim.run_until([&] { return !is_armed(sim.master(0)); }, 2s));
    CHECK(sim.run_until([&] { return is_armed(sim.master(0)); }, 3s));
}

} // namespace redlock::test
