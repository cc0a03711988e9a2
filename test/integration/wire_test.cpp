// SPDX-License-Identifier: BSL-1.0
// Network faults between the client and real servers, made by a proxy: traffic is delayed, lost or cut off.
#include "integration/fixture.hpp"
#include "support/proxy.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
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

/// Real servers, each with its own proxy.
struct distant_servers
{
    explicit distant_servers(std::size_t n, server_options how = server_options::with_port())
        : servers{start_servers(n, std::move(how))}
    {
        for (const server& each : servers)
        {
            proxies.push_back(std::make_unique<proxy>(each.port()));
        }
    }

    redlock::config options() const
    {
        std::vector<redlock::master> masters;
        for (std::size_t index = 0; index < servers.size(); ++index)
        {
            masters.push_back(address_behind(proxies[index]->port(), servers[index]));
        }
        redlock::config result = unhurried(masters);
        // No periodic traffic: a proxy sees only the commands of the test.
        result.probe_interval = 1h;
        return result;
    }

    std::vector<server> servers;
    std::vector<std::unique_ptr<proxy>> proxies;
};

/// True if the only connections are the test's own and one of a manager.
bool has_only_two_clients(server& at)
{
    return comes_true(at, [&] { return info_number(at, "clients", "connected_clients") == 2; });
}

/// Returns the server's id of the manager's only connection.
std::int64_t client_id_on(server& at)
{
    const std::string clients = at.command({"CLIENT", "LIST"}).text;
    const std::size_t name = clients.find(" name=redlock ");
    const std::size_t line = clients.rfind("id=", name);
    if (name == std::string::npos || line == std::string::npos)
    {
        throw std::runtime_error{"no manager connection in " + clients};
    }
    return std::stoll(clients.substr(line + 3));
}

} // namespace

TEST_CASE("a SET that is delayed in the network and arrives after its release leaves no key", "[scenario-18]")
{
    distant_servers distant{1};
    server& at = distant.servers[0];
    proxy& between = *distant.proxies[0];
    client own{distant.options()};
    own.wait_for_masters();
    for (std::size_t time = 1; time <= 20; ++time)
    {
        const std::string resource = "stock" + std::to_string(time);
        const std::size_t so_far = between.bytes_to_server();
        const long long releases = calls_of(at, "evalsha");
        between.hold_to_server();
        std::future<acquired> acquire = start_try_acquire(own.locks(), resource, {.ttl = long_ttl});
        REQUIRE(between.wait_for_bytes_to_server(so_far + 1, patience));
        between.close_client_side_keep_server();
        CHECK(take(std::move(acquire), "the acquire").error == errc::no_quorum);
        own.events().wait_for_up(0, 1 + time);
        // The release has run on the new connection; now the SET arrives on the old one.
        REQUIRE(comes_true(at, [&] { return calls_of(at, "evalsha") > releases; }));
        between.release_held();
        REQUIRE(has_only_two_clients(at));
        CHECK(at.command({"EXISTS", "lock:" + resource}) == 0);
    }
}

TEST_CASE("a late release doesn't delete the key of the next owner", "[scenario-19]")
{
    distant_servers distant{3};
    client late{distant.options()};
    client next{unhurried(distant.servers)};
    late.wait_for_masters();
    next.wait_for_masters();
    redlock::lease first = late.win("stock");
    for (server& each : distant.servers)
    {
        REQUIRE(becomes(each, "lock:stock", first.owner_id()));
    }
    std::vector<std::size_t> so_far;
    for (const auto& each : distant.proxies)
    {
        so_far.push_back(each->bytes_to_server());
        each->hold_to_server();
    }
    std::future<finished> late_release = start_release(first);
    for (std::size_t index = 0; index < 3; ++index)
    {
        REQUIRE(distant.proxies[index]->wait_for_bytes_to_server(so_far[index] + 1, patience));
        // Deleted, as if the ttl had ended.
        REQUIRE(distant.servers[index].command({"DEL", "lock:stock"}) == 1);
    }
    const redlock::lease second = next.win("stock");
    for (const auto& each : distant.proxies)
    {
        each->release_held();
    }
    CHECK_FALSE(take(std::move(late_release), "the late release").error);
    for (server& each : distant.servers)
    {
        REQUIRE(comes_true(each, [&] { return calls_of(each, "evalsha") == 1; }));
        CHECK(each.command({"GET", "lock:stock"}) == second.owner_id());
    }
}

TEST_CASE("a short extension that arrives late doesn't reduce a newer, longer one", "[scenario-29]")
{
    distant_servers distant{1};
    server& at = distant.servers[0];
    proxy& between = *distant.proxies[0];
    client own{distant.options()};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock", 200s);
    const std::size_t so_far = between.bytes_to_server();
    between.hold_to_server();
    std::future<finished> held_up = start_extend(lease, 300s);
    REQUIRE(between.wait_for_bytes_to_server(so_far + 1, patience));
    between.close_client_side_keep_server();
    CHECK(take(std::move(held_up), "the extension that was held up").error == errc::no_quorum);
    CHECK(lease.valid());
    own.events().wait_for_up(0, 2);

    const finished extended = extend(lease, long_ttl);
    INFO(extended.report);
    REQUIRE_FALSE(extended.error);
    between.release_held();
    REQUIRE(comes_true(at, [&] { return calls_of(at, "evalsha") == 2; }));
    const reply left = at.command({"PTTL", "lock:stock"});
    CHECK(left.integer > (long_ttl - 2 * patience).count());
}

TEST_CASE("connections that broke while idle are detected, and the next acquire succeeds", "[scenario-57]")
{
    distant_servers distant{3};
    redlock::config options = distant.options();
    options.probe_interval = 200ms;
    options.response_timeout = 500ms;
    options.connect_timeout = 1s;
    client own{options};
    own.wait_for_masters();
    // As if a NAT had dropped its state: neither side is notified.
    for (const auto& each : distant.proxies)
    {
        each->drop_to_server(true);
        each->drop_to_client(true);
    }
    for (std::size_t index = 0; index < 3; ++index)
    {
        own.events().wait_for_down(index);
        CHECK(own.events().downs_of(index).front().reason == master_errc::unresponsive);
    }
    for (const auto& each : distant.proxies)
    {
        each->drop_to_server(false);
        each->drop_to_client(false);
    }
    for (std::size_t index = 0; index < 3; ++index)
    {
        own.events().wait_for_up(index, 2);
    }
    const acquired won = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(won.report);
    CHECK_FALSE(won.error);
}

TEST_CASE(
    "no other client's connection is killed if it has our previous connection's id after a server restart",
    "[scenario-59][plain]")
{
    // The test itself makes the other clients' connections.
    distant_servers distant{1, server_options::plain()};
    server& at = distant.servers[0];
    proxy& between = *distant.proxies[0];
    // They make our id large enough that another connection can have it after the restart.
    std::vector<control_client> earlier;
    for (int count = 0; count < 20; ++count)
    {
        earlier.push_back(control_client::to_port(at.port()));
        REQUIRE(earlier.back().command({"PING"}) == "PONG");
    }
    client own{distant.options()};
    own.wait_for_masters();
    const std::int64_t our_id = client_id_on(at);

    // A SET that may still run is the reason to kill a connection.
    const std::size_t so_far = between.bytes_to_server();
    between.hold_to_server();
    std::future<acquired> acquire = start_try_acquire(own.locks(), "stock", {.ttl = long_ttl});
    REQUIRE(between.wait_for_bytes_to_server(so_far + 1, patience));
    between.refuse(true);
    between.reset_connections();
    CHECK(take(std::move(acquire), "the acquire").error == errc::no_quorum);
    between.release_held();

    at.restart();
    std::vector<control_client> strangers;
    std::int64_t latest_id = 0;
    while (latest_id < our_id)
    {
        strangers.push_back(control_client::to_port(at.port()));
        latest_id = strangers.back().command({"CLIENT", "ID"}).integer;
    }
    REQUIRE(latest_id == our_id);
    between.refuse(false);
    own.events().wait_for_up(0, 2);
    // The outstanding key is released, and it was decided before that which connections to kill.
    REQUIRE(comes_true(at, [&] { return calls_of(at, "evalsha") == 1; }));
    for (control_client& each : strangers)
    {
        CHECK(each.command({"PING"}) == "PONG");
    }
}

TEST_CASE("a late reply belongs to its own command, and the next command gets its own reply", "[scenario-43]")
{
    distant_servers distant{1};
    server& at = distant.servers[0];
    proxy& between = *distant.proxies[0];
    redlock::config options = distant.options();
    options.node_timeout = 1500ms;
    client own{options};
    own.wait_for_masters();
    REQUIRE(at.command({"SET", "lock:taken", "another client"}) == "OK");
    between.hold_to_client();
    const acquired lost = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(lost.report);
    CHECK(lost.error == errc::no_quorum);
    CHECK(lost.report.masters()[0].reason == master_errc::timed_out);
    // Their replies are queued after the late ones.
    std::future<acquired> refused = start_try_acquire(own.locks(), "taken", {.ttl = long_ttl});
    std::future<acquired> granted = start_try_acquire(own.locks(), "free", {.ttl = long_ttl});
    REQUIRE(comes_true(at, [&] { return calls_of(at, "set") == 4; }));
    between.release_held();
    CHECK(take(std::move(refused), "the refused acquire").error == errc::held_by_other);
    CHECK_FALSE(take(std::move(granted), "the granted acquire").error);
    CHECK(goes_away(at, "lock:stock"));
    CHECK(at.command({"GET", "lock:taken"}) == "another client");
    CHECK(own.events().times_up(0) == 1);
}

TEST_CASE("requests and replies may arrive in single bytes", "[scenario-45]")
{
    distant_servers distant{3};
    for (const auto& each : distant.proxies)
    {
        each->split_bytes(true);
    }
    client own{distant.options()};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    CHECK_FALSE(extend(lease, 2 * long_ttl).error);
    CHECK_FALSE(release(lease).error);
    for (server& each : distant.servers)
    {
        CHECK(goes_away(each, "lock:stock"));
    }
}

TEST_CASE(
    "connections that are reset or closed at any time leave no key once they are restored", "[scenario-18]")
{
    distant_servers distant{3};
    redlock::config options = distant.options();
    options.reconnect_delay_max = 20ms;
    client own{options};
    own.wait_for_masters();
    for (std::size_t time = 0; time < 60; ++time)
    {
        proxy& between = *distant.proxies[time % 3];
        const std::size_t so_far = between.bytes_to_server();
        std::future<acquired> acquire = start_acquire(
            own.locks(), "stock" + std::to_string(time), {.ttl = long_ttl, .wait = redlock::no_limit});
        REQUIRE(between.wait_for_bytes_to_server(so_far + 1, patience));
        if (time % 2 == 0)
        {
            between.reset_connections();
        }
        else
        {
            between.close_connections();
        }
        // Its lease is destroyed without a release.
        const acquired won = take(std::move(acquire), "an acquire with a connection that breaks");
        INFO(won.report);
        CHECK_FALSE(won.error);
    }
    for (server& each : distant.servers)
    {
        CHECK(comes_true(each, [&] { return each.command({"DBSIZE"}) == 0; }));
    }
}
