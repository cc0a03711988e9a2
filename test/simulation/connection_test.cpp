// SPDX-License-Identifier: BSL-1.0
// Tests of connections: when they are there, when they are given up, and what is asked for on them.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace redlock::test
{

namespace
{

constexpr auto handshake = 600us; // Connect, HELLO, and the rest in one write.

outcome_ptr acquired(simulation& all, lock_manager& locks, const std::string& resource)
{
    const outcome_ptr got = all.try_acquire(locks, resource, {.ttl = 60s});
    REQUIRE(all.finish(got));
    return got;
}

} // namespace

TEST_CASE("a first acquire waits for a quorum of masters, before its time is counted", "[scenario-56]")
{
    simulation all{5};
    for (const std::size_t silent : {0U, 1U})
    {
        all.master(silent).door = entrance::silent;
    }
    all.master(4).network = {.there = 10ms, .back = 10ms};
    const clock::time_point began = all.now();
    lock_manager locks = all.make_manager();
    const outcome_ptr got = all.try_acquire(locks, "r", {.ttl = 10s});
    REQUIRE(all.finish(got));
    CHECK(!got->error);
    CHECK(got->report.rounds == 1);
    CHECK(got->at - began == 3 * 20ms + 20ms);
    CHECK(got->lease.valid_until() == began + 3 * 20ms + 10s - 102ms);
}

TEST_CASE("a first acquire waits for its masters until the connect timeout at most", "[scenario-56]")
{
    simulation all{5};
    for (const std::size_t silent : {0U, 1U, 2U})
    {
        all.master(silent).door = entrance::silent;
    }
    config options = all.options();
    options.connect_timeout = 700ms;
    const clock::time_point began = all.now();
    lock_manager locks = all.make_manager(options);
    const outcome_ptr got = all.try_acquire(locks, "r", {.ttl = 10s});
    REQUIRE(all.finish(got));
    CHECK(got->error == errc::no_quorum);
    CHECK(got->at - began == 700ms);
    CHECK(got->report.count(vote::unsent) == 3);
    // That was the first; the next ones don't wait.
    const clock::time_point second = all.now();
    const outcome_ptr next = all.try_acquire(locks, "r", {.ttl = 10s});
    REQUIRE(all.finish(next));
    CHECK(next->error == errc::no_quorum);
    CHECK(next->at == second);
    CHECK(all.run_until_no_keys());
}

TEST_CASE(
    "a connection that is idle is asked after a second, and closed when it doesn't answer", "[scenario-57]")
{
    simulation all{3};
    const clock::time_point began = all.now();
    lock_manager locks = all.make_connected_manager();
    sim_master& master = all.master(0);
    const clock::time_point ready = began + handshake;
    REQUIRE(all.now() == ready + 200us); // It was asked for its clock at once.
    // A firewall forgets the connection: nothing arrives, and neither end is notified.
    master.link().hold();
    all.run_until(ready + 1s + 100us);
    CHECK(all.master(1).count("TIME") == 2);
    CHECK(all.master(1).last("TIME").at == ready + 1s + 100us);
    CHECK(master.clients() == 1);
    all.run_until(ready + 2s - 1us);
    CHECK(master.count("HELLO") == 1);
    all.run_until(ready + 2s + 10ms + handshake);
    CHECK(master.count("HELLO") == 2);
    CHECK(all.master(1).count("HELLO") == 1);
    // So that the next acquire finds all of them.
    const outcome_ptr got = acquired(all, locks, "r");
    all.run_until_idle();
    CHECK(!got->error);
    CHECK(all.keys() == 3);
}

TEST_CASE("a connection whose oldest command is unanswered is closed after its time", "[scenario-57]")
{
    simulation all{3};
    config options = all.options();
    options.response_timeout = 300ms;
    lock_manager locks = all.make_connected_manager(options);
    sim_master& master = all.master(0);
    all.run_for(170ms);
    master.hang();
    const outcome_ptr got = acquired(all, locks, "r");
    REQUIRE(!got->error);
    const clock::time_point sent = all.now() - 200us;
    all.run_until(sent + 300ms - 201us);
    const outcome_ptr before = acquired(all, locks, "before");
    CHECK(before->report.masters()[0].vote == vote::pending);
    // A millisecond later: the answer might have waited for this process.
    all.run_until(sent + 301ms + 1us);
    const outcome_ptr behind = acquired(all, locks, "behind");
    CHECK(behind->report.masters()[0].vote == vote::unsent);
    CHECK(behind->report.masters()[0].reason == master_errc::unresponsive);
}

TEST_CASE("a server that answers one command after the other is alive", "[scenario-57]")
{
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    sim_master& master = all.master(0);
    master.network.back = 900ms;
    std::vector<outcome_ptr> held;
    for (int count = 0; count < 20; ++count)
    {
        held.push_back(acquired(all, locks, std::to_string(count)));
        all.run_for(400ms);
    }
    CHECK(master.count("HELLO") == 1);
    CHECK(master.count("SET") == 20);
}

TEST_CASE("a process that was stopped keeps the connections whose answers wait for it", "[scenario-57]")
{
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    const outcome_ptr got = all.try_acquire(locks, "r", {.ttl = 60s});
    REQUIRE(all.run_until([&] { return all.keys() == 3; }, 1s));
    // The timers are looked at first, and all of them are over.
    all.world().jump_with_timers_first(5s);
    REQUIRE(all.finish(got));
    all.run_for(1s);
    for (const auto& each : all.masters())
    {
        CHECK(each->count("HELLO") == 1);
        CHECK(each->key_count() == (got->error ? 0 : 1));
    }
}

TEST_CASE("what is being written is left alone when its connection breaks")
{
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    sim_master& master = all.master(0);
    master.takes_bytes = false;
    const outcome_ptr got = acquired(all, locks, "r");
    CHECK(!got->error);
    SECTION("by the server")
    {
        master.break_connections();
    }
    SECTION("because nothing comes any more")
    {
        all.run_for(2s);
    }
    SECTION("because the manager is destroyed")
    {
        const lock_manager gone = std::move(locks);
    }
    // The stream of the simulation sees to it.
    all.run_until_idle();
    CHECK(master.count("SET") == 0);
}

TEST_CASE("a late reply is read by its own command", "[scenario-43]")
{
    simulation all{1};
    lock_manager locks = all.make_connected_manager();
    sim_master& master = all.master(0);
    const bool first_is_taken = GENERATE(false, true);
    master.set(first_is_taken ? "lock:first" : "lock:second", "another");
    master.hang();
    const outcome_ptr first = all.try_acquire(locks, "first", {.ttl = 60s});
    REQUIRE(all.finish(first));
    CHECK(first->error == errc::no_quorum);
    all.run_for(100ms);
    const outcome_ptr second = all.try_acquire(locks, "second", {.ttl = 60s});
    all.run_for(10ms);
    REQUIRE_FALSE(second->done);
    master.resume();
    REQUIRE(all.finish(second));
    CHECK(second->error == (first_is_taken ? error_code{} : error_code{errc::held_by_other}));
    all.run_until_idle();
    CHECK(master.key_count() == (first_is_taken ? 2 : 1));
    CHECK(master.count("HELLO") == 1);
}

TEST_CASE("an unsolicited reply ends the connection", "[scenario-43]")
{
    simulation all{1};
    lock_manager locks = all.make_connected_manager();
    sim_master& master = all.master(0);
    master.answer("SET", {.bytes = "+OK\r\n+OK\r\n", .runs = true});
    const outcome_ptr got = acquired(all, locks, "r");
    CHECK(!got->error);
    all.run_for(1s);
    CHECK(master.count("HELLO") == 2);
    const outcome_ptr next = acquired(all, locks, "r");
    CHECK(next->error == errc::held_by_other);
}

TEST_CASE("a script that the server doesn't know is sent in full, once", "[scenario-49]")
{
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    const outcome_ptr got = acquired(all, locks, "r");
    all.run_until_idle();
    sim_master& master = all.master(0);
    SECTION("to release")
    {
        for (const auto& each : all.masters())
        {
            each->flush_scripts();
        }
        const clock::time_point began = all.now();
        const outcome_ptr released = all.release(got->lease);
        REQUIRE(all.finish(released));
        CHECK(!released->error);
        CHECK(released->at - began == 400us);
        CHECK(master.count("release") == 2);
        CHECK(master.last("release").words.front() == "EVAL");
        CHECK(all.keys() == 0);
    }
    SECTION("to extend")
    {
        for (const auto& each : all.masters())
        {
            each->flush_scripts();
        }
        const clock::time_point sent = all.now();
        const outcome_ptr extended = all.extend(got->lease, 120s);
        REQUIRE(all.finish(extended));
        CHECK(!extended->error);
        CHECK(master.count("extend") == 2);
        CHECK(master.last("extend").words.front() == "EVAL");
        CHECK(got->lease.valid_until() == sent + 120s - 1202ms);
    }
    SECTION("and not again when that is refused too")
    {
        all.master(0).refuse("release", "-NOSCRIPT No matching script.\r\n");
        const outcome_ptr released = all.release(got->lease);
        REQUIRE(all.finish(released));
        CHECK(!released->error);
        all.run_until_idle();
        CHECK(master.count("release") == 2);
        master.answer_as_usual();
        CHECK(all.run_until_no_keys());
    }
}

TEST_CASE("an extension isn't sent in full when its time is over or its lease released", "[scenario-62]")
{
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    const outcome_ptr got = acquired(all, locks, "r");
    all.run_until_idle();
    sim_master& master = all.master(0);
    master.flush_scripts();
    SECTION("a quorum has matched: this one is worth having too, and a release would follow it")
    {
        master.network.back = 5ms;
        const outcome_ptr extended = all.extend(got->lease, 60s);
        REQUIRE(all.finish(extended));
        CHECK(!extended->error);
        all.run_until_idle();
        CHECK(master.count("extend") == 2);
    }
    SECTION("the node timeout is over")
    {
        all.master(1).hang();
        master.network.back = 60ms;
        const outcome_ptr extended = all.extend(got->lease, 60s);
        REQUIRE(all.finish(extended));
        CHECK(extended->error == errc::no_quorum);
        all.run_until_idle();
        CHECK(master.count("extend") == 1);
        all.master(1).resume();
    }
    SECTION("the node timeout is over, and a quorum has matched long before: no caller waits any more")
    {
        master.network.back = 60ms;
        const outcome_ptr extended = all.extend(got->lease, 60s);
        REQUIRE(all.finish(extended));
        CHECK(!extended->error);
        all.run_until_idle();
        CHECK(master.count("extend") == 1);
    }
    SECTION("it is released")
    {
        all.master(1).hang();
        master.network.back = 5ms;
        const outcome_ptr extended = all.extend(got->lease, 60s);
        all.run_for(1ms);
        const outcome_ptr released = all.release(got->lease);
        REQUIRE(all.finish(extended));
        CHECK(extended->error == errc::not_held);
        REQUIRE(all.finish(released));
        all.run_until_idle();
        CHECK(master.count("extend") == 1);
        CHECK(master.count("release") == 2);
        all.master(1).resume();
        CHECK(all.run_until_no_keys());
    }
}

TEST_CASE("above max_outstanding_keys a SET is refused as unsent, and a release never is", "[scenario-61]")
{
    simulation all{3};
    config options = all.options();
    options.max_outstanding_keys = 2;
    lock_manager locks = all.make_connected_manager(options);
    all.master(0).hang();
    const outcome_ptr first = acquired(all, locks, "first");
    const outcome_ptr second = acquired(all, locks, "second");
    const outcome_ptr third = acquired(all, locks, "third");
    CHECK(third->error == errc::no_quorum);
    for (const master_report& each : third->report.masters())
    {
        CHECK(each.vote == vote::unsent);
        CHECK(each.reason == master_errc::too_many_outstanding_keys);
    }
    for (const outcome_ptr& each : {first, second})
    {
        const outcome_ptr released = all.release(each->lease);
        REQUIRE(all.finish(released));
        CHECK(!released->error);
    }
    // The answers of the hanging master are still outstanding; the others have room again.
    const outcome_ptr fourth = acquired(all, locks, "fourth");
    CHECK(!fourth->error);
    CHECK(fourth->report.masters()[0].reason == master_errc::too_many_outstanding_keys);
    const outcome_ptr released = all.release(fourth->lease);
    REQUIRE(all.finish(released));
    CHECK(!released->error);
    all.master(0).resume();
    CHECK(all.run_until_no_keys());
    const outcome_ptr fifth = acquired(all, locks, "fifth");
    all.run_until_idle();
    CHECK(all.keys() == 3);
}

} // namespace redlock::test
