// SPDX-License-Identifier: BSL-1.0
// Tests of the handshake, with usable and unusable masters.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <set>

namespace redlock::test
{

namespace
{

/// Returns the vote in the report of a try, of one master that doesn't become ready.
master_report refused(simulation& sim, const config& options)
{
    lock_manager locks = sim.make_manager(options);
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    REQUIRE(got->report.masters().size() == 1);
    CHECK(got->report.masters()[0].vote == vote::unsent);
    CHECK(sim.master(0).count("SET") == 0);
    return got->report.masters()[0];
}

config with_password(const simulation& sim)
{
    config options = sim.options();
    options.masters = {master{"redis://alice:sesame@10.0.0.1/3"}};
    return options;
}

} // namespace

TEST_CASE("a connection introduces itself and loads the scripts")
{
    simulation sim{1};
    sim.master(0).knows_hello = GENERATE(true, false);
    sim.master(0).username = "alice";
    sim.master(0).password = "sesame";
    lock_manager locks = sim.make_connected_manager(with_password(sim));
    std::set<std::string> said;
    for (const received& each : sim.master(0).log())
    {
        said.insert(each.what);
    }
    CHECK(said.contains("SELECT"));
    CHECK(said.contains("INFO"));
    CHECK(said.contains("CLIENT SETNAME"));
    CHECK(sim.master(0).count("SCRIPT LOAD") == 4);
    CHECK(sim.master(0).count("queue trial") == 1);
    CHECK(said.contains("AUTH") != sim.master(0).knows_hello);
    CHECK(said.contains("CLIENT ID") != sim.master(0).knows_hello);
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    const outcome_ptr other = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(other));
    CHECK(other->error == errc::held_by_other);
}

TEST_CASE("a server that refuses HELLO is logged in to with AUTH, however it refuses")
{
    const char* const refusal = GENERATE(
        "-ERR unknown command 'HELLO'\r\n", "-NOPROTO unsupported protocol version\r\n",
        "-NOPERM this user has no permissions to run the 'hello' command\r\n",
        // Valkey 9 and later answer this before they report an unknown command.
        "-NOAUTH Authentication required.\r\n");
    CAPTURE(refusal);
    simulation sim{1};
    sim.master(0).knows_hello = false;
    sim.master(0).username = "alice";
    sim.master(0).password = "sesame";
    sim.master(0).refuse("HELLO", refusal);
    lock_manager locks = sim.make_connected_manager(with_password(sim));
    CHECK(sim.master(0).count("AUTH") == 1);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
}

TEST_CASE("replies may arrive in pieces")
{
    simulation sim{3};
    const bool knows_hello = GENERATE(true, false);
    const std::size_t piece = GENERATE(1U, 7U);
    for (const auto& each : sim.masters())
    {
        each->knows_hello = knows_hello;
        each->network.piece = piece;
        each->network.jitter = 10us;
    }
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    const outcome_ptr extended = sim.extend(got->lease, 10s);
    REQUIRE(sim.finish(extended));
    CHECK(!extended->error);
    const outcome_ptr other = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(other));
    CHECK(other->error == errc::held_by_other);
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a stale connection is killed on a server without HELLO too", "[scenario-18]")
{
    simulation sim{1};
    sim.master(0).knows_hello = false;
    lock_manager locks = sim.make_connected_manager();
    sim.master(0).link().hold();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    sim.master(0).break_connections();
    sim.run_for(1s);
    CHECK(sim.master(0).last("CLIENT KILL").words.back() == "1");
}

TEST_CASE("an unusable master yields an unsent vote with the reason")
{
    simulation sim{1};
    sim_master& master = sim.master(0);
    config options = sim.options();
    error_code expected;
    SECTION("the password is wrong")
    {
        options = with_password(sim);
        master.password = "open";
        expected = master_errc::authentication_failed;
    }
    SECTION("the password is wrong, on a server without HELLO")
    {
        options = with_password(sim);
        master.password = "open";
        master.knows_hello = false;
        expected = master_errc::authentication_failed;
    }
    SECTION("it requires a password")
    {
        master.password = "open";
        expected = master_errc::authentication_failed;
    }
    SECTION("it refuses the log-in, in words of its own")
    {
        options = with_password(sim);
        master.refuse("HELLO", "-ERR invalid password\r\n");
        expected = master_errc::authentication_failed;
    }
    SECTION(
        "it is a proxy whose server is down, or in protected mode, which has nothing to do with the password")
    {
        options = with_password(sim);
        master.refuse(
            "HELLO",
            GENERATE(
                "-ERR upstream not available, try later\r\n",
                "-DENIED Redis is running in protected mode because protected mode is enabled and no "
                "password is set for the default user.\r\n"));
        expected = master_errc::command_failed;
    }
    SECTION("it belongs to a cluster")
    {
        master.mode = "cluster";
        master.knows_hello = GENERATE(true, false);
        expected = master_errc::cluster_node;
    }
    SECTION("it is a sentinel")
    {
        master.mode = "sentinel";
        expected = master_errc::command_failed;
    }
    SECTION("it is a replica")
    {
        master.role = GENERATE("replica", "active-replica"); // The latter at KeyDB.
        master.knows_hello = GENERATE(true, false);
        expected = master_errc::read_only;
    }
    SECTION("it is loading")
    {
        master.refuse(GENERATE("HELLO", "INFO", "SCRIPT LOAD"), "-LOADING Redis is loading the dataset\r\n");
        expected = master_errc::loading;
    }
    SECTION("it runs a slow script")
    {
        master.refuse(
            GENERATE("HELLO", "SCRIPT LOAD", "queue trial"), "-BUSY Redis is busy running a script\r\n");
        expected = master_errc::busy;
    }
    SECTION("it has too many clients")
    {
        master.door = entrance::crowded;
        expected = master_errc::too_many_clients;
    }
    SECTION("the connection is refused")
    {
        master.door = entrance::refuses;
        expected = asio::error::connection_refused;
    }
    SECTION("it doesn't answer")
    {
        master.door = entrance::silent;
        expected = master_errc::connect_timed_out;
    }
    SECTION("it accepts and never replies")
    {
        master.hang();
        expected = master_errc::connect_timed_out;
    }
    SECTION("it sends another protocol")
    {
        master.refuse("HELLO", "HTTP/1.1 400 Bad Request\r\n\r\n");
        expected = master_errc::protocol_error;
    }
    SECTION("its first reply isn't that to HELLO")
    {
        master.refuse("HELLO", "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n");
        expected = master_errc::protocol_error;
    }
    SECTION("it doesn't confirm the database")
    {
        options.masters = {redlock::master{std::string{options.masters.front().name()} + "/3"}};
        master.refuse("SELECT", ":1\r\n");
        expected = master_errc::protocol_error;
    }
    SECTION("it has no such database")
    {
        options.masters = {redlock::master{std::string{options.masters.front().name()} + "/99"}};
        expected = master_errc::no_database;
    }
    SECTION("it replies before the first command")
    {
        master.refuse("HELLO", "%1\r\n+proto\r\n:3\r\n+OK\r\n");
        expected = master_errc::protocol_error;
    }
    SECTION("it closes")
    {
        master.answer(GENERATE("HELLO", "INFO"), {.closes = true}, 1000);
        expected = master_errc::connection_lost;
    }
    const master_report said = refused(sim, options);
    CAPTURE(said.reason.message(), said.detail.view());
    CHECK(said.reason == expected);
    // The connection is retried with a back-off, and succeeds when the master has recovered.
    const auto tries = master.count("HELLO");
    CHECK(tries <= 30);
}

TEST_CASE("a server that is configured twice has one vote", "[scenario-48]")
{
    simulation sim{3};
    sim.put(1, 0);
    lock_manager locks = sim.make_manager();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    std::size_t twice = 0;
    for (const master_report& each : got->report.masters())
    {
        twice += each.reason == master_errc::same_server ? 1U : 0U;
    }
    CHECK(twice + got->report.count(vote::unsent) >= 1);
    sim.run_until_idle();
    CHECK(sim.master(0).count("SET") == 1);
}

TEST_CASE("a handshake that hangs is aborted at the connect timeout and retried")
{
    simulation sim{3};
    sim.master(0).hang();
    const clock::time_point began = sim.now();
    lock_manager locks = sim.make_manager();
    sim.run_until(began + 1s - 1us);
    sim.master(0).resume();
    // What it sends now must not be read by the new connection.
    sim.run_for(5s);
    CHECK(sim.master(0).clients() == 1);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    sim.run_until_idle();
    CHECK(sim.keys() == 3);
}

} // namespace redlock::test
