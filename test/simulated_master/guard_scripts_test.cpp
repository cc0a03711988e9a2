// SPDX-License-Identifier: BSL-1.0
// The scripts of guarded mode on real servers: what each answers, and what it changes.
#include "guarded_master.hpp"

#include "core/server_error.hpp"
#include "net/guard_scripts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace redlock::test;

TEST_CASE("guard: a grant raises the counter of its slot, and sets the key for its ttl")
{
    guarded_master one;
    CHECK(one.acquire("mine") == 1001);
    CHECK(one.holder() == "mine");
    const reply left = one.at().command({"PTTL", one.key});
    CHECK((left.integer > 0 && left.integer <= 60'000));
    CHECK(one.counter() == "1001");
    CHECK(one.counter("8").is_null());
    one.at().command({"DEL", one.key});
    CHECK(one.acquire("next") == 1002);
    one.at().command({"DEL", one.key});
    CHECK(one.acquire("other slot", "8") == 1001);
}

TEST_CASE("guard: an owner that has the key is granted it with its counter, and another one is refused")
{
    guarded_master one;
    REQUIRE(one.acquire("mine") == 1001);
    const std::vector<std::string> before = one.contents();
    CHECK(one.acquire("mine", "7", 5000) == 1001);
    CHECK(one.acquire("another") == 0);
    CHECK(one.contents() == before);
}

TEST_CASE("guard: a key of another type is held, and stays")
{
    guarded_master one;
    one.at().command({"HSET", one.key, "field", "value"});
    const std::vector<std::string> before = one.contents();
    CHECK(one.acquire("mine") == 0);
    CHECK(one.raise("mine", 2000) == 0);
    CHECK(one.contents() == before);
}

TEST_CASE("guard: without the marker, or with another one, nothing is granted or raised")
{
    guarded_master one;
    const bool granted = GENERATE(false, true);
    if (granted)
    {
        REQUIRE(one.acquire("mine") == 1001);
    }
    SECTION("it is gone")
    {
        one.at().command({"DEL", one.guard});
    }
    SECTION("it has another nonce")
    {
        std::string other = one.marker();
        other.replace(other.find("fedcba98"), 8, "01234567");
        one.at().command({"SET", one.guard, other});
    }
    SECTION("it is in quarantine")
    {
        std::string other = one.marker();
        other.replace(other.find("armed"), 5, "quarantine");
        one.at().command({"SET", one.guard, other});
    }
    SECTION("its key has another type")
    {
        one.at().command({"DEL", one.guard});
        one.at().command({"RPUSH", one.guard, "element"});
    }
    SECTION("the counters are gone")
    {
        one.at().command({"DEL", one.fence});
    }
    SECTION("the counters have another type")
    {
        one.at().command({"SET", one.fence, "text"});
    }
    SECTION("the floor is no number")
    {
        one.at().command({"HSET", one.fence, "floor", "text"});
    }
    SECTION("everything was flushed")
    {
        one.at().command({"FLUSHALL"});
    }
    SECTION("databases were swapped")
    {
        one.at().command({"SWAPDB", "0", "1"});
    }
    const std::vector<std::string> before = one.contents();
    CHECK(one.acquire(granted ? "mine" : "another") == redlock::net::guard_differs);
    const reply raised = one.raise("mine", 2000);
    CHECK((raised == redlock::net::guard_differs || (raised == 0 && !granted)));
    CHECK(one.contents() == before);
}

TEST_CASE(
    "guard: after a restart or a promotion, nothing is granted or raised with the old marker",
    "[scenario-70][scenario-77]")
{
    guarded_master one;
    REQUIRE(one.acquire("mine") == 1001);
    SECTION("restarted with its data")
    {
        one.at().command({"SAVE"});
        one.at().restart();
        REQUIRE(one.holder() == "mine");
    }
    SECTION("demoted and promoted")
    {
        server other{server_options::plain()};
        one.at().command({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
        one.at().command({"REPLICAOF", "NO", "ONE"});
        REQUIRE(one.holder() == "mine");
    }
    const std::vector<std::string> before = one.contents();
    CHECK(one.acquire("mine") == redlock::net::incarnation_differs);
    CHECK(one.acquire("another") == redlock::net::incarnation_differs);
    CHECK(one.raise("mine", 2000) == redlock::net::incarnation_differs);
    CHECK(one.contents() == before);
}

TEST_CASE("guard: a replica grants nothing, although it has the marker of its incarnation")
{
    guarded_master one;
    server replica{server_options::plain()};
    replica.command({"CONFIG", "SET", "replica-read-only", "no"});
    replica.command({"REPLICAOF", "127.0.0.1", std::to_string(one.at().port())});
    REQUIRE(one.at().command({"WAIT", "1", "10000"}) == 1);
    REQUIRE(replica.command({"GET", one.guard}) == one.marker());
    REQUIRE(replication_id_of(replica) == replication_id_of(one.at()));
    CHECK(one.acquire_at(replica, "mine", "7", 0, one.later()) == redlock::net::incarnation_differs);
    CHECK(replica.command({"GET", one.key}).is_null());
}

TEST_CASE("guard: a counter that can't be raised grants nothing")
{
    guarded_master one;
    const std::vector<std::string> before = one.contents();
    one.at().command({"ACL", "SETUSER", "default", "-hset"});
    CHECK(one.acquire("mine").is_error());
    CHECK(one.contents() == before);
}

TEST_CASE("guard: a user who may not read the counters gets an error, and no answer about the marker")
{
    guarded_master one;
    const std::vector<std::string> before = one.contents();
    one.at().command({"ACL", "SETUSER", "default", "-hmget"});
    const auto is_refused = [](const reply& answer)
    {
        return answer.is_error() &&
               redlock::core::classify(answer.text) == redlock::core::server_error::no_permission;
    };
    CHECK(is_refused(one.acquire("mine")));
    CHECK(is_refused(one.ask("-a:1", "mine")));
    CHECK(one.contents() == before);
    one.at().command({"SET", one.key, "mine"});
    CHECK(is_refused(one.raise("mine", 2000)));
}

TEST_CASE("guard: a clock that is ahead of the latest time grants nothing")
{
    guarded_master one;
    const std::vector<std::string> before = one.contents();
    CHECK(one.acquire_at(one.at(), "mine", "7", 0, one.before_now()) == redlock::net::clock_is_ahead);
    CHECK(one.contents() == before);
    // Whoever has the key isn't shown whether the clock is ahead.
    REQUIRE(one.acquire("mine") == 1001);
    CHECK(one.acquire_at(one.at(), "another", "7", 0, one.before_now()) == 0);
}

TEST_CASE(
    "guard: a hint is taken if it is larger, unless it is far ahead of both clock and counter",
    "[scenario-72]")
{
    guarded_master one;
    const std::int64_t now = time_of(one.at());
    CHECK(one.acquire("first", "1", 999) == 1001);
    one.at().command({"DEL", one.key});
    CHECK(one.acquire("second", "2", now) == now);
    one.at().command({"DEL", one.key});
    // Not an hour ahead of the clock, however far above the counter.
    CHECK(one.acquire("third", "3", now + one.hour - one.minute) == now + one.hour - one.minute);
    one.at().command({"DEL", one.key});
    CHECK(one.acquire("fourth", "4", now + 2 * one.hour) == 1001);
    one.at().command({"DEL", one.key});
    // Counters that are ahead of the clock are continued.
    const std::int64_t ahead = now + 3 * one.hour;
    one.arm(ahead);
    CHECK(one.acquire("fifth", "5", ahead + 1'000'000) == ahead + 1'000'000);
    one.at().command({"DEL", one.key});
    CHECK(one.acquire("sixth", "6", ahead + 2'000'000) == ahead + 1);
}

TEST_CASE("guard: numbers are exact up to 2^53, and end there")
{
    guarded_master one{guarded_master::end_of_numbers - 3};
    CHECK(one.acquire("first") == guarded_master::end_of_numbers - 2);
    CHECK(one.counter() == std::to_string(guarded_master::end_of_numbers - 2));
    one.at().command({"DEL", one.key});
    CHECK(one.acquire("second") == guarded_master::end_of_numbers - 1);
    one.at().command({"DEL", one.key});
    const std::vector<std::string> before = one.contents();
    CHECK(one.acquire("third") == redlock::net::guard_differs);
    CHECK(one.contents() == before);
}

TEST_CASE("guard: a raise only raises, and only for the owner of the key")
{
    guarded_master one;
    REQUIRE(one.acquire("mine") == 1001);
    CHECK(one.raise("another", 2000) == 0);
    CHECK(one.counter() == "1001");
    CHECK(one.raise("mine", 2000) == 1);
    CHECK(one.counter() == "2000");
    // Late, or twice.
    CHECK(one.raise("mine", 1500) == 1);
    CHECK(one.raise("mine", 2000) == 1);
    CHECK(one.counter() == "2000");
    CHECK(one.holder() == "mine");
    one.at().command({"DEL", one.key});
    CHECK(one.raise("mine", 3000) == 0);
    CHECK(one.acquire("next") == 2001);
}

TEST_CASE("guard: a counter below the floor counts as the floor")
{
    guarded_master one;
    REQUIRE(one.acquire("mine") == 1001);
    one.arm(5000);
    CHECK(one.acquire("mine") == 5000);
    CHECK(one.raise("mine", 4000) == 1);
    CHECK(one.counter() == "1001");
    one.at().command({"DEL", one.key});
    CHECK(one.acquire("next") == 5001);
}

TEST_CASE("guard: a master without memory grants nothing, and loses no counter")
{
    guarded_master one;
    one.at().command({"CONFIG", "SET", "maxmemory", "1"});
    const std::vector<std::string> before = one.contents();
    CHECK(one.acquire("mine").text.starts_with("OOM"));
    CHECK(one.contents() == before);
}
