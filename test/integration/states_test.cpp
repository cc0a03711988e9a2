// SPDX-License-Identifier: BSL-1.0
// Transient states of a server: loading, busy, out of connections, demoted, with its clock changed. Each is reported
// precisely, and the master votes again afterwards.
#include "integration/fixture.hpp"

#include "support/child_process.hpp"
#include "support/control_client.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

/// Returns the last master's vote in a round that the two others win. A round may be decided before that vote.
master_report vote_of_third(client& one, std::string_view what)
{
    for (int attempt = 0; attempt < 10'000; ++attempt)
    {
        acquired got = one.try_acquire("stock", {.ttl = long_ttl});
        if (got.error)
        {
            throw std::runtime_error{got.report.to_string()};
        }
        const master_report third = got.report.masters()[2];
        if (const finished released = release(got.lease); released.error)
        {
            throw std::runtime_error{released.report.to_string()};
        }
        if (third.vote != vote::pending && third.vote != vote::granted)
        {
            return third;
        }
    }
    throw stuck{std::string{what}};
}

/// Waits until the third master grants again.
void wait_until_it_votes(client& one)
{
    for (int attempt = 0; attempt < 100'000; ++attempt)
    {
        acquired got = one.try_acquire("stock", {.ttl = long_ttl});
        REQUIRE_FALSE(got.error);
        const bool granted = got.report.masters()[2].vote == vote::granted;
        REQUIRE_FALSE(release(got.lease).error);
        if (granted)
        {
            return;
        }
    }
    FAIL("it never votes again");
}

} // namespace

TEST_CASE("a server that runs a slow script gives no vote until the script ends", "[plain][scenario-24]")
{
    std::vector<server> servers = start_servers(3, server_options::plain());
    client one{unhurried(servers)};
    one.wait_for_masters();
    servers[2].command({"CONFIG", "SET", "busy-reply-threshold", "1"});
    control_client slow = control_client::to_port(servers[2].port());
    slow.send({"EVAL", "while true do end", "0"});
    control_client killer = control_client::to_port(servers[2].port());
    REQUIRE(comes_true(servers[0], [&] { return killer.command({"PING"}).text.starts_with("BUSY"); }));
    const master_report third = vote_of_third(one, "a vote of a busy server");
    CHECK(third.vote == vote::failed);
    CHECK(third.reason == master_errc::busy);
    CHECK(killer.command({"SCRIPT", "KILL"}) == "OK");
    wait_until_it_votes(one);
    // A release that was refused meanwhile is carried out now.
    CHECK(goes_away(servers[2], "lock:stock"));
}

TEST_CASE(
    "disconnects from a master that was demoted to replica, and reconnects when it is promoted",
    "[plain][scenario-24]")
{
    std::vector<server> servers = start_servers(3, server_options::plain());
    client one{unhurried(servers)};
    one.wait_for_masters();
    servers[2].command({"REPLICAOF", "127.0.0.1", std::to_string(servers[1].port())});
    const master_report third = vote_of_third(one, "a vote of a replica");
    CHECK(third.reason == master_errc::read_only);
    one.events().wait_for_down(2);
    servers[2].command({"REPLICAOF", "NO", "ONE"});
    one.events().wait_for_up(2, 2);
    wait_until_it_votes(one);
}

TEST_CASE(
    "a server without room for another client is reported as such, and connected to when it has room",
    "[plain][scenario-24]")
{
    std::vector<server> servers = start_servers(3, server_options::plain());
    servers[2].command({"CONFIG", "SET", "maxclients", "1"}); // Only the test's own connection.
    client one{unhurried(servers)};
    one.events().wait_for_down(2);
    CHECK(one.events().downs_of(2).front().reason == master_errc::too_many_clients);
    servers[2].command({"CONFIG", "SET", "maxclients", "100"});
    one.wait_for_masters();
    wait_until_it_votes(one);
}

TEST_CASE("a server that is loading its data is waited for", "[plain][scenario-24]")
{
    std::vector<server> servers = start_servers(2, server_options::plain());
    server_options persisting = server_options::plain();
    persisting.settings = {"--appendonly", "yes", "--appendfsync", "no", "--enable-debug-command", "yes"};
    server full{persisting};
    REQUIRE(full.command({"DEBUG", "POPULATE", "1000", "key", "1000"}) == "OK");
    full.command({"SAVE"});
    full.command({"BGREWRITEAOF"});
    REQUIRE(comes_true(
        servers[0],
        [&]
        {
            return info_number(full, "persistence", "aof_rewrite_in_progress") == 0 &&
                   info_number(full, "persistence", "aof_rewrite_scheduled") == 0;
        }));
    const std::string directory = full.directory();
    const std::string port = std::to_string(full.port());
    full.give_up_port();
    // Loading each key takes a while, and the server answers clients in between.
    const child_process loading{
        {program_of(persisting.program), "--bind", "127.0.0.1", "--port", port, "--dir", directory,
         "--appendonly", "yes", "--save", "", "--key-load-delay", "1000",
         "--loading-process-events-interval-bytes", "1024"},
        directory + "/output"};
    std::vector<master> masters = addresses_of(servers);
    masters.emplace_back(full.url());
    client one{unhurried(masters)};
    one.wait_for_masters();
    const std::vector<master_down> downs = one.events().downs_of(2);
    REQUIRE_FALSE(downs.empty());
    CHECK(std::any_of(
        downs.begin(), downs.end(),
        [](const master_down& each) { return each.reason == master_errc::loading; }));
    wait_until_it_votes(one);
}

TEST_CASE("an eviction policy that can remove locks is reported to the observer", "[plain][scenario-11]")
{
    std::vector<server> servers = start_servers(3, server_options::plain());
    servers[1].command({"CONFIG", "SET", "maxmemory-policy", "volatile-lru"});
    client one{unhurried(servers)};
    one.wait_for_masters();
    const auto is_told = [](const std::vector<event>& events)
    {
        return std::any_of(
            events.begin(), events.end(),
            [](const event& each)
            {
                const auto* risk = std::get_if<master_warning>(&each);
                return risk != nullptr && risk->index == 1 && risk->what == redlock::risk::eviction &&
                       risk->detail == "maxmemory-policy is volatile-lru";
            });
    };
    one.events().wait_until(is_told, "the risk");
    const auto events = one.events().events();
    CHECK(
        std::count_if(
            events.begin(), events.end(),
            [](const event& each) { return std::holds_alternative<master_warning>(each); }) == 1);
}

} // namespace redlock::test
