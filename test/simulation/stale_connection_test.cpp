// SPDX-License-Identifier: BSL-1.0
// Tests of SETs that are in flight when their connection breaks: stale connections, and how they are killed.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <map>

namespace redlock::test
{

namespace
{

/// Returns the commands received on a connection, in their order.
std::vector<std::string> verbs_of(const sim_master& at, std::int64_t connection)
{
    std::vector<std::string> verbs;
    for (const received& each : at.log())
    {
        if (each.connection == connection)
        {
            verbs.push_back(each.what);
        }
    }
    return verbs;
}

std::size_t place_of(const std::vector<std::string>& verbs, const std::string& what)
{
    return static_cast<std::size_t>(std::find(verbs.begin(), verbs.end(), what) - verbs.begin());
}

/// Breaks the connection to the first master while a SET is in flight, so that the client can't know whether it runs.
/// The attempt is released. Returns the link, by which the SET can arrive later.
std::shared_ptr<virtual_link> leave_stale_connection(simulation& sim, lock_manager& locks)
{
    const std::shared_ptr<virtual_link> last = sim.master(0).link().shared_from_this();
    last->hold();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(got));
    REQUIRE(!got->error);
    last->break_off();
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    REQUIRE(!released->error);
    return last;
}

} // namespace

TEST_CASE("a stale connection with a SET in flight is killed before the release", "[scenario-18]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const auto stale_link = leave_stale_connection(sim, locks);
    sim.run_for(2s);
    sim_master& master = sim.master(0);
    REQUIRE(master.count("CLIENT KILL") == 1);
    CHECK(master.last("CLIENT KILL").words == command{"CLIENT", "KILL", "ID", "1"});
    const std::vector<std::string> verbs = verbs_of(master, 2);
    CHECK(place_of(verbs, "CLIENT KILL") < place_of(verbs, "release"));
    CHECK(place_of(verbs, "release") < verbs.size());
    // The SET arrives on a connection that has been killed.
    stale_link->let_go();
    sim.run_until_idle();
    CHECK(verbs_of(master, 1).back() != "SET");
    CHECK(sim.keys() == 0);
}

TEST_CASE("a SET that runs before its stale connection is killed is released", "[scenario-18]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const auto stale_link = leave_stale_connection(sim, locks);
    stale_link->let_go();
    REQUIRE(sim.keys() == 1);
    sim.run_for(2s);
    CHECK(sim.keys() == 0);
    // The connection had ended already, so the master replies 0.
    CHECK(sim.master(0).count("CLIENT KILL") == 1);
}

TEST_CASE(
    "each broken connection with an unanswered SET is killed, even if the next one breaks too",
    "[scenario-18]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    std::vector<std::shared_ptr<virtual_link>> stale_links;
    SECTION("in its handshake, before the first one is confirmed dead")
    {
        stale_links.push_back(leave_stale_connection(sim, locks));
        master.answer("CLIENT KILL", {.closes = true}, 3);
        sim.run_for(10s);
        REQUIRE(master.count("CLIENT KILL") == 4);
        CHECK(master.last("CLIENT KILL").words.back() == "1");
    }
    SECTION("in its handshake, by a reply that makes no sense, when nothing of it can be in flight")
    {
        stale_links.push_back(leave_stale_connection(sim, locks));
        master.answer("CLIENT KILL", {.bytes = "+what\r\n", .nonsense = true}, 3);
        sim.run_for(10s);
        REQUIRE(master.count("CLIENT KILL") == 4);
        CHECK(master.last("CLIENT KILL").words.back() == "1");
    }
    SECTION("with another SET in flight")
    {
        stale_links.push_back(leave_stale_connection(sim, locks));
        sim.run_for(2s);
        REQUIRE(master.clients() == 1);
        stale_links.push_back(leave_stale_connection(sim, locks));
        sim.run_for(2s);
        REQUIRE(master.count("CLIENT KILL") == 2);
        CHECK(master.last("CLIENT KILL").words.back() == "2");
    }
    for (const auto& stale_link : stale_links)
    {
        stale_link->let_go();
    }
    sim.run_until_idle();
    CHECK(sim.keys() == 0);
    CHECK(master.count("SET") == 0);
}

TEST_CASE("a broken connection without an unanswered SET isn't killed")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(got));
    sim.run_until_idle();
    sim.master(0).break_connections();
    sim.run_for(2s);
    CHECK(sim.master(0).clients() == 1);
    CHECK(sim.master(0).count("CLIENT KILL") == 0);
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a connection whose only SET got a reply that makes no sense is killed", "[scenario-18]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const std::shared_ptr<virtual_link> last = sim.master(0).link().shared_from_this();
    last->hold();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(got));
    REQUIRE(!got->error);
    last->reply(":7\r\n"); // One too many.
    sim.run_for(1s);
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    CHECK(sim.master(0).count("CLIENT KILL") == 1);
    last->let_go();
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("no connection is killed on a restarted server", "[scenario-59]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    const bool keeps_keys = GENERATE(false, true);
    SECTION("the SET had run")
    {
        master.link().hold_replies();
        const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 60s});
        REQUIRE(sim.finish(got));
        sim.run_until_idle();
        REQUIRE(master.key_count() == 1);
        master.restart("another run", keeps_keys);
        got->lease = {};
    }
    SECTION("the SET had not arrived")
    {
        const auto stale_link = leave_stale_connection(sim, locks);
        master.restart("another run", keeps_keys);
        stale_link->let_go();
    }
    sim.run_for(2s);
    CHECK(master.clients() == 1);
    CHECK(master.count("CLIENT KILL") == 0);
    // Outstanding releases are sent nevertheless: the keys may have been on its disk.
    CHECK(master.count("release") == 1);
    CHECK(sim.keys() == 0);
}

TEST_CASE("no connection is killed on a server without a run id", "[scenario-59]")
{
    simulation sim{3};
    sim.master(0).tells_run_id = false;
    lock_manager locks = sim.make_connected_manager();
    const auto stale_link = leave_stale_connection(sim, locks);
    stale_link->let_go();
    sim.run_for(2s);
    CHECK(sim.master(0).count("CLIENT KILL") == 0);
    CHECK(sim.master(0).count("release") >= 1);
    CHECK(sim.keys() == 0);
}

TEST_CASE("without the permission to kill, an outstanding key is released once and cleared", "[scenario-18]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    master.refuse("CLIENT KILL", "-NOPERM this user has no permissions to run the 'client|kill' command\r\n");
    const auto stale_link = leave_stale_connection(sim, locks);
    sim.run_for(2s);
    CHECK(master.count("CLIENT KILL") == 1);
    CHECK(master.count("release") == 1);
    // The SET may run now. Then only the ttl frees its key.
    stale_link->let_go();
    sim.run_until_idle();
    CHECK(master.key_count() == 1);
    master.break_connections();
    sim.run_for(2s);
    CHECK(master.count("release") == 1);
}

TEST_CASE(
    "a server under another one's address doesn't clear the stale connections of that one", "[scenario-18]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    const auto stale_link = leave_stale_connection(sim, locks);
    // The name leads to another master for a while, which is refused.
    sim.put(0, 1);
    sim.run_for(2s);
    REQUIRE(master.clients() == 1);
    sim.put(0, 0);
    sim.run_for(2s);
    REQUIRE(master.clients() >= 1);
    CHECK(master.count("CLIENT KILL") == 1);
    stale_link->let_go();
    sim.run_until_idle();
    CHECK(sim.keys() == 0);
}

TEST_CASE("outstanding releases don't expire", "[scenario-60]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    master.hang();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 1s});
    REQUIRE(sim.finish(got));
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    REQUIRE(!released->error);
    // Much later than the ttl, and long after the connection was closed, the SET runs, with its full ttl.
    sim.run_for(2min);
    master.resume();
    REQUIRE(master.count("SET") == 1);
    sim.run_for(600ms);
    CHECK(sim.keys() == 0);
    CHECK(master.count("release") >= 1);
}

TEST_CASE("outstanding releases survive a restart of the master", "[scenario-60]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10min});
    REQUIRE(sim.finish(got));
    sim.run_until_idle();
    master.door = entrance::refuses;
    master.restart("another run", true);
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    sim.run_for(1min);
    CHECK(master.key_count() == 1);
    master.door = entrance::open;
    CHECK(sim.run_until_no_keys(1s));
}

TEST_CASE("a SET is never sent again after its connection broke", "[scenario-20]")
{
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
    {
        simulation sim{3, seed};
        lock_manager locks = sim.make_connected_manager();
        for (const auto& each : sim.masters())
        {
            each->network.jitter = 2ms;
        }
        for (int round = 0; round < 30; ++round)
        {
            const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 50ms});
            for (int broken = 0; broken < 3; ++broken)
            {
                sim.run_for(std::chrono::microseconds{sim.world().random_below(20'000)});
                sim.master(sim.world().random_below(3)).break_connections();
            }
            REQUIRE(sim.finish(got));
        }
        CHECK(sim.run_until_no_keys());
        for (const auto& each : sim.masters())
        {
            std::map<std::string, int> times;
            for (const received& one : each->log())
            {
                times[one.words.size() > 2 && one.what == "SET" ? one.words[2] : "none"] += 1;
            }
            times.erase("none");
            CHECK(!times.empty());
            CHECK(std::all_of(times.begin(), times.end(), [](const auto& id) { return id.second == 1; }));
        }
    }
}

} // namespace redlock::test
