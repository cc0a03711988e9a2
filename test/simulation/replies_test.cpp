// SPDX-License-Identifier: BSL-1.0
// Tests of the table of replies: what each means for a vote, for an outstanding release, and for the connection.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <string>
#include <vector>

namespace redlock::test
{

namespace
{

/// The consequence of an error reply to a release.
enum class then : std::uint8_t
{
    again,    // It is repeated, with a back-off.
    at_first, // The same, unless it is refused several times in a row.
    given_up, // It isn't repeated: the ttl frees the key.
    closed,   // The connection is replaced, and the release is given up.
    anew      // The connection is replaced, and the release sent again.
};

struct row
{
    std::string bytes;
    master_errc reason;
    then release;
    bool rules_out_a_key = true; // If a SET gets this reply.
};

const std::vector<row>& table()
{
    static const std::vector<row> rows{
        {"-LOADING Redis is loading the dataset in memory\r\n", master_errc::loading, then::again},
        {"-BUSY Redis is busy running a script.\r\n", master_errc::busy, then::again},
        {"-READONLY You can't write against a read only replica.\r\n", master_errc::read_only, then::closed},
        {"-MASTERDOWN Link with MASTER is down\r\n", master_errc::read_only, then::closed},
        {"-NOREPLICAS Not enough good replicas to write.\r\n", master_errc::no_replicas, then::given_up},
        {"-MISCONF Redis is configured to save RDB snapshots\r\n", master_errc::misconfigured,
         then::given_up},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", master_errc::out_of_memory,
         then::again},
        {"-NOAUTH Authentication required.\r\n", master_errc::authentication_failed, then::given_up},
        {"-WRONGPASS invalid username-password pair\r\n", master_errc::authentication_failed, then::given_up},
        {"-NOPERM this user has no permissions\r\n", master_errc::no_permission, then::given_up},
        {"-ERR max number of clients reached\r\n", master_errc::too_many_clients, then::again},
        {"-MOVED 3999 127.0.0.1:6381\r\n", master_errc::cluster_node, then::closed},
        {"-ASK 3999 127.0.0.1:6381\r\n", master_errc::cluster_node, then::closed},
        {"-CLUSTERDOWN The cluster is down\r\n", master_errc::cluster_node, then::closed},
        {"-CROSSSLOT Keys in request don't hash to the same slot\r\n", master_errc::cluster_node,
         then::closed},
        {"-ERR unknown command 'EVALSHA', with args beginning with: \r\n", master_errc::command_failed,
         then::given_up},
        {"-ERR something else\r\n", master_errc::command_failed, then::at_first, false},
        {"-\r\n", master_errc::command_failed, then::at_first, false},
        {"!9\r\nERR other\r\n", master_errc::command_failed, then::at_first, false},
        {":5\r\n", master_errc::protocol_error, then::anew, false},
        {"$2\r\nOK\r\n", master_errc::protocol_error, then::anew, false},
        {"*0\r\n", master_errc::protocol_error, then::anew, false},
        {"+QUEUED\r\n", master_errc::protocol_error, then::anew, false},
        {"HTTP/1.1 400 Bad Request\r\n", master_errc::protocol_error, then::anew, false}};
    return rows;
}

bool reconnects(const row& of)
{
    return of.release == then::closed || of.release == then::anew;
}

} // namespace

TEST_CASE("a reply to SET other than OK and nil fails the vote, and the key is released", "[scenario-24]")
{
    const row& row = GENERATE(from_range(table()));
    CAPTURE(row.bytes);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    master.network.there = 50us;
    master.answer("SET", {.bytes = row.bytes, .runs = !row.rules_out_a_key});
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    CHECK(got->report.masters()[0].vote == vote::failed);
    CHECK(got->report.masters()[0].reason == row.reason);
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    sim.run_for(2s);
    CHECK(sim.keys() == 0);
    CHECK(master.count("SET") == 1);
    CHECK(master.count("HELLO") == (reconnects(row) ? 2 : 1));
}

TEST_CASE("a SET that can't have run leaves no outstanding key", "[scenario-87]")
{
    const row& row = GENERATE(from_range(table()));
    CAPTURE(row.bytes);
    simulation sim{3};
    sim.forbid_queues();
    lock_manager locks = sim.make_connected_manager();
    sim.master(1).set("lock:stock", "another");
    sim.master(2).set("lock:stock", "another");
    sim_master& master = sim.master(0);
    master.answer("SET", {.bytes = row.bytes});
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::held_by_other);
    sim.run_for(2s);
    CHECK(sim.master(1).count("release") == 1);
    // The round may be lost before this reply arrives. Then the release is in flight, and its answer is not waited
    // for.
    CHECK(master.count("release") <= 1);
    if (!row.rules_out_a_key)
    {
        CHECK(master.count("release") == 1);
    }
}

TEST_CASE("failed votes end a round at once if they make a quorum impossible")
{
    const row& row = GENERATE(from_range(table()));
    CAPTURE(row.bytes);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim.master(0).answer("SET", {.bytes = row.bytes});
    sim.master(1).answer("SET", {.bytes = row.bytes});
    sim.master(2).hang();
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    CHECK(got->at - began == 200us);
    sim.master(2).resume();
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a reply to an extension other than a number fails the vote, and the lease is kept")
{
    const row& row = GENERATE(from_range(table()));
    CAPTURE(row.bytes);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    sim.run_until_idle();
    const clock::time_point until = got->lease.valid_until();
    sim.master(0).answer("extend", {.bytes = row.bytes});
    sim.master(1).answer("extend", {.bytes = row.bytes});
    const outcome_ptr extended = sim.extend(got->lease, 120s);
    REQUIRE(sim.finish(extended));
    CHECK(extended->error == errc::no_quorum);
    CHECK(extended->report.masters()[0].vote == vote::failed);
    CHECK(extended->report.masters()[0].reason == row.reason);
    CHECK(got->lease.valid_until() == until);
    sim.run_for(2s);
    CHECK(got->lease.valid());
    CHECK(sim.master(0).count("extend") == 1);
    CHECK(sim.master(0).count("HELLO") == (reconnects(row) ? 2 : 1));
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a refused release is repeated unless the refusal is permanent", "[scenario-50]")
{
    const row& row = GENERATE(from_range(table()));
    CAPTURE(row.bytes);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    sim.run_until_idle();
    master.answer("release", {.bytes = row.bytes}, 2);
    sim.master(1).answer("release", {.bytes = row.bytes});
    const clock::time_point began = sim.now();
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(released->error == errc::unconfirmed);
    CHECK(released->at - began == 200us);
    CHECK(released->report.masters()[0].vote == vote::failed);
    CHECK(released->report.masters()[0].reason == row.reason);
    CHECK_FALSE(got->lease);
    sim.run_for(4s);
    const bool repeated =
        row.release == then::again || row.release == then::at_first || row.release == then::anew;
    CHECK(master.count("release") == (repeated ? 3 : 1));
    CHECK(sim.master(1).count("release") == (repeated ? 2 : 1));
    CHECK(sim.master(2).key_count() == 0);
    CHECK(master.key_count() == (repeated ? 0 : 1));
    CHECK(master.count("HELLO") == (row.release == then::closed ? 2 : row.release == then::anew ? 3 : 1));
}

TEST_CASE("a release that is always refused is repeated with a back-off")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    const std::string bytes = GENERATE("-OOM no memory\r\n", "-BUSY busy\r\n", ":7\r\n");
    master.refuse("release", bytes);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    sim.run_for(60s);
    CHECK(master.count("release") >= 30);
    // It is repeated with the delays of a reconnect: a quarter of a second on average.
    CHECK(master.count("release") <= 400);
    master.answer_as_usual();
    sim.run_for(2s);
    CHECK(master.last("release").ran);
}

} // namespace redlock::test
