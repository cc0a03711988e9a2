// SPDX-License-Identifier: BSL-1.0
// The scripts of guarded mode for clients that wait in a queue, and for extensions, on real servers.
#include "guarded_master.hpp"

#include "net/guard_scripts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace redlock::test;

namespace
{

/// Checks that the resource was granted to a waiting client.
void expect_granted(const reply& answer, std::int64_t waiting, std::int64_t counter)
{
    INFO(describe(answer));
    REQUIRE(answer.elements.size() == 2);
    CHECK(answer.elements[0] == waiting);
    CHECK(answer.elements[1] == counter);
}

/// Checks that a client was refused, and returns the time to live of the key.
std::int64_t expect_refused(const reply& answer, std::int64_t position, std::int64_t waiting)
{
    INFO(describe(answer));
    REQUIRE(answer.elements.size() == 3);
    CHECK(answer.elements[0] == position);
    CHECK(answer.elements[2] == waiting);
    return answer.elements[1].integer;
}

} // namespace

TEST_CASE("guard: a question grants a free resource with the next counter, and leaves no queue")
{
    guarded_master one;
    expect_granted(one.ask("-a:1", "mine"), 0, 1001);
    CHECK(one.holder() == "mine");
    CHECK((one.left() > 0 && one.left() <= 60'000));
    CHECK(one.counter() == "1001");
    CHECK(one.at().command({"EXISTS", one.order, one.alive}) == 0);
    one.at().command({"DEL", one.key});
    const std::int64_t now = time_of(one.at());
    expect_granted(one.ask("-a:2", "next", {.hint = now}), 0, now);
    CHECK(one.counter() == std::to_string(now));
}

TEST_CASE("guard: a question of the owner is granted with the counter that it has, and the full ttl")
{
    guarded_master one;
    expect_granted(one.ask("-a:1", "mine"), 0, 1001);
    expect_refused(one.ask("-b:1", "another"), 0, 1);
    one.at().command({"PEXPIRE", one.key, "1000"});
    const std::vector<std::string> before = one.contents();
    expect_granted(one.ask("-a:1", "mine", {.hint = 5000}), 1, 1001);
    CHECK(one.left() > 1000);
    CHECK(one.contents() == before);
}

TEST_CASE("guard: a question for the key of another enters the queue, and raises no counter")
{
    guarded_master one;
    REQUIRE(one.acquire("another") == 1001);
    const std::int64_t left = expect_refused(one.ask("-a:1", "mine", {.hint = 5000}), 0, 1);
    CHECK((left > 0 && left <= 60'000));
    expect_refused(one.ask("-b:1", "third"), 1, 2);
    CHECK(one.queue() == std::vector<std::string>{"-a:1", "-b:1"});
    CHECK(one.counter() == "1001");
    CHECK(one.holder() == "another");
    expect_refused(one.ask("-c:1", "fourth", {.liveness = "0"}), -1, 2);
    CHECK(one.queue() == std::vector<std::string>{"-a:1", "-b:1"});
}

TEST_CASE("guard: questions are granted in the order of the queue, each with a larger counter")
{
    guarded_master one;
    REQUIRE(one.acquire("another") == 1001);
    expect_refused(one.ask("-a:1", "first"), 0, 1);
    expect_refused(one.ask("-b:1", "second"), 1, 2);
    expect_refused(one.ask("-c:1", "longest", {.waited = "60000"}), 0, 3);
    one.at().command({"DEL", one.key});
    CHECK(expect_refused(one.ask("-b:1", "second"), 2, 3) == -2);
    CHECK(one.holder().is_null());
    CHECK(one.counter() == "1001");
    expect_granted(one.ask("-c:1", "longest"), 2, 1002);
    one.at().command({"DEL", one.key});
    expect_granted(one.ask("-a:1", "first"), 1, 1003);
    one.at().command({"DEL", one.key});
    expect_granted(one.ask("-b:1", "second"), 0, 1004);
    CHECK(one.at().command({"EXISTS", one.order, one.alive}) == 0);
}

TEST_CASE("guard: a question to a master that may not vote enters nobody, and changes nothing")
{
    guarded_master one;
    const bool is_held = GENERATE(false, true);
    if (is_held)
    {
        REQUIRE(one.acquire("another") == 1001);
        expect_refused(one.ask("-b:1", "waiting"), 0, 1);
    }
    guarded_question how;
    std::int64_t expected = redlock::net::guard_differs;
    SECTION("the marker is gone")
    {
        one.at().command({"DEL", one.guard});
    }
    SECTION("it is in quarantine")
    {
        std::string other = one.marker();
        other.replace(other.find("armed"), 5, "quarantine");
        one.at().command({"SET", one.guard, other});
    }
    SECTION("the counters are gone")
    {
        one.at().command({"DEL", one.fence});
    }
    SECTION("the counters have another type")
    {
        one.at().command({"SET", one.fence, "text"});
    }
    SECTION("restarted with its data")
    {
        one.at().command({"SAVE"});
        one.at().restart();
        expected = redlock::net::incarnation_differs;
    }
    SECTION("demoted and promoted")
    {
        server other{server_options::plain()};
        one.at().command({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
        one.at().command({"REPLICAOF", "NO", "ONE"});
        expected = redlock::net::incarnation_differs;
    }
    SECTION("its clock is ahead")
    {
        how.latest = one.before_now();
        expected = redlock::net::clock_is_ahead;
    }
    SECTION("the numbers have ended")
    {
        one.at().command({"HSET", one.fence, "7", std::to_string(guarded_master::end_of_numbers - 1)});
    }
    const std::vector<std::string> before = one.contents();
    CHECK(one.ask("-a:1", "mine", how) == expected);
    how.waited = "60000";
    CHECK(one.ask("-b:1", "waiting", how) == expected);
    CHECK(one.contents() == before);
}

TEST_CASE("guard: a question grants the largest number, and none above it")
{
    guarded_master one{guarded_master::end_of_numbers - 2};
    expect_granted(one.ask("-a:1", "mine"), 0, guarded_master::end_of_numbers - 1);
    CHECK(one.counter() == std::to_string(guarded_master::end_of_numbers - 1));
    one.at().command({"DEL", one.key});
    CHECK(one.ask("-a:1", "next") == redlock::net::guard_differs);
    CHECK(one.holder().is_null());
}

TEST_CASE("guard: a question for a key of another type waits, and the key stays")
{
    guarded_master one;
    one.at().command({"HSET", one.key, "field", "value"});
    CHECK(expect_refused(one.ask("-a:1", "mine"), 0, 1) == -1);
    CHECK(one.at().command({"HGET", one.key, "field"}) == "value");
    CHECK(one.counter().is_null());
}

TEST_CASE("guard: a question whose counter can't be raised grants nothing")
{
    guarded_master one;
    const std::vector<std::string> before = one.contents();
    one.at().command({"ACL", "SETUSER", "default", "-hset"});
    CHECK(one.ask("-a:1", "mine").is_error());
    CHECK(one.contents() == before);
}

TEST_CASE("guard: a question enters nobody at a master without memory")
{
    guarded_master one;
    REQUIRE(one.acquire("another") == 1001);
    const std::vector<std::string> before = one.contents();
    one.at().command({"CONFIG", "SET", "maxmemory", "1"});
    CHECK(one.ask("-a:1", "mine").text.starts_with("OOM"));
    CHECK(one.contents() == before);
}

TEST_CASE("guard: an extension only lengthens the ttl, and only for the owner of the key")
{
    guarded_master one;
    REQUIRE(one.acquire("mine") == 1001);
    CHECK(one.extend("mine", "120000") == 1);
    CHECK(one.left() > 60'000);
    CHECK(one.extend("mine", "60000") == 1);
    CHECK(one.left() > 60'000);
    CHECK(one.extend("another", "240000") == 0);
    CHECK(one.left() <= 120'000);
    CHECK(one.counter() == "1001");
    one.at().command({"DEL", one.key});
    CHECK(one.extend("mine", "120000") == 0);
    CHECK(one.holder().is_null());
}

TEST_CASE("guard: an extension needs neither an armed master nor its incarnation, but the group of the lease")
{
    guarded_master one;
    REQUIRE(one.acquire("mine") == 1001);
    std::string_view group = "redlock 1 0123456789abcdef ";
    std::int64_t expected = 1;
    SECTION("in quarantine")
    {
        one.at().command(
            {"SET", one.guard, to_text(one.marker_with(redlock::core::marker_state::quarantine))});
    }
    SECTION("restarted with its data")
    {
        one.at().command({"SAVE"});
        one.at().restart();
    }
    SECTION("the counters are gone")
    {
        one.at().command({"DEL", one.fence});
    }
    SECTION("in another group")
    {
        group = "redlock 1 fedcba9876543210 ";
        expected = redlock::net::guard_differs;
    }
    SECTION("without a marker")
    {
        one.at().command({"DEL", one.guard});
        expected = redlock::net::guard_differs;
    }
    SECTION("a key of another type has the marker's name")
    {
        one.at().command({"DEL", one.guard});
        one.at().command({"RPUSH", one.guard, "element"});
        expected = redlock::net::guard_differs;
    }
    const std::vector<std::string> before = one.contents();
    CHECK(one.extend("mine", "120000", group) == expected);
    CHECK((one.left() > 60'000) == (expected == 1));
    CHECK(one.contents() == before);
}
