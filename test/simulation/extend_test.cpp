// SPDX-License-Identifier: BSL-1.0
// Tests of extensions: which answers count, until when, and their effect on the lease.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace redlock::test
{

namespace
{

constexpr clock::duration drift_of_10s = 102ms;

outcome_ptr acquired(simulation& sim, lock_manager& locks, std::chrono::milliseconds ttl = 10s)
{
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = ttl});
    REQUIRE(sim.finish(got));
    REQUIRE(!got->error);
    sim.run_until_idle();
    return got;
}

} // namespace

TEST_CASE("an extension is valid from its own sending", "[scenario-31]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks);
    sim.run_for(4s);
    const clock::time_point sent = sim.now();
    const outcome_ptr extended = sim.extend(got->lease, 10s);
    const outcome_ptr behind = sim.extend(got->lease, 20s);
    REQUIRE(sim.finish(extended));
    CHECK(!extended->error);
    CHECK(got->lease.valid_until() == sent + 10s - drift_of_10s);
    CHECK(extended->report.validity == 10s - drift_of_10s - 200us);
    CHECK(sim.master(0).expiry("lock:stock") == whole_milliseconds(sent + 100us) + 10s);
    // The second waited for the first, and is counted from when it was sent.
    REQUIRE(sim.finish(behind));
    CHECK(!behind->error);
    CHECK(got->lease.valid_until() == sent + 200us + 20s - 202ms);
}

TEST_CASE("an extension never shortens", "[scenario-29]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks, 30s);
    const clock::time_point until = got->lease.valid_until();
    const auto expiry = sim.master(0).expiry("lock:stock");
    const outcome_ptr extended = sim.extend(got->lease, 5s);
    REQUIRE(sim.finish(extended));
    CHECK(!extended->error);
    CHECK(got->lease.valid_until() == until);
    CHECK(sim.master(0).expiry("lock:stock") == expiry);
}

TEST_CASE("a release waits for its masters as the ttl of the last extension allows")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks, 100ms);
    CHECK(got->report.node_timeout == 10ms);
    const outcome_ptr extended = sim.extend(got->lease, 10s);
    REQUIRE(sim.finish(extended));
    REQUIRE(!extended->error);
    // Slower than the first ttl would have allowed.
    for (const auto& each : sim.masters())
    {
        each->network.back = 20ms;
    }
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    CHECK(released->report.node_timeout == 50ms);
}

TEST_CASE("a late confirmation of an older extension changes nothing", "[scenario-29]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks, 10s);
    std::vector<std::shared_ptr<virtual_link>> old_ones;
    for (const auto& each : sim.masters())
    {
        old_ones.push_back(each->link().shared_from_this());
        old_ones.back()->hold();
    }
    const outcome_ptr older = sim.extend(got->lease, 5s);
    REQUIRE(sim.finish(older));
    CHECK(older->error == errc::no_quorum);
    for (const auto& each : old_ones)
    {
        each->break_off();
    }
    sim.run_for(1s);
    const clock::time_point sent = sim.now();
    const outcome_ptr newer = sim.extend(got->lease, 30s);
    REQUIRE(sim.finish(newer));
    REQUIRE(!newer->error);
    sim.run_until_idle();
    for (const auto& each : old_ones)
    {
        each->let_go();
    }
    sim.run_until_idle();
    CHECK(sim.master(0).count("extend") == 2);
    CHECK(sim.master(0).last("extend").words.back() == "5000");
    CHECK(sim.master(0).expiry("lock:stock") == whole_milliseconds(sent + 100us) + 30s);
    CHECK(got->lease.valid_until() == sent + 30s - 302ms);
}

TEST_CASE(
    "an extension counts exact matches only, and reports a loss when they can't be a quorum", "[scenario-26]")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks);
    const clock::time_point until = got->lease.valid_until();
    sim.master(0).remove("lock:stock");
    sim.master(1).set("lock:stock", "another");
    SECTION("three of five match")
    {
        const outcome_ptr extended = sim.extend(got->lease, 20s);
        REQUIRE(sim.finish(extended));
        CHECK(!extended->error);
        CHECK(extended->report.count(vote::granted) == 3);
    }
    SECTION("two match and one is silent: undecided")
    {
        sim.master(2).hang();
        const clock::time_point began = sim.now();
        const outcome_ptr extended = sim.extend(got->lease, 20s);
        REQUIRE(sim.finish(extended));
        CHECK(extended->error == errc::no_quorum);
        CHECK(extended->at - began == 50ms);
        CHECK(extended->report.count(vote::denied) == 2);
        CHECK(got->lease.valid_until() == until);
        CHECK(sim.count("SET") == 5);
    }
    SECTION("two match and three deny: lost at once")
    {
        sim.master(2).remove("lock:stock");
        const clock::time_point began = sim.now();
        const outcome_ptr extended = sim.extend(got->lease, 20s);
        REQUIRE(sim.finish(extended));
        CHECK(extended->error == errc::lease_lost);
        CHECK(extended->report.validity == 0ns);
        CHECK(extended->at - began == 200us);
        CHECK_FALSE(got->lease.valid());
        CHECK(got->lease);
        CHECK(sim.count("SET") == 5);
        // The lease stays lost, and its remaining keys can be released.
        const outcome_ptr again = sim.extend(got->lease, 20s);
        REQUIRE(sim.finish(again));
        CHECK(again->error == errc::lease_lost);
        const outcome_ptr released = sim.release(got->lease);
        REQUIRE(sim.finish(released));
        CHECK(!released->error);
        sim.run_until_idle();
        CHECK(sim.keys() == 1);
    }
}

TEST_CASE("without answers a lease is unchanged, and late answers count while it is valid", "[scenario-31]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks);
    const clock::time_point until = got->lease.valid_until();
    sim.master(1).hang();
    sim.master(2).link().hold_replies();
    const clock::time_point sent = sim.now();
    const outcome_ptr extended = sim.extend(got->lease, 20s);
    REQUIRE(sim.finish(extended));
    CHECK(extended->error == errc::no_quorum);
    CHECK(extended->at - sent == 50ms);
    CHECK(extended->report.count(vote::timed_out) == 2);
    CHECK(got->lease.valid_until() == until);
    SECTION("they come while it is valid")
    {
        sim.run_for(500ms);
        sim.master(2).link().let_go_of_replies();
        sim.run_until_idle();
        CHECK(got->lease.valid_until() == sent + 20s - 202ms);
    }
    SECTION("they come after its end")
    {
        sim.world().jump(got->lease.remaining());
        sim.master(2).link().let_go_of_replies();
        sim.run_until_idle();
        CHECK_FALSE(got->lease.valid());
        CHECK(got->lease.valid_until() == until);
    }
    SECTION("they come after its release")
    {
        const outcome_ptr released = sim.release(got->lease);
        sim.master(2).link().let_go_of_replies();
        REQUIRE(sim.finish(released));
        CHECK_FALSE(got->lease.valid());
    }
    SECTION("they come while the process sleeps after its end")
    {
        sim.master(2).link().let_go_of_replies();
        sim.world().jump(10s);
        sim.run_until_idle();
        CHECK_FALSE(got->lease.valid());
    }
    sim.master(1).resume();
    sim.run_until_idle();
}

TEST_CASE("a late denial ends a lease too")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks);
    sim.master(1).remove("lock:stock");
    sim.master(2).remove("lock:stock");
    sim.master(2).link().hold_replies();
    sim.master(0).hang();
    const outcome_ptr extended = sim.extend(got->lease, 20s);
    REQUIRE(sim.finish(extended));
    CHECK(extended->error == errc::no_quorum);
    CHECK(got->lease.valid());
    sim.master(2).link().let_go_of_replies();
    sim.run_until_idle();
    CHECK_FALSE(got->lease.valid());
    // A later match doesn't restore the lease.
    sim.master(0).resume();
    sim.run_until_idle();
    CHECK_FALSE(got->lease.valid());
    CHECK(sim.count("SET") == 3);
}

TEST_CASE("the answers to a cancelled extension still count")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks);
    const clock::time_point sent = sim.now();
    const outcome_ptr extended = sim.extend(got->lease, 20s);
    sim.step();
    extended->cancel.emit(asio::cancellation_type::terminal);
    REQUIRE(sim.finish(extended));
    CHECK(extended->error == asio::error::operation_aborted);
    CHECK(extended->at == sent);
    sim.run_until_idle();
    CHECK(got->lease.valid_until() == sent + 20s - 202ms);
}

TEST_CASE("a master that lost the key gets it again after a quorum has confirmed", "[scenario-27]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks);
    sim.master(2).remove("lock:stock");
    sim.master(0).network = {.there = 2ms, .back = 0ms};
    sim.master(1).network = {.there = 3ms, .back = 0ms};
    sim.run_for(100ms);
    const clock::time_point sent = sim.now();
    const outcome_ptr extended = sim.extend(got->lease, 20s);
    REQUIRE(sim.finish(extended));
    CHECK(!extended->error);
    CHECK(extended->at - sent == 3ms);
    CHECK(extended->report.count(vote::denied) == 1);
    sim.run_until_idle();
    REQUIRE(sim.master(2).count("SET") == 2);
    const received& again = sim.master(2).last("SET");
    CHECK(again.at == sent + 3ms + 100us);
    CHECK(
        again.words == command{"SET", "lock:stock", std::string{got->lease.owner_id()}, "NX", "PX", "20000"});
    CHECK(sim.keys() == 3);
    // Its validity is that of the extension, not of the later SET.
    CHECK(got->lease.valid_until() == sent + 20s - 202ms);
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a master that was away when a lease was acquired gets its key with the extension", "[scenario-27]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim.master(2).door = entrance::refuses;
    sim.master(2).break_connections();
    sim.run_until_idle();
    const outcome_ptr got = acquired(sim, locks);
    CHECK(got->report.masters()[2].vote == vote::unsent);
    sim.master(2).door = entrance::open;
    sim.run_for(1s);
    CHECK(sim.keys() == 2);
    const outcome_ptr extended = sim.extend(got->lease, 10s);
    REQUIRE(sim.finish(extended));
    sim.run_until_idle();
    CHECK(sim.master(2).value("lock:stock") == got->lease.owner_id());
    got->lease = {};
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a master that reports its loss of the key late gets it too", "[scenario-27]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks);
    sim.master(2).remove("lock:stock");
    sim.master(2).link().hold_replies();
    const outcome_ptr extended = sim.extend(got->lease, 20s);
    REQUIRE(sim.finish(extended));
    CHECK(!extended->error);
    sim.run_for(100ms);
    const bool released = GENERATE(false, true);
    outcome_ptr release;
    if (released)
    {
        release = sim.release(got->lease);
    }
    sim.master(2).link().let_go_of_replies();
    sim.run_until_idle();
    CHECK(sim.master(2).count("SET") == (released ? 1 : 2));
    CHECK(sim.keys() == (released ? 0 : 3));
}

TEST_CASE(
    "a master that reports its loss of the key after the lease has expired doesn't get it", "[scenario-27]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 200ms});
    REQUIRE(sim.finish(got));
    sim.run_until_idle();
    sim.master(2).remove("lock:stock");
    sim.master(2).link().hold_replies();
    const outcome_ptr extended = sim.extend(got->lease, 200ms);
    REQUIRE(sim.finish(extended));
    CHECK(!extended->error);
    sim.run_for(300ms);
    REQUIRE_FALSE(got->lease.valid());
    sim.master(2).link().let_go_of_replies();
    sim.run_until_idle();
    CHECK(sim.count("SET") == 3);
    CHECK(sim.keys() == 0);
}

TEST_CASE("no SET is sent after a release has begun or the lease has expired", "[scenario-27]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks);
    sim.master(2).remove("lock:stock");
    const outcome_ptr extended = sim.extend(got->lease, 20s);
    const clock::time_point answered = sim.now() + 200us;
    REQUIRE(sim.run_until([&] { return sim.now() == answered; }, 1s));
    SECTION("released")
    {
        const outcome_ptr released = sim.release(got->lease);
        // The answers to the extension have arrived, and are read after the call or before it.
        REQUIRE(sim.finish(released));
        REQUIRE(sim.finish(extended));
        CHECK(sim.run_until_no_keys());
    }
    SECTION("expired")
    {
        sim.world().jump(10s);
        REQUIRE(sim.finish(extended));
        CHECK(extended->error == errc::lease_lost);
        CHECK_FALSE(got->lease.valid());
        sim.run_until_idle();
        CHECK(sim.count("SET") == 3);
    }
}

TEST_CASE(
    "a connection that breaks with the SET of a rejoin in flight is killed like any other",
    "[scenario-18][scenario-27]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks);
    sim.master(2).remove("lock:stock");
    const std::shared_ptr<virtual_link> first = sim.master(2).link().shared_from_this();
    const outcome_ptr extended = sim.extend(got->lease, 20s);
    REQUIRE(sim.finish(extended));
    first->hold();
    sim.run_until_idle();
    first->break_off();
    sim.run_for(1s);
    CHECK(sim.master(2).count("CLIENT KILL") == 1);
    first->let_go();
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("no extension is sent after the release of its lease has begun")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks);
    const outcome_ptr first = sim.extend(got->lease, 20s);
    const outcome_ptr second = sim.extend(got->lease, 20s);
    sim.step();
    sim.step();
    const clock::time_point began = sim.now();
    const outcome_ptr released = sim.release(got->lease);
    sim.step();
    CHECK_FALSE(got->lease.valid());
    const outcome_ptr third = sim.extend(got->lease, 20s);
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    for (const outcome_ptr& each : {first, second, third})
    {
        REQUIRE(sim.finish(each));
        CHECK(each->error == errc::not_held);
        CHECK(each->at == began);
    }
    CHECK_FALSE(got->lease);
    CHECK(sim.run_until_no_keys());
    for (const auto& each : sim.masters())
    {
        CHECK(each->count("extend") <= 1);
        CHECK(each->last("release").at >= each->last("SET").at);
    }
    const outcome_ptr twice = sim.release(got->lease);
    REQUIRE(sim.finish(twice));
    CHECK(twice->error == errc::not_held);
}

TEST_CASE("an extension that is sent again in full asks for its own ttl", "[extend][scenario-49]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    sim.run_until_idle();
    for (const auto& each : sim.masters())
    {
        each->flush_scripts();
    }
    REQUIRE(sim.finish(sim.extend(got->lease, 20s)));
    sim.run_until_idle();
    for (const auto& each : sim.masters())
    {
        std::size_t in_full = 0;
        for (const received& sent : each->log())
        {
            if (sent.what == "extend")
            {
                in_full += sent.words.front() == "EVAL" ? 1 : 0;
                CHECK(sent.words.back() == "20000");
            }
        }
        CHECK(in_full == 1);
    }
}

} // namespace redlock::test
