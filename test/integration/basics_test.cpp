// SPDX-License-Identifier: BSL-1.0
// The four operations against real servers, over every kind of connection.
#include "integration/fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace redlock::test;
using namespace std::chrono_literals;
using redlock::errc;
using redlock::vote;

namespace
{

/// True if a key's remaining ttl is `ttl`, less the time that a test may take.
bool lives_for(server& at, const std::string& key, std::chrono::milliseconds ttl)
{
    const reply left = at.command({"PTTL", key});
    return left.type == reply::kind::integer && left.integer <= ttl.count() &&
           left.integer > (ttl - patience).count();
}

/// Acquires a resource with one client, and checks it from another client and on the servers.
void acquire_extend_and_release(std::vector<server>& servers)
{
    const std::string key = "lock:invoice:42";
    client first{unhurried(servers)};
    client second{unhurried(servers)};
    first.wait_for_masters();
    second.wait_for_masters();

    acquired mine = first.acquire("invoice:42", {.ttl = long_ttl});
    INFO(mine.report);
    REQUIRE_FALSE(mine.error);
    CHECK(mine.lease.valid());
    CHECK(mine.lease.resource() == "invoice:42");
    CHECK(mine.report.count(vote::granted) >= mine.report.quorum());
    CHECK(mine.report.validity <= long_ttl - long_ttl / 100 - 2ms);
    CHECK(mine.lease.remaining() <= mine.report.validity);
    const std::string owner{mine.lease.owner_id()};
    CHECK(owner.size() == 32);
    CHECK(owner.find_first_not_of("0123456789abcdef") == std::string::npos);
    for (server& each : servers)
    {
        CHECK(becomes(each, key, owner));
        CHECK(lives_for(each, key, long_ttl));
    }

    const acquired refused = second.try_acquire("invoice:42", {.ttl = long_ttl});
    INFO(refused.report);
    CHECK(refused.error == errc::held_by_other);
    CHECK_FALSE(refused.lease);
    CHECK(refused.report.count(vote::denied) + refused.report.quorum() > servers.size());

    const redlock::clock::time_point before = mine.lease.valid_until();
    const finished extended = extend(mine.lease, 2 * long_ttl);
    INFO(extended.report);
    CHECK_FALSE(extended.error);
    CHECK(mine.lease.valid_until() > before);
    for (server& each : servers)
    {
        CHECK(comes_true(each, [&] { return lives_for(each, key, 2 * long_ttl); }));
    }

    const finished released = release(mine.lease);
    INFO(released.report);
    CHECK_FALSE(released.error);
    CHECK_FALSE(released.report.already_gone());
    CHECK_FALSE(mine.lease.valid());
    for (server& each : servers)
    {
        CHECK(goes_away(each, key));
    }
    CHECK(release(mine.lease).error == errc::not_held);
    CHECK(extend(mine.lease, long_ttl).error == errc::not_held);

    const acquired theirs = second.try_acquire("invoice:42", {.ttl = long_ttl});
    INFO(theirs.report);
    CHECK_FALSE(theirs.error);
}

} // namespace

TEST_CASE(
    "a resource is acquired, refused to another client, extended and released on 1, 2, 3, 5 and 7 masters")
{
    const std::size_t n = GENERATE(1U, 2U, 3U, 5U, 7U);
    CAPTURE(n);
    std::vector<server> servers = start_servers(n);
    acquire_extend_and_release(servers);
}

TEST_CASE(
    "all operations work over TCP and unix sockets, with and without password, with Redis and Valkey",
    "[own-servers]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    const transport over = GENERATE(transport::tcp, transport::unix_socket);
    // Its characters have to be escaped in a URL; the server must receive them unescaped.
    const std::string password = GENERATE(std::string{}, std::string{"p:a@s/s %w\u00f6rd"});
    CAPTURE(program, static_cast<int>(over), password.size());
    server_options options;
    options.program = program;
    options.over = over;
    options.as = user::default_user;
    options.password = password;
    std::vector<server> servers = start_servers(3, options);
    acquire_extend_and_release(servers);
}

TEST_CASE("masters can be given as URLs with host names, users and passwords", "[own-servers]")
{
    server by_name{server_options::plain()};
    server with_password{{.over = transport::tcp, .password = "p@ss:w/rd"}};
    server on_socket{{.over = transport::unix_socket, .as = user::default_user}};
    client own{
        unhurried({"redis://127.1:" + std::to_string(by_name.port()), with_password.url(), on_socket.url()})};
    own.wait_for_masters();
    const redlock::lease lease = own.win("stock");
    for (server* each : {&by_name, &with_password, &on_socket})
    {
        CHECK(becomes(*each, "lock:stock", lease.owner_id()));
    }
}

TEST_CASE("keys are set in the selected database only")
{
    std::vector<server> servers = start_servers(3);
    std::vector<redlock::master> masters;
    for (server& each : servers)
    {
        masters.push_back(address_of(each, 3));
    }
    client own{unhurried(masters)};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    for (server& each : servers)
    {
        REQUIRE(each.command({"SELECT", "3"}) == "OK");
        CHECK(becomes(each, "lock:stock", lease.owner_id()));
        REQUIRE(each.command({"SELECT", "0"}) == "OK");
        CHECK(each.command({"EXISTS", "lock:stock"}) == 0);
        REQUIRE(each.command({"SELECT", "3"}) == "OK");
    }
    CHECK_FALSE(release(lease).error);
    for (server& each : servers)
    {
        CHECK(goes_away(each, "lock:stock"));
    }
}

TEST_CASE(
    "the key is prefix plus resource, and managers with different prefixes don't exclude each other",
    "[plain]")
{
    std::vector<server> servers = start_servers(3, server_options::plain());
    redlock::config options = unhurried(servers);
    options.key_prefix = "billing/";
    client billing{options};
    options.key_prefix.clear();
    client without{options};
    billing.wait_for_masters();
    without.wait_for_masters();
    const redlock::lease first = billing.win("stock");
    const redlock::lease second = without.win("stock");
    const acquired same_key = without.try_acquire("billing/stock", {.ttl = long_ttl});
    CHECK(same_key.error == errc::held_by_other);
    for (server& each : servers)
    {
        CHECK(becomes(each, "billing/stock", first.owner_id()));
        CHECK(becomes(each, "stock", second.owner_id()));
    }
}

TEST_CASE("a resource name may contain any bytes", "[scenario-51]")
{
    using namespace std::string_literals;
    const std::string resource = GENERATE(
        "a\r\n*1\r\n$8\r\nFLUSHALL\r\n"s, "\0"s, "nul\0in the middle"s, "\xff\xfe\x80"s, " "s,
        std::string(1024, 'x'));
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    for (server& each : servers)
    {
        REQUIRE(each.command({"SET", "bystander", "here"}) == "OK");
    }
    redlock::lease lease = own.win(resource);
    CHECK(lease.resource() == resource);
    for (server& each : servers)
    {
        CHECK(becomes(each, "lock:" + resource, lease.owner_id()));
        CHECK(each.command({"GET", "bystander"}) == "here");
    }
    CHECK_FALSE(extend(lease, 2 * long_ttl).error);
    const finished released = release(lease);
    CHECK_FALSE(released.error);
    CHECK_FALSE(released.report.already_gone());
    for (server& each : servers)
    {
        CHECK(goes_away(each, "lock:" + resource));
    }
}

TEST_CASE("a lease that is destroyed without a release is released in the background")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    {
        redlock::lease lease = own.win("stock");
        for (server& each : servers)
        {
            CHECK(becomes(each, "lock:stock", lease.owner_id()));
        }
        lease = own.win("another");
        for (server& each : servers)
        {
            CHECK(goes_away(each, "lock:stock"));
        }
    }
    for (server& each : servers)
    {
        CHECK(goes_away(each, "lock:another"));
    }
}

TEST_CASE("an acquire waits until the resource is released")
{
    std::vector<server> servers = start_servers(3);
    client first{unhurried(servers)};
    client second{unhurried(servers)};
    first.wait_for_masters();
    second.wait_for_masters();
    redlock::lease lease = first.win("stock");
    std::future<acquired> waiting =
        start_acquire(second.locks(), "stock", {.ttl = long_ttl, .wait = redlock::no_limit});
    // The second client has been refused before the release.
    const auto was_refused = [](const std::vector<redlock::event>& events)
    {
        return std::any_of(
            events.begin(), events.end(),
            [](const redlock::event& one) { return std::holds_alternative<redlock::round_decided>(one); });
    };
    second.events().wait_until(was_refused, "a refused round");
    CHECK_FALSE(release(lease).error);
    const acquired theirs = take(std::move(waiting), "the waiting acquire");
    CHECK_FALSE(theirs.error);
    CHECK(theirs.lease.valid());
}

TEST_CASE("a key with an empty value counts as locked by another client, on a real server")
{
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers)};
    own.wait_for_masters();
    REQUIRE(servers[0].command({"SET", "lock:stock", ""}) == "OK");
    const acquired refused =
        own.acquire("stock", {.ttl = long_ttl, .wait = redlock::no_limit, .max_rounds = 1});
    INFO(refused.report);
    CHECK(refused.error == errc::held_by_other);
    CHECK(servers[0].command({"GET", "lock:stock"}) == "");
}

TEST_CASE(
    "an acquire with max_rounds 1 makes one round and doesn't wait, each with a new owner id",
    "[scenario-19]")
{
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers)};
    own.wait_for_masters();
    REQUIRE(servers[0].command({"SET", "lock:stock", "another client"}) == "OK");
    for (int time = 1; time <= 3; ++time)
    {
        const acquired refused =
            own.acquire("stock", {.ttl = long_ttl, .wait = redlock::no_limit, .max_rounds = 1});
        INFO(refused.report);
        CHECK(refused.error == errc::held_by_other);
        CHECK(refused.report.rounds == 1);
    }
    CHECK(shut_down(own.locks()) == redlock::error_code{}); // Waits for the answers to its releases.
    CHECK(info_number(servers[0], "commandstats", "cmdstat_set") == 1 + 3);
    CHECK(servers[0].command({"EXISTS", "redlock-queue:order:lock:stock"}) == 0);
}
