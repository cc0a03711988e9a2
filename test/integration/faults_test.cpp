// SPDX-License-Identifier: BSL-1.0
// Masters that refuse: each is one vote less, with its reason, and no key is left.
#include "integration/fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace redlock::test;
using namespace std::chrono_literals;
using redlock::errc;
using redlock::master_errc;
using redlock::vote;

namespace
{

/// The last master's vote. A round may be decided before that vote, so a lease is won until a round has it.
struct vote_of_last
{
    redlock::master_report vote;
    redlock::lease lease;
};

/// Repeats until the last master has voted before the round was decided.
vote_of_last win_with_vote_of_last(client& own, const std::string& resource)
{
    for (int attempt = 0; attempt < 1000; ++attempt)
    {
        acquired result = own.try_acquire(resource, {.ttl = long_ttl});
        if (result.error)
        {
            throw std::runtime_error{result.report.to_string()};
        }
        if (result.report.masters().back().vote != vote::pending)
        {
            return {result.report.masters().back(), std::move(result.lease)};
        }
        if (const finished released = release(result.lease); released.error)
        {
            throw std::runtime_error{released.report.to_string()};
        }
    }
    throw stuck{"a round that the last master voted in"};
}

/// A reason for a server to refuse a SET, and how it is reported.
struct server_refusal
{
    std::string name;
    std::function<void(server&)> cause;
    master_errc reason;
};

server_refusal one_of_the_refusals()
{
    const auto set = [](const char* option, const char* value) {
        return [=](server& at) { expect_ok(at.command({"CONFIG", "SET", option, value})); };
    };
    const auto deny = [](server& at) { change_user(at, {"-set"}); };
    const auto no_keys = [](server& at) { change_user(at, {"resetkeys"}); };
    return GENERATE_REF(
        server_refusal{"its memory is full", set("maxmemory", "1"), master_errc::out_of_memory},
        server_refusal{"too few replicas", set("min-replicas-to-write", "1"), master_errc::no_replicas},
        server_refusal{"the user may not call SET", deny, master_errc::no_permission},
        server_refusal{"the user may not use the key", no_keys, master_errc::no_permission});
}

} // namespace

TEST_CASE(
    "a master that refuses the SET is no vote, the others decide, and no key is left",
    "[scenario-24][scenario-50]")
{
    const server_refusal refused = one_of_the_refusals();
    CAPTURE(refused.name);
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    refused.cause(servers[2]);

    vote_of_last result = win_with_vote_of_last(own, "stock");
    CHECK(result.vote.vote == vote::failed);
    CHECK(result.vote.reason == refused.reason);
    CHECK_FALSE(result.vote.detail.view().empty());
    const finished extended = extend(result.lease, 2 * long_ttl);
    INFO(extended.report);
    CHECK_FALSE(extended.error);
    CHECK_FALSE(release(result.lease).error);
    // The test itself uses the same user.
    change_user(servers[2], {"allkeys"});
    for (server& each : servers)
    {
        CHECK(goes_away(each, "lock:stock"));
    }
}

TEST_CASE(
    "masters that refuse the SET prevent a quorum, which isn't reported as held by another client",
    "[scenario-24]")
{
    const server_refusal refused = one_of_the_refusals();
    CAPTURE(refused.name);
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    refused.cause(servers[0]);
    refused.cause(servers[2]);

    const acquired result = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(result.report);
    CHECK(result.error == errc::no_quorum);
    CHECK_FALSE(result.lease);
    CHECK(result.report.masters()[0].reason == refused.reason);
    CHECK(result.report.masters()[2].reason == refused.reason);
    CHECK(goes_away(servers[1], "lock:stock"));
}

TEST_CASE("a key can be released on a master whose memory is full", "[scenario-50]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    for (server& each : servers)
    {
        REQUIRE(becomes(each, "lock:stock", lease.owner_id()));
        expect_ok(each.command({"CONFIG", "SET", "maxmemory", "1"}));
    }
    const finished released = release(lease);
    INFO(released.report);
    CHECK_FALSE(released.error);
    CHECK_FALSE(released.report.already_gone());
    for (server& each : servers)
    {
        CHECK(goes_away(each, "lock:stock"));
    }
}

// Redis refuses SUBSCRIBE in this state since 8.6.
TEST_CASE("a client that connected while the memory was full is subscribed once it isn't", "[scenario-50]")
{
    std::vector<server> servers = start_servers(3);
    for (server& each : servers)
    {
        expect_ok(each.command({"CONFIG", "SET", "maxmemory", "1"}));
    }
    client own{unhurried(servers)};
    own.wait_for_masters();
    for (server& each : servers)
    {
        change_user(each, {"+pubsub"});
        expect_ok(each.command({"CONFIG", "SET", "maxmemory", "0"}));
        CHECK(comes_true(
            each,
            [&] {
                return each.command({"PUBSUB", "CHANNELS", "redlock:*"}).elements.size() == 1;
            }));
    }
}

TEST_CASE("a release that masters with too few replicas refuse is reported as unconfirmed", "[scenario-50]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    for (server& each : servers)
    {
        REQUIRE(becomes(each, "lock:stock", lease.owner_id()));
    }
    for (std::size_t index = 1; index < 3; ++index)
    {
        expect_ok(servers[index].command({"CONFIG", "SET", "min-replicas-to-write", "1"}));
    }
    const finished released = release(lease);
    INFO(released.report);
    CHECK(released.error == errc::unconfirmed);
    CHECK(released.report.masters()[1].reason == master_errc::no_replicas);
    CHECK(released.report.masters()[2].reason == master_errc::no_replicas);
    CHECK_FALSE(lease.valid());
    CHECK(goes_away(servers[0], "lock:stock"));
    CHECK(servers[1].command({"EXISTS", "lock:stock"}) == 1);
}

TEST_CASE("a master that can't save its data refuses writes, and this is reported", "[scenario-24]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    // The snapshot can't be renamed, because a directory has its name.
    expect_ok(servers[2].command({"SET", "something", "to save"}));
    expect_ok(servers[2].command({"CONFIG", "SET", "save", "3600 1"}));
    std::filesystem::create_directory(servers[2].directory() + "/dump.rdb");
    servers[2].command({"BGSAVE"});
    REQUIRE(comes_true(
        servers[2],
        [&]
        {
            const reply about = servers[2].command({"INFO", "persistence"});
            return about.text.find("rdb_last_bgsave_status:err") != std::string::npos;
        }));

    vote_of_last result = win_with_vote_of_last(own, "stock");
    CHECK(result.vote.vote == vote::failed);
    CHECK(result.vote.reason == master_errc::misconfigured);
    CHECK_FALSE(release(result.lease).error);
}

namespace
{

/// True if each master that failed has this reason. The others may not have answered before the round was decided.
bool all_that_failed_say(const redlock::report& given, master_errc reason)
{
    const auto masters = given.masters();
    const auto with_reason = std::count_if(
        masters.begin(), masters.end(),
        [&](const redlock::master_report& one) { return one.vote == vote::failed && one.reason == reason; });
    return with_reason >= 2 && static_cast<std::size_t>(with_reason) == given.count(vote::failed);
}

} // namespace

TEST_CASE(
    "a user without the right to run scripts can't extend or release, and is refused with that reason",
    "[scenario-24]")
{
    std::vector<server> servers = start_servers(3);
    for (server& each : servers)
    {
        change_user(each, {"-evalsha", "-eval"});
    }
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    const finished extended = extend(lease, 2 * long_ttl);
    INFO(extended.report);
    CHECK(extended.error == errc::no_quorum);
    CHECK(lease.valid());
    CHECK(all_that_failed_say(extended.report, master_errc::no_permission));
    const finished released = release(lease);
    CHECK(released.error == errc::unconfirmed);
    CHECK(all_that_failed_say(released.report, master_errc::no_permission));
}

namespace
{

/// Two working masters, and a third that is unusable for a reason that is detected on connecting.
void third_is_unusable(redlock::master third, std::vector<server>& two, master_errc why)
{
    std::vector<redlock::master> masters = addresses_of(two);
    masters.push_back(std::move(third));
    client own{unhurried(masters)};
    own.events().wait_for_up(0);
    own.events().wait_for_up(1);
    own.events().wait_for_down(2);
    CHECK(own.events().downs_of(2).front().reason == why);

    acquired won = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(won.report);
    CHECK_FALSE(won.error);
    CHECK(won.report.masters()[2].vote == vote::unsent);
    CHECK(won.report.masters()[2].reason == why);
    CHECK_FALSE(release(won.lease).error);
    CHECK(own.events().times_up(2) == 0);
}

} // namespace

TEST_CASE("a replica is not accepted as a master", "[plain]")
{
    std::vector<server> two = start_servers(2, server_options::plain());
    server replica{
        {.over = transport::tcp,
         .as = user::default_user,
         .settings = {"--replicaof", "127.0.0.1 " + std::to_string(two[0].port())}}};
    third_is_unusable(address_of(replica), two, master_errc::read_only);
}

TEST_CASE("a node of a Redis Cluster is not accepted as an independent master", "[plain]")
{
    std::vector<server> two = start_servers(2);
    // The cluster port defaults to the port plus 10000, which may be out of range.
    std::vector<std::string> settings{
        "--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())};
    const bool knows_hello = GENERATE(true, false);
    if (!knows_hello)
    {
        settings.insert(settings.end(), {"--rename-command", "HELLO", ""});
    }
    server node{{.over = transport::tcp, .settings = settings}};
    third_is_unusable(address_of(node), two, master_errc::cluster_node);
}

TEST_CASE("a wrong or missing password makes a master unusable", "[plain]")
{
    std::vector<server> two = start_servers(2);
    server locked{{.over = transport::tcp, .password = "the-right-one"}};
    const std::string credentials = GENERATE("", ":wrong@", "nobody:the-right-one@");
    const std::string url = "redis://" + credentials + "127.0.0.1:" + std::to_string(locked.port());
    third_is_unusable(url, two, master_errc::authentication_failed);
}

TEST_CASE("a server that is given under two names has one vote", "[scenario-48][plain]")
{
    std::vector<server> two = start_servers(2, server_options::plain());
    const std::string port = std::to_string(two[0].port());
    std::vector<redlock::master> masters = addresses_of(two);
    // An abbreviation of 127.0.0.1: `localhost` may not resolve on a bare machine.
    masters.emplace_back("redis://127.1:" + port);
    client own{unhurried(masters)};
    own.events().wait_until(
        [](const std::vector<redlock::event>& events)
        {
            return std::any_of(
                events.begin(), events.end(),
                [](const redlock::event& one)
                {
                    const auto* down = std::get_if<redlock::master_down>(&one);
                    return down != nullptr && down->reason == master_errc::same_server;
                });
        },
        "a master that is the same server as another");
    own.events().wait_for_up(1);
    const acquired won = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(won.report);
    CHECK_FALSE(won.error);
    CHECK(won.report.count(vote::unsent) == 1);

    // One other server alone is no majority of three.
    two[1].kill();
    own.events().wait_for_down(1);
    const acquired lost = own.try_acquire("s", {.ttl = long_ttl});
    INFO(lost.report);
    CHECK(lost.error == errc::no_quorum);
}

TEST_CASE(
    "scripts that a server no longer has are sent again with the next extension or release", "[scenario-49]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    for (server& each : servers)
    {
        expect_ok(each.command({"SCRIPT", "FLUSH"}));
    }
    const finished extended = extend(lease, 2 * long_ttl);
    INFO(extended.report);
    CHECK_FALSE(extended.error);
    for (server& each : servers)
    {
        expect_ok(each.command({"SCRIPT", "FLUSH"}));
    }
    const finished released = release(lease);
    INFO(released.report);
    CHECK_FALSE(released.error);
    CHECK_FALSE(released.report.already_gone());
    for (server& each : servers)
    {
        CHECK(goes_away(each, "lock:stock"));
    }
}
