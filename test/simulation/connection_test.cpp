// SPDX-License-Identifier: BSL-1.0
// Tests of connections: when they become ready, when they are closed, and what is sent on them.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <boost/asio/post.hpp>

#include <algorithm>
#include <limits>
#include <string>

namespace redlock::test
{

namespace
{

constexpr auto handshake = 800us; // Connect, HELLO, the facts in one write, and the subscription.

outcome_ptr acquired(simulation& sim, lock_manager& locks, const std::string& resource)
{
    const outcome_ptr got = sim.try_acquire(locks, resource, {.ttl = 60s});
    REQUIRE(sim.finish(got));
    return got;
}

} // namespace

TEST_CASE("a first acquire waits for a quorum of masters, and a node timeout for the others", "[scenario-56]")
{
    simulation sim{5};
    for (const std::size_t silent : {0U, 1U})
    {
        sim.master(silent).door = entrance::silent;
    }
    sim.master(4).network = {.there = 10ms, .back = 10ms};
    const clock::time_point began = sim.now();
    lock_manager locks = sim.make_manager();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    CHECK(got->report.rounds == 1);
    CHECK(got->at - began == 4 * 20ms + 50ms + 20ms);
    CHECK(got->lease.valid_until() == began + 4 * 20ms + 50ms + 10s - 102ms);
}

TEST_CASE(
    "a first round is not lost because a master that refuses is connected before others", "[scenario-56]")
{
    simulation sim{3};
    sim.master(0).refuse("SET", "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    sim.master(2).network = {.there = 5ms, .back = 5ms};
    const clock::time_point began = sim.now();
    lock_manager locks = sim.make_manager();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    // As soon as the last one is connected.
    CHECK(got->at - began == 4 * 10ms + 10ms);
}

TEST_CASE("a first acquire waits for its masters until the connect timeout at most", "[scenario-56]")
{
    simulation sim{5};
    for (const std::size_t silent : {0U, 1U, 2U})
    {
        sim.master(silent).door = entrance::silent;
    }
    config options = sim.options();
    options.connect_timeout = 700ms;
    const clock::time_point began = sim.now();
    lock_manager locks = sim.make_manager(options);
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    CHECK(got->at - began == 700ms);
    CHECK(got->report.count(vote::unsent) == 3);
    // Only the first acquire waits.
    const clock::time_point second = sim.now();
    const outcome_ptr next = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(next));
    CHECK(next->error == errc::no_quorum);
    CHECK(next->at == second);
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a process that was suspended while it connects loses no master", "[scenario-56][scenario-57]")
{
    simulation sim{3};
    lock_manager locks = sim.make_manager();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    const clock::duration before = GENERATE(50us, 150us, 350us, 550us, 750us);
    sim.run_for(before);
    // The timers are handled first, and all of them have expired.
    sim.world().jump_with_timers_first(5s);
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    CHECK(got->report.count(vote::unsent) == 0);
    for (const auto& each : sim.masters())
    {
        CHECK(each->count("HELLO") == 1);
    }
}

TEST_CASE(
    "a master that doesn't answer a handshake is given up, though each timer of the client is late",
    "[scenario-57]")
{
    simulation sim{3};
    sim.master(0).refuse("HELLO", "");
    config options = sim.options();
    options.connect_timeout = 800ms;
    lock_manager locks = sim.make_manager(options);
    sim.run_for(1ms);
    // A process that never runs on time isn't patient without an end.
    for (int late = 0; late < 8; ++late)
    {
        CHECK(sim.master(0).count("HELLO") == 1);
        CHECK(sim.master(0).clients() == 1);
        sim.world().jump_with_timers_first(1s);
        sim.run_for(1us);
    }
    sim.run_for(1ms);
    CHECK(sim.master(0).clients() == 0);
    CHECK(sim.run_until([&] { return sim.master(0).count("HELLO") == 2; }, 1s));
}

TEST_CASE("an idle connection is probed after a second, and closed if there is no reply", "[scenario-57]")
{
    simulation sim{3};
    const clock::time_point began = sim.now();
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    const clock::time_point ready = began + handshake;
    REQUIRE(sim.now() == ready + 200us); // The clock was queried at once.
    // A firewall forgets the connection: nothing arrives, and neither end is notified.
    master.link().hold();
    sim.run_until(ready + 1s + 100us);
    CHECK(sim.master(1).count("TIME") == 2);
    CHECK(sim.master(1).last("TIME").at == ready + 1s + 100us);
    CHECK(master.clients() == 1);
    sim.run_until(ready + 2s - 1us);
    CHECK(master.count("HELLO") == 1);
    sim.run_until(ready + 2s + 10ms + handshake);
    CHECK(master.count("HELLO") == 2);
    CHECK(sim.master(1).count("HELLO") == 1);
    // So that the next acquire finds all of them.
    const outcome_ptr got = acquired(sim, locks, "stock");
    sim.run_until_idle();
    CHECK(!got->error);
    CHECK(sim.keys() == 3);
}

TEST_CASE("a connection without any reply is closed after response_timeout", "[scenario-57]")
{
    simulation sim{3};
    config options = sim.options();
    options.response_timeout = 300ms;
    lock_manager locks = sim.make_connected_manager(options);
    sim_master& master = sim.master(0);
    sim.run_for(170ms);
    master.hang();
    const outcome_ptr got = acquired(sim, locks, "stock");
    REQUIRE(!got->error);
    const clock::time_point sent = sim.now() - 200us;
    sim.run_until(sent + 300ms - 201us);
    const outcome_ptr before = acquired(sim, locks, "before");
    CHECK(before->report.masters()[0].vote == vote::pending);
    // A millisecond later: the answer might have waited for this process.
    sim.run_until(sent + 301ms + 1us);
    const outcome_ptr behind = acquired(sim, locks, "behind");
    CHECK(behind->report.masters()[0].vote == vote::unsent);
    CHECK(behind->report.masters()[0].reason == master_errc::unresponsive);
}

TEST_CASE("a command that a busy thread hasn't sent yet isn't unanswered", "[scenario-57]")
{
    simulation sim{3};
    for (const auto& each : sim.masters())
    {
        each->network = {.there = 2ms, .back = 2ms}; // Longer than the second look takes.
    }
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr held = acquired(sim, locks, "held");
    const outcome_ptr lost =
        sim.wait_lost(held->lease); // While others are active, commands are sent together.
    outcome_ptr got;
    asio::post(
        sim.executor(),
        [&]
        {
            got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 10s});
            sim.world().jump(1300ms); // The handler has other work.
        });
    REQUIRE(sim.run_until([&] { return got && got->done; }, 10s));
    CHECK(!got->error);
    CHECK(sim.count("HELLO") == 3);
}

TEST_CASE("a server that answers one command after the other is alive", "[scenario-57]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    master.network.back = 900ms;
    std::vector<outcome_ptr> held;
    for (int count = 0; count < 20; ++count)
    {
        held.push_back(acquired(sim, locks, std::to_string(count)));
        sim.run_for(400ms);
    }
    CHECK(master.count("HELLO") == 1);
    CHECK(master.count("SET") == 20);
}

TEST_CASE("a process that was stopped keeps the connections whose replies are waiting", "[scenario-57]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    std::size_t held = 0;
    // On the same connections each time.
    for (const char* const resource : {"first", "second", "third"})
    {
        const outcome_ptr got = sim.try_acquire(locks, resource, {.ttl = 60s});
        REQUIRE(sim.run_until([&] { return sim.keys() == held + 3; }, 1s));
        // The timers are handled first, and all of them have expired.
        sim.world().jump_with_timers_first(5s);
        REQUIRE(sim.finish(got));
        sim.run_for(1s);
        for (const auto& each : sim.masters())
        {
            CHECK(each->count("HELLO") == 1);
            CHECK(each->key_count() == (held + (got->error ? 0 : 3)) / 3);
        }
        held = sim.keys();
    }
}

TEST_CASE("the output of a write in flight isn't changed when the connection breaks")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    master.takes_bytes = false;
    const outcome_ptr got = acquired(sim, locks, "stock");
    CHECK(!got->error);
    SECTION("by the server")
    {
        master.break_connections();
    }
    SECTION("by the response timeout")
    {
        sim.run_for(2s);
    }
    SECTION("by the destruction of the manager")
    {
        const lock_manager gone = std::move(locks);
    }
    // The stream of the simulation checks this.
    sim.run_until_idle();
    CHECK(master.count("SET") == 0);
}

TEST_CASE("a late reply is matched to its own command", "[scenario-43]")
{
    simulation sim{1};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    const bool first_is_taken = GENERATE(false, true);
    master.set(first_is_taken ? "lock:first" : "lock:second", "another");
    master.hang();
    const outcome_ptr first = sim.try_acquire(locks, "first", {.ttl = 60s});
    REQUIRE(sim.finish(first));
    CHECK(first->error == errc::no_quorum);
    sim.run_for(100ms);
    const outcome_ptr second = sim.try_acquire(locks, "second", {.ttl = 60s});
    sim.run_for(10ms);
    REQUIRE_FALSE(second->done);
    master.resume();
    REQUIRE(sim.finish(second));
    CHECK(second->error == (first_is_taken ? error_code{} : error_code{errc::held_by_other}));
    sim.run_until_idle();
    CHECK(master.key_count() == (first_is_taken ? 2 : 1));
    CHECK(master.count("HELLO") == 1);
}

TEST_CASE("an unsolicited reply ends the connection", "[scenario-43]")
{
    simulation sim{1};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    master.answer("SET", {.bytes = "+OK\r\n+OK\r\n", .runs = true});
    const outcome_ptr got = acquired(sim, locks, "stock");
    CHECK(!got->error);
    sim.run_for(1s);
    CHECK(master.count("HELLO") == 2);
    const outcome_ptr next = acquired(sim, locks, "stock");
    CHECK(next->error == errc::held_by_other);
}

TEST_CASE("a script that the server doesn't know is sent in full, once", "[scenario-49]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks, "stock");
    sim.run_until_idle();
    sim_master& master = sim.master(0);
    SECTION("to release")
    {
        for (const auto& each : sim.masters())
        {
            each->flush_scripts();
        }
        const clock::time_point began = sim.now();
        const outcome_ptr released = sim.release(got->lease);
        REQUIRE(sim.finish(released));
        CHECK(!released->error);
        CHECK(released->at - began == 400us);
        CHECK(master.count("release") == 2);
        CHECK(master.last("release").words.front() == "EVAL");
        CHECK(sim.keys() == 0);
    }
    SECTION("to extend")
    {
        for (const auto& each : sim.masters())
        {
            each->flush_scripts();
        }
        const clock::time_point sent = sim.now();
        const outcome_ptr extended = sim.extend(got->lease, 120s);
        REQUIRE(sim.finish(extended));
        CHECK(!extended->error);
        CHECK(master.count("extend") == 2);
        CHECK(master.last("extend").words.front() == "EVAL");
        CHECK(got->lease.valid_until() == sent + 120s - 1202ms);
    }
    SECTION("and not again if that is refused too")
    {
        sim.master(0).refuse("release", "-NOSCRIPT No matching script.\r\n");
        const outcome_ptr released = sim.release(got->lease);
        REQUIRE(sim.finish(released));
        CHECK(!released->error);
        sim.run_until_idle();
        CHECK(master.count("release") == 2);
        master.answer_as_usual();
        CHECK(sim.run_until_no_keys());
    }
}

TEST_CASE(
    "a script that is to be sent in full counts as sent if the connection breaks before", "[scenario-49]")
{
    simulation sim{3};
    config options = sim.options();
    options.order = order::strict; // A question precedes each SET.
    lock_manager locks = sim.make_connected_manager(options);
    const outcome_ptr got = acquired(sim, locks, "stock");
    sim.run_until_idle();
    for (const auto& each : sim.masters())
    {
        each->flush_scripts();
        each->forget_log();
    }
    outcome_ptr tried;
    std::string script;
    SECTION("to release")
    {
        script = "release";
        tried = sim.release(got->lease);
    }
    SECTION("to extend")
    {
        script = "extend";
        tried = sim.extend(got->lease, 120s);
    }
    SECTION("to ask")
    {
        script = "ask";
        tried = sim.try_acquire(locks, "another", {.ttl = 60s});
    }
    const auto asked = [&](const auto& each) { return each->count(script) > 0; };
    const auto first = [&] { return std::find_if(sim.masters().begin(), sim.masters().end(), asked); };
    REQUIRE(sim.run_until([&] { return first() != sim.masters().end(); }, 1s));
    const auto which = static_cast<std::size_t>(first() - sim.masters().begin());
    sim_master& master = sim.master(which);
    // The answers of the others don't decide the round, and the full script waits for an earlier write.
    for (std::size_t index = 0; index < sim.masters().size(); ++index)
    {
        if (index != which)
        {
            sim.master(index).hang();
        }
    }
    master.takes_bytes = false;
    const outcome_ptr earlier = sim.acquire(locks, "earlier", {.ttl = 60s, .wait = 0s});
    sim.run_for(5ms);
    REQUIRE_FALSE(tried->done);
    master.break_connections();
    REQUIRE(sim.finish(tried));
    CHECK(master.count(script) == 1);
    CHECK(tried->report.masters()[which].vote == vote::failed);
    CHECK(tried->report.masters()[which].reason == asio::error::connection_reset);
}

TEST_CASE("an extension isn't sent in full when its time is over or its lease released", "[scenario-62]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = acquired(sim, locks, "stock");
    sim.run_until_idle();
    sim_master& master = sim.master(0);
    master.flush_scripts();
    SECTION("a quorum has confirmed: the full script is sent, and a release would follow it")
    {
        master.network.back = 5ms;
        const outcome_ptr extended = sim.extend(got->lease, 60s);
        REQUIRE(sim.finish(extended));
        CHECK(!extended->error);
        sim.run_until_idle();
        CHECK(master.count("extend") == 2);
    }
    SECTION("the node timeout is over")
    {
        sim.master(1).hang();
        master.network.back = 60ms;
        const outcome_ptr extended = sim.extend(got->lease, 60s);
        REQUIRE(sim.finish(extended));
        CHECK(extended->error == errc::no_quorum);
        sim.run_until_idle();
        CHECK(master.count("extend") == 1);
        sim.master(1).resume();
    }
    SECTION("the node timeout is over, and a quorum has confirmed: no caller waits any more")
    {
        master.network.back = 60ms;
        const outcome_ptr extended = sim.extend(got->lease, 60s);
        REQUIRE(sim.finish(extended));
        CHECK(!extended->error);
        sim.run_until_idle();
        CHECK(master.count("extend") == 1);
    }
    SECTION("it is released")
    {
        sim.master(1).hang();
        master.network.back = 5ms;
        const outcome_ptr extended = sim.extend(got->lease, 60s);
        sim.run_for(1ms);
        const outcome_ptr released = sim.release(got->lease);
        REQUIRE(sim.finish(extended));
        CHECK(extended->error == errc::not_held);
        REQUIRE(sim.finish(released));
        sim.run_until_idle();
        CHECK(master.count("extend") == 1);
        CHECK(master.count("release") == 2);
        sim.master(1).resume();
        CHECK(sim.run_until_no_keys());
    }
}

TEST_CASE("no limit of outstanding keys is too large for extensions", "[scenario-61]")
{
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    simulation sim{3};
    config options = sim.options();
    options.max_outstanding_keys = GENERATE_COPY(most, most / 2, most / 2 + 1);
    lock_manager locks = sim.make_connected_manager(options);
    const outcome_ptr held = acquired(sim, locks, "stock");
    const outcome_ptr extended = sim.extend(held->lease, 60s);
    REQUIRE(sim.finish(extended));
    CHECK(!extended->error);
}

TEST_CASE("above max_outstanding_keys a SET is refused as unsent, and a release never is", "[scenario-61]")
{
    simulation sim{3};
    config options = sim.options();
    options.max_outstanding_keys = 2;
    lock_manager locks = sim.make_connected_manager(options);
    sim.master(0).hang();
    const outcome_ptr first = acquired(sim, locks, "first");
    const outcome_ptr second = acquired(sim, locks, "second");
    const outcome_ptr third = acquired(sim, locks, "third");
    CHECK(third->error == errc::no_quorum);
    for (const master_report& each : third->report.masters())
    {
        CHECK(each.vote == vote::unsent);
        CHECK(each.reason == master_errc::too_many_outstanding_keys);
    }
    for (const outcome_ptr& each : {first, second})
    {
        const outcome_ptr released = sim.release(each->lease);
        REQUIRE(sim.finish(released));
        CHECK(!released->error);
    }
    // The answers of the hanging master are still outstanding; the others have room again.
    const outcome_ptr fourth = acquired(sim, locks, "fourth");
    CHECK(!fourth->error);
    CHECK(fourth->report.masters()[0].reason == master_errc::too_many_outstanding_keys);
    const outcome_ptr released = sim.release(fourth->lease);
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    sim.master(0).resume();
    CHECK(sim.run_until_no_keys());
    const outcome_ptr fifth = acquired(sim, locks, "fifth");
    sim.run_until_idle();
    CHECK(sim.keys() == 3);
}

} // namespace redlock::test
