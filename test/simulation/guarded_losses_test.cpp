// SPDX-License-Identifier: BSL-1.0
// What guarded mode prevents: the sequences of broken_assumptions_test.cpp, in which a master loses the key of the first holder
// and could make a quorum for a second one. Here the second client tries all the time, from the loss until it succeeds.
#include "guarded_group.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

/// The time between two attempts of the rival.
constexpr clock::duration rivals_pause = 50ms;

/// Two clients of a guarded group of three masters. The first one holds the resource at the masters 0 and 1 only.
struct guarded_rivals
{
    guarded_rivals() : sim{3}, group{sim} { group.arm_all(); }

    sim_master& forgetful() { return sim.master(1); }

    config observed()
    {
        config with = group.options();
        with.observer.on_event = [this](const event& what) { events.push_back(what); };
        return with;
    }

    void connect()
    {
        first.emplace(sim.make_connected_manager(observed()));
        second.emplace(sim.make_connected_manager(group.options()));
    }

    /// Lets the clients put master 1 into quarantine once, so that its marker is one that the library has written.
    void arm_again()
    {
        forgetful().restart("an earlier run", true);
        REQUIRE(sim.run_until([&] { return group.is(1, core::marker_state::armed); }, 20s));
        sim.run_for(2s); // Until all have seen it.
        events.clear();
    }

    /// Acquires with a ttl that is nearly `max_ttl`, at the masters 0 and 1, and shows that the second one is kept out.
    void first_acquires()
    {
        sim.master(2).set("lock:stock", "another owner", 1h);
        held = sim.acquire(*first, "stock", {.ttl = guarded_group::max_ttl, .wait = 0ms});
        REQUIRE(sim.finish(held));
        REQUIRE(!held->error);
        sim.run_until_idle();
        sim.master(2).remove("lock:stock");
        REQUIRE(sim.master(0).value("lock:stock") == held->lease.owner_id());
        REQUIRE(forgetful().value("lock:stock") == held->lease.owner_id());
        CHECK(try_once()->error == errc::held_by_other);
        sim.run_until_idle();
        REQUIRE(held->lease.valid());
    }

    outcome_ptr try_once()
    {
        outcome_ptr got = sim.try_acquire(*second, "stock", {.ttl = 1s});
        REQUIRE(sim.finish(got));
        return got;
    }

    /// Lets the second client try until it succeeds, which has to be after the first lease has expired.
    void check_prevented()
    {
        REQUIRE(held->lease.valid());
        REQUIRE(!forgetful().value("lock:stock")); // Otherwise nothing is shown.
        std::size_t refused = 0;
        outcome_ptr got = try_once();
        for (; got->error && refused < 10'000; ++refused)
        {
            sim.run_for(rivals_pause);
            got = try_once();
        }
        REQUIRE(!got->error);
        CHECK(refused > 0);
        CHECK(!held->lease.valid());
        CHECK(got->lease.fencing_token() > held->lease.fencing_token());
    }

    /// Checks that the clients noticed the loss, and that the master votes again after its quarantine.
    void check_noticed(core::incarnation_end why)
    {
        REQUIRE(sim.run_until([&] { return group.is(1, core::marker_state::armed); }, 20s));
        sim.run_for(2s);
        std::size_t quarantines = 0;
        std::size_t armed = 0;
        for (const event& each : events)
        {
            if (const auto* const begun = std::get_if<master_quarantined>(&each))
            {
                ++quarantines;
                CHECK(begun->index == 1);
                CHECK(begun->why == why);
            }
            armed += std::holds_alternative<master_armed>(each) ? 1U : 0U;
        }
        CHECK(quarantines == 1);
        CHECK(armed == 1);
        REQUIRE(sim.run_until([&] { return !sim.master(0).value("lock:stock"); }, 20s));
        const outcome_ptr again = sim.acquire(*first, "stock", {.ttl = 1s, .wait = 0ms});
        REQUIRE(sim.finish(again));
        CHECK(!again->error);
        sim.run_until_idle();
        CHECK(forgetful().value("lock:stock") == again->lease.owner_id());
    }

    simulation sim;
    guarded_group group;
    std::vector<event> events{};
    std::optional<lock_manager> first{};
    std::optional<lock_manager> second{};
    outcome_ptr held{};
};

} // namespace

TEST_CASE("guarded: a master that restarts empty makes no second holder", "[guarded][scenario-6]")
{
    guarded_rivals both;
    both.forgetful().on_disk = persistence::none;
    both.connect();
    both.first_acquires();
    both.forgetful().restart("run after the restart");
    both.check_prevented();
    both.check_noticed(core::incarnation_end::emptied);
}

TEST_CASE(
    "guarded: the last two seconds of an append-only file are lost, and make no second holder",
    "[guarded][scenario-7]")
{
    guarded_rivals both;
    both.forgetful().on_disk = persistence::everysec;
    both.forgetful().unflushed = 2s;
    both.connect();
    both.sim.run_for(3s); // The marker is on disk.
    both.first_acquires();
    both.sim.run_for(1s);
    both.forgetful().restart("run after the power cut");
    REQUIRE(both.group.present(1)->state == core::marker_state::armed);
    both.check_prevented();
    both.check_noticed(core::incarnation_end::stale);
}

TEST_CASE("guarded: FLUSHALL makes no second holder", "[guarded][scenario-8]")
{
    guarded_rivals both;
    both.connect();
    both.first_acquires();
    both.forgetful().flush_all();
    both.check_prevented();
    both.check_noticed(core::incarnation_end::emptied);
}

TEST_CASE(
    "guarded: a master that is demoted and promoted on the same connection makes no second holder",
    "[guarded][scenario-9][scenario-70]")
{
    guarded_rivals both;
    both.connect();
    const bool has_marker_of_clients = GENERATE(false, true);
    CAPTURE(has_marker_of_clients);
    if (has_marker_of_clients)
    {
        both.arm_again();
    }
    const std::string run_id = both.forgetful().run_id;
    both.sim.run_for(3s);
    both.first_acquires();
    both.sim.run_for(500ms);
    // Its data are those of a second ago: the marker is among them, the lock isn't.
    both.forgetful().lose_writes_of(1s);
    REQUIRE(both.group.present(1)->state == core::marker_state::armed);
    REQUIRE(both.forgetful().run_id == run_id);
    both.check_prevented();
    both.check_noticed(core::incarnation_end::stale);
}

TEST_CASE("guarded: SWAPDB makes no second holder", "[guarded][scenario-10]")
{
    guarded_rivals both;
    both.connect();
    both.first_acquires();
    both.forgetful().swap_databases(0, 1);
    both.check_prevented();
    both.check_noticed(core::incarnation_end::emptied);
}

TEST_CASE("guarded: a second SWAPDB brings the lock back, but no vote", "[guarded][scenario-10]")
{
    guarded_rivals both;
    both.connect();
    both.first_acquires();
    both.forgetful().swap_databases(0, 1);
    REQUIRE(both.sim.run_until([&] { return both.group.is(1, core::marker_state::quarantine); }, 5s));
    both.forgetful().swap_databases(0, 1);
    CHECK(both.forgetful().value("lock:stock") == both.held->lease.owner_id());
    const outcome_ptr other = both.sim.acquire(*both.second, "other", {.ttl = 1s, .wait = 0ms});
    REQUIRE(both.sim.finish(other));
    CHECK(!other->error);
    CHECK(other->report.masters()[1].vote != vote::granted);
    both.forgetful().remove("lock:stock");
    both.check_prevented();
}

TEST_CASE(
    "guarded: a master that may evict locks isn't armed, so no lock is on it that could be evicted",
    "[guarded][scenario-11]")
{
    guarded_rivals both;
    both.connect();
    both.forgetful().maxmemory_policy = "volatile-lru";
    both.forgetful().restart("run with another policy", true);
    both.sim.run_for(3 * guarded_group::max_ttl);
    CHECK(both.group.is(1, core::marker_state::quarantine));
    both.held = both.sim.acquire(*both.first, "stock", {.ttl = guarded_group::max_ttl, .wait = 0ms});
    REQUIRE(both.sim.finish(both.held));
    REQUIRE(!both.held->error);
    both.sim.run_until_idle();
    CHECK(both.held->report.masters()[1].reason == master_errc::quarantined);
    // What can be evicted there is no lock.
    while (both.forgetful().evict(0))
    {
    }
    both.check_prevented();
}

TEST_CASE(
    "guarded: an asynchronous failover under one address makes no second holder", "[guarded][scenario-12]")
{
    guarded_rivals both;
    both.connect();
    both.sim.run_for(3s);
    both.first_acquires();
    both.sim.run_for(200ms);
    // The replica has the marker, and lacks the last half second.
    both.forgetful().promote_stale_replica("run of the replica", 500ms);
    REQUIRE(both.group.present(1)->state == core::marker_state::armed);
    both.check_prevented();
    both.check_noticed(core::incarnation_end::stale);
}

TEST_CASE(
    "guarded: the only master that had a token before its raise fails, and the next token is larger",
    "[guarded][scenario-67]")
{
    guarded_rivals both;
    // Ahead of every hint. Only master 0 has granted with this counter.
    const auto shown =
        std::chrono::duration_cast<std::chrono::microseconds>(both.sim.master(0).now().time_since_epoch());
    const std::uint64_t ahead = static_cast<std::uint64_t>(shown.count()) + 1'000'000'000;
    both.group.put_counter(0, "stock", ahead + 10);
    both.group.put_counter(1, "stock", ahead);
    both.group.put_counter(2, "stock", ahead);
    both.connect();
    both.sim.master(2).set("lock:stock", "another owner", 1h);
    const bool loses_raise = GENERATE(false, true);
    CAPTURE(loses_raise);
    if (loses_raise)
    {
        both.sim.master(1).answer("raise", {}); // It isn't executed.
    }
    both.held = both.sim.acquire(*both.first, "stock", {.ttl = 5s, .wait = 0ms});
    REQUIRE(
        both.sim.run_until([&] { return both.held->done || both.sim.master(1).count("raise") == 1; }, 1s));
    CHECK(!both.held->done); // Nothing has been issued before the answer.
    REQUIRE(both.sim.finish(both.held));
    CHECK(static_cast<bool>(both.held->error) == loses_raise);
    CHECK(both.held->report.fencing_token.has_value() != loses_raise);
    CHECK(both.group.counter(1, "stock") == (loses_raise ? ahead + 1 : ahead + 11));
    CHECK(both.group.counter(2, "stock") == ahead);
    // Master 0 is lost. The others have the token, or it wasn't issued.
    both.sim.master(0).door = entrance::refuses;
    both.sim.master(0).break_connections();
    both.held->lease = {};
    both.sim.master(2).remove("lock:stock");
    REQUIRE(both.sim.run_until([&] { return !both.sim.master(1).value("lock:stock"); }, 10s));
    const outcome_ptr next = both.try_once();
    REQUIRE(!next->error);
    CHECK(next->lease.fencing_token() > both.held->report.fencing_token.value_or(0));
}

} // namespace redlock::test
