// SPDX-License-Identifier: BSL-1.0
// Other clients of the algorithm: plain keys on the same masters exclude each other, whichever client has set them.
#include "integration/fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstddef>
#include <string>
#include <vector>

using namespace redlock::test;
using redlock::errc;
using redlock::vote;

namespace
{

/// The release script in the documentation of distributed locks with Redis.
constexpr const char* documented_release =
    R"lua(if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end)lua";

reply set_by_another_client(server& at, const std::string& owner)
{
    return at.command({"SET", "lock:stock", owner, "NX", "PX", "600000"});
}

} // namespace

TEST_CASE("a key that another client has set on a quorum with plain SET NX PX excludes ours")
{
    std::vector<server> servers = start_servers(5);
    client own{unhurried(servers)};
    own.wait_for_masters();
    for (std::size_t index = 0; index < 3; ++index)
    {
        REQUIRE(set_by_another_client(servers[index], "another client") == "OK");
    }
    const acquired refused = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(refused.report);
    CHECK(refused.error == errc::held_by_other);
    CHECK(refused.report.count(vote::denied) == 3);
    // Our keys on the other masters are released, and the other client's keys remain.
    for (std::size_t index = 0; index < servers.size(); ++index)
    {
        const bool as_it_was = index < 3 ? becomes(servers[index], "lock:stock", "another client")
                                         : goes_away(servers[index], "lock:stock");
        CHECK(as_it_was);
    }
    for (std::size_t index = 0; index < 3; ++index)
    {
        REQUIRE(
            servers[index].command({"EVAL", documented_release, "1", "lock:stock", "another client"}) == 1);
    }
    CHECK_FALSE(own.try_acquire("stock", {.ttl = long_ttl}).error);
}

TEST_CASE("a key that another client has set on a minority doesn't exclude ours, and isn't touched")
{
    std::vector<server> servers = start_servers(5);
    client own{unhurried(servers)};
    own.wait_for_masters();
    REQUIRE(set_by_another_client(servers[0], "another client") == "OK");
    REQUIRE(set_by_another_client(servers[4], "another client") == "OK");
    redlock::lease lease = own.win("stock");
    CHECK_FALSE(extend(lease, 2 * long_ttl).error);
    CHECK_FALSE(release(lease).error);
    for (std::size_t index = 1; index < 4; ++index)
    {
        CHECK(goes_away(servers[index], "lock:stock"));
    }
    CHECK(servers[0].command({"GET", "lock:stock"}) == "another client");
    CHECK(servers[4].command({"GET", "lock:stock"}) == "another client");
}

TEST_CASE(
    "a key of another client on one of two masters is enough to be refused, and ours is released on the "
    "other",
    "[scenario-35]")
{
    std::vector<server> servers = start_servers(2);
    client own{unhurried(servers)};
    own.wait_for_masters();
    REQUIRE(set_by_another_client(servers[1], "another client") == "OK");
    const acquired refused = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(refused.report);
    CHECK(refused.error == errc::held_by_other);
    CHECK(goes_away(servers[0], "lock:stock"));
    CHECK(servers[1].command({"GET", "lock:stock"}) == "another client");
}

TEST_CASE("our key excludes another client's plain SET NX PX until it is released")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    for (server& each : servers)
    {
        REQUIRE(becomes(each, "lock:stock", lease.owner_id()));
        CHECK(set_by_another_client(each, "another client").is_null());
        // The other client's release doesn't delete our key.
        CHECK(each.command({"EVAL", documented_release, "1", "lock:stock", "another client"}) == 0);
    }
    CHECK_FALSE(release(lease).error);
    for (server& each : servers)
    {
        REQUIRE(goes_away(each, "lock:stock"));
        CHECK(set_by_another_client(each, "another client") == "OK");
    }
}

TEST_CASE(
    "the documented script releases our key, and our own release then finds it gone, which is no failure")
{
    std::vector<server> servers = start_servers(5);
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    const std::string owner{lease.owner_id()};
    for (server& each : servers)
    {
        REQUIRE(becomes(each, "lock:stock", owner));
        CHECK(each.command({"EVAL", documented_release, "1", "lock:stock", owner}) == 1);
    }
    const finished released = release(lease);
    INFO(released.report);
    CHECK_FALSE(released.error);
    CHECK(released.report.already_gone());
}

TEST_CASE("an extension whose keys another client has deleted loses the lease and doesn't set them again")
{
    // Deleted, or set again by another client: in both cases the key isn't ours.
    const bool set_anew = GENERATE(false, true);
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    for (server& each : servers)
    {
        REQUIRE(becomes(each, "lock:stock", lease.owner_id()));
    }
    for (std::size_t index = 0; index < 2; ++index)
    {
        REQUIRE(servers[index].command({"DEL", "lock:stock"}) == 1);
        if (set_anew)
        {
            REQUIRE(set_by_another_client(servers[index], "another client") == "OK");
        }
    }
    const finished extended = extend(lease, 2 * long_ttl);
    INFO(extended.report);
    CHECK(extended.error == errc::lease_lost);
    CHECK_FALSE(lease.valid());
    CHECK(extend(lease, 2 * long_ttl).error == errc::lease_lost);
    CHECK_FALSE(release(lease).error);
    for (std::size_t index = 0; index < 2; ++index)
    {
        const reply now = servers[index].command({"GET", "lock:stock"});
        CHECK((set_anew ? now == "another client" : now.is_null()));
    }
    CHECK(goes_away(servers[2], "lock:stock"));
}

TEST_CASE("a key that is missing on one master is set again once an extension is confirmed", "[scenario-27]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    for (server& each : servers)
    {
        REQUIRE(becomes(each, "lock:stock", lease.owner_id()));
    }
    REQUIRE(servers[1].command({"FLUSHALL"}) == "OK");
    const finished extended = extend(lease, 2 * long_ttl);
    INFO(extended.report);
    CHECK_FALSE(extended.error);
    CHECK(becomes(servers[1], "lock:stock", lease.owner_id()));
    const reply left = servers[1].command({"PTTL", "lock:stock"});
    CHECK(left.integer > long_ttl.count());
    CHECK_FALSE(release(lease).error);
    for (server& each : servers)
    {
        CHECK(goes_away(each, "lock:stock"));
    }
}
