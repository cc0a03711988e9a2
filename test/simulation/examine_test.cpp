// SPDX-License-Identifier: BSL-1.0
// Tests of examinations, with well-behaved masters and with masters that fail before or during them.
#include "guarded_group.hpp"
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

/// The result of an examination.
struct examined
{
    bool done = false;
    error_code error;
    std::vector<master_examination> masters;
};

std::shared_ptr<examined> examine(lock_manager& locks)
{
    auto result = std::make_shared<examined>();
    locks.async_examine(
        [result](error_code error, std::vector<master_examination> found)
        {
            result->done = true;
            result->error = error;
            result->masters = std::move(found);
        });
    return result;
}

bool finish(simulation& sim, const std::shared_ptr<examined>& what)
{
    return sim.run_until([&] { return what->done; }, 1min);
}

} // namespace

TEST_CASE("a reply that can't be one to a query breaks the connection, like one that can't be a vote")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const auto connections = [&sim] { return sim.master(0).count("HELLO"); };
    REQUIRE(connections() == 1);
    SECTION("an inspection's")
    {
        const char* const reply = GENERATE("+OK\r\n", ":1\r\n", "*2\r\n:1\r\n:1\r\n");
        sim.master(0).answer("EVAL", {.bytes = reply});
        bool done = false;
        locks.async_inspect(
            "stock",
            [&done](error_code, const inspection& found)
            {
                done = true;
                CHECK(found.masters()[0].reason == master_errc::protocol_error);
            });
        REQUIRE(sim.run_until([&] { return done; }, 1min));
    }
    SECTION("an examination's")
    {
        const char* const query = GENERATE("TIME", "CONFIG");
        // A message of a subscription is an array in RESP2, but it has no pairs.
        const char* const reply = GENERATE("+OK\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n");
        sim.master(0).answer(query, {.bytes = reply});
        REQUIRE(finish(sim, examine(locks)));
    }
    sim.run_for(1s);
    CHECK(connections() == 2);
}

TEST_CASE("an examination finds nothing at masters that are well, and how far away they are")
{
    simulation sim{3};
    sim.master(2).network.back = 5ms;
    lock_manager locks = sim.make_manager();
    const auto found = examine(locks);
    REQUIRE(finish(sim, found));
    CHECK(!found->error);
    REQUIRE(found->masters.size() == 3);
    for (const master_examination& each : found->masters)
    {
        CHECK(!each.reason);
        CHECK(each.risks.empty());
        CHECK(each.server == "redis 7.0.15");
    }
    CHECK(found->masters[0].median_round_trip == 200us);
    CHECK(found->masters[2].median_round_trip == 5100us);
}

TEST_CASE("an examination doesn't name a command of the queue that is allowed by now", "[queue]")
{
    const char* const refused = GENERATE("ZREM", "DEL");
    simulation sim{3};
    sim.master(1).habits[refused] = "-NOPERM this user has no permissions\r\n";
    lock_manager locks = sim.make_connected_manager();
    const auto before = examine(locks);
    REQUIRE(finish(sim, before));
    CHECK(before->masters.at(1).risks.size() == 1);
    sim.master(1).habits = {{"HGET", "-NOPERM this user has no permissions\r\n"}}; // Instead.
    sim.run_for(3s);
    const auto meanwhile = examine(locks);
    REQUIRE(finish(sim, meanwhile));
    REQUIRE(meanwhile->masters.at(1).risks.size() == 1);
    CHECK(meanwhile->masters.at(1).risks.front().detail.starts_with("it refuses HGET ("));
    sim.master(1).habits.clear();
    sim.run_for(3s);
    const auto after = examine(locks);
    REQUIRE(finish(sim, after));
    CHECK(after->masters.at(1).risks.empty());
}

TEST_CASE(
    "an examination in guarded mode names the command without which an armed master can't vote", "[guarded]")
{
    const std::string refused = GENERATE("HMGET", "HSET");
    CAPTURE(refused);
    guarded_simulation test{5};
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.group.put_marker(3, core::marker_state::quarantine); // Nothing is tried there.
    test.sim.master(1).habits[refused] = "-NOPERM this user has no permissions\r\n";
    const std::string counters = test.sim.master(1).field(fence_key, "floor").value_or("");
    const auto found = examine(locks);
    REQUIRE(finish(test.sim, found));
    REQUIRE(found->masters.size() == 5);
    for (const std::size_t other : {0U, 2U})
    {
        REQUIRE(found->masters[other].guarded);
        CHECK(!found->masters[other].guarded->reason);
        CHECK(found->masters[other].guarded->detail.empty());
    }
    REQUIRE(found->masters[1].guarded);
    CHECK(found->masters[1].guarded->reason == master_errc::no_permission);
    CHECK(
        found->masters[1].guarded->detail ==
        fmt::format("{}: ERR The user executing the script can't run this command or subcommand", refused));
    CHECK(test.sim.master(1).field(fence_key, "floor") == counters);
}

TEST_CASE(
    "an examination in guarded mode names the command without which no client can arm a master", "[guarded]")
{
    guarded_simulation test{3};
    const std::string refused = GENERATE("HVALS", "SELECT", "EVAL", "HSET");
    CAPTURE(refused);
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    // One that is armed and one that isn't; a vote of the first needs HSET as well.
    test.sim.run_for(1s);
    const std::size_t master = refused == "HSET" ? 2 : 1;
    test.sim.master(master).habits[refused] = "-NOPERM this user has no permissions\r\n";
    if (master == 2)
    {
        test.sim.master(2).restart("another run");
        test.sim.run_for(2s);
    }
    const auto found = examine(locks);
    REQUIRE(finish(test.sim, found));
    const master_examination& its = found->masters.at(master);
    REQUIRE(its.guarded);
    CHECK(its.guarded->reason == (master == 2 ? error_code{master_errc::quarantined} : error_code{}));
    REQUIRE(its.risks.size() == (refused == "HSET" ? 2 : 1)); // A queue needs HSET as well.
    CHECK(its.risks.front().what == (refused == "HSET" ? risk::limited_queue : risk::arming_refused));
    CHECK(its.risks.back().what == risk::arming_refused);
    CHECK(its.risks.back().detail.starts_with(refused + ": "));
    CHECK(its.risks.back().reason == master_errc::no_permission);
    CHECK(found->masters.at(0).risks.empty());
}

TEST_CASE("an examination in guarded mode tries the commands of arming before there is a group", "[guarded]")
{
    simulation sim{3};
    config options = sim.options();
    options.guarded.emplace();
    lock_manager locks = sim.make_connected_manager(options);
    sim.master(1).habits["HVALS"] = "-ERR Unknown Redis command called from script\r\n";
    const auto found = examine(locks);
    REQUIRE(finish(sim, found));
    CHECK(found->masters.at(0).risks.empty());
    const master_examination& its = found->masters.at(1);
    REQUIRE(its.guarded);
    CHECK(its.guarded->reason == master_errc::not_provisioned);
    CHECK(its.guarded->advice.step == guarded_step::provision);
    REQUIRE(its.risks.size() == 1);
    CHECK(its.risks[0].what == risk::arming_refused);
    CHECK(its.risks[0].detail.starts_with("HVALS: "));
}

TEST_CASE("an examination in guarded mode doesn't call a master armed that breaks at its trial", "[guarded]")
{
    guarded_simulation test{3};
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.run_for(1s);
    SECTION("by an end of the connection")
    {
        test.sim.master(1).answer("trial", {.closes = true});
    }
    SECTION("by a reply that can't be one")
    {
        test.sim.master(1).answer("trial", {.bytes = "+OK\r\n", .nonsense = true});
    }
    const auto found = examine(locks);
    REQUIRE(finish(test.sim, found));
    REQUIRE(found->masters.at(1).guarded);
    CHECK(found->masters[1].guarded->reason);
    CHECK(!found->masters[0].guarded->reason);
}

TEST_CASE("an examination shows no word of a trial as the server has sent it", "[guarded]")
{
    guarded_simulation test{3};
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.run_for(1s);
    // Clears a terminal.
    test.sim.master(1).answer(
        "trial", {.bytes = "*4\r\n$4\r\n\x1b[2J\r\n$4\r\n\x1b[2J\r\n$4\r\n\x1b[2J\r\n$4\r\n\x1b[2J\r\n",
                  .nonsense = true});
    const auto found = examine(locks);
    REQUIRE(finish(test.sim, found));
    const master_examination& its = found->masters.at(1);
    REQUIRE(its.guarded);
    REQUIRE(its.risks.size() == 1);
    CHECK(its.guarded->detail.find('\x1b') == std::string::npos);
    CHECK(its.risks[0].detail.find('\x1b') == std::string::npos);
}

TEST_CASE("an examination says that a master hangs while it is connected to")
{
    simulation sim{3};
    sim.master(0).hang();
    sim.master(1).door = entrance::silent;
    lock_manager locks = sim.make_manager();
    const auto found = examine(locks);
    REQUIRE(finish(sim, found));
    REQUIRE(found->masters.size() == 3);
    CHECK(found->masters[0].reason == master_errc::connect_timed_out);
    CHECK(found->masters[1].reason == master_errc::connect_timed_out);
    CHECK(!found->masters[2].reason);
}

TEST_CASE("a master that breaks while it is examined can't be used")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const auto found = examine(locks);
    sim.run_for(500ms);
    sim.master(1).door = entrance::refuses;
    sim.master(1).break_connections();
    REQUIRE(finish(sim, found));
    REQUIRE(found->masters.size() == 3);
    CHECK(!found->masters[0].reason);
    CHECK(found->masters[1].reason == asio::error::connection_refused);
}

TEST_CASE("an examination sees a clock that is set meanwhile", "[scenario-4][scenario-5]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const auto found = examine(locks);
    sim.run_for(500ms);
    sim.master(1).clock_of_its_own().jump(sim.now(), 1min);
    REQUIRE(finish(sim, found));
    REQUIRE(found->masters.size() == 3);
    CHECK(found->masters[0].risks.empty());
    REQUIRE(found->masters[1].risks.size() == 1);
    CHECK(found->masters[1].risks[0].what == risk::clock);
}

} // namespace redlock::test
