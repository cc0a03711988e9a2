// SPDX-License-Identifier: BSL-1.0
// Masters that hang, die and come back: what is decided without them, and what happens to the commands sent to them.
#include "integration/fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

using namespace redlock::test;
using namespace std::chrono_literals;
using redlock::errc;
using redlock::master_errc;
using redlock::vote;

namespace
{

constexpr const char* key = "lock:stock";

/// Returns how many SETs a server has run.
long long sets_run_on(server& at)
{
    return info_number(at, "commandstats", "cmdstat_set");
}

bool is_gone_from(std::vector<server>& servers)
{
    return std::all_of(servers.begin(), servers.end(), [](server& each) { return goes_away(each, key); });
}

} // namespace

TEST_CASE("a minority of masters that hang doesn't delay an acquire", "[scenario-36]")
{
    const std::size_t hung = GENERATE(1U, 2U);
    std::vector<server> servers = start_servers(5);
    const redlock::config options = unhurried(servers);
    client own{options};
    own.wait_for_masters();
    for (std::size_t index = 0; index < hung; ++index)
    {
        servers[index].stop();
    }
    for (int attempt = 0; attempt < 10; ++attempt)
    {
        acquired won = own.try_acquire("stock", {.ttl = long_ttl});
        INFO(won.report);
        REQUIRE_FALSE(won.error);
        CHECK(won.report.elapsed < *options.node_timeout);
        CHECK(won.report.masters()[0].vote == vote::pending);
        const finished extended = extend(won.lease, 2 * long_ttl);
        INFO(extended.report);
        CHECK_FALSE(extended.error);
        const finished released = release(won.lease);
        INFO(released.report);
        REQUIRE_FALSE(released.error);
        CHECK(released.report.elapsed < *options.node_timeout);
    }
    for (std::size_t index = 0; index < hung; ++index)
    {
        servers[index].resume();
    }
    // The key may be missing between two SETs, so wait for all of them first.
    CHECK(comes_true(servers[0], [&] { return sets_run_on(servers[0]) == 10; }));
    CHECK(is_gone_from(servers));
}

TEST_CASE(
    "the connection to a master that hangs is closed, and votes report it from then on", "[scenario-36]")
{
    std::vector<server> servers = start_servers(3);
    redlock::config options = unhurried(servers);
    options.response_timeout = 500ms;
    options.probe_interval = 100ms;
    client own{options};
    own.wait_for_masters();
    servers[1].stop();
    own.events().wait_for_down(1);
    CHECK(own.events().downs_of(1).front().reason == master_errc::unresponsive);
    acquired won = own.acquire("stock", {.ttl = long_ttl, .wait = redlock::no_limit});
    INFO(won.report);
    CHECK_FALSE(won.error);
    CHECK(won.report.masters()[1].vote == vote::unsent);
    CHECK(won.report.masters()[1].reason == master_errc::unresponsive);
    servers[1].resume();
    own.events().wait_for_up(1, 2);
    CHECK_FALSE(release(won.lease).error);
}

TEST_CASE(
    "with a majority that hangs there is no quorum, and every key is deleted soon after they resume",
    "[scenario-23][scenario-36]")
{
    // Short: the connection is closed meanwhile. Long: it stays.
    const std::chrono::milliseconds response_timeout = GENERATE(2'000ms, 30'000ms);
    CAPTURE(response_timeout.count());
    std::vector<server> servers = start_servers(5);
    redlock::config options = unhurried(servers);
    options.node_timeout = 200ms;
    options.response_timeout = response_timeout;
    options.probe_interval = response_timeout;
    client own{options};
    own.wait_for_masters();
    std::vector<std::size_t> ups;
    for (std::size_t index = 0; index < 3; ++index)
    {
        ups.push_back(own.events().times_up(index));
        servers[index].stop();
    }
    const acquired lost = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(lost.report);
    CHECK(lost.error == errc::no_quorum);
    CHECK_FALSE(lost.lease);
    CHECK(lost.report.elapsed >= 200ms);
    for (std::size_t index = 0; index < 3; ++index)
    {
        CHECK(lost.report.masters()[index].vote == vote::timed_out);
        if (response_timeout < 10s)
        {
            own.events().wait_for_down(index);
        }
        servers[index].resume();
    }
    for (std::size_t index = 0; index < 3; ++index)
    {
        // From here on the SET can't run any more. If the connection was closed, it may not have run: a server that was
        // stopped with a reply to write fails to write it, and closes the connection without reading further.
        if (response_timeout < 10s)
        {
            own.events().wait_for_up(index, ups[index] + 1);
            CHECK(sets_run_on(servers[index]) <= 1);
        }
        else
        {
            CHECK(comes_true(servers[index], [&] { return sets_run_on(servers[index]) == 1; }));
        }
    }
    CHECK(is_gone_from(servers));
    CHECK_FALSE(own.acquire("stock", {.ttl = long_ttl}).error);
}

TEST_CASE(
    "a SET that runs long after its lock has expired is released then, not left to its ttl",
    "[scenario-60][patient]")
{
    std::vector<server> servers = start_servers(3);
    redlock::config options = unhurried(servers);
    options.node_timeout = 500ms;
    options.response_timeout = 500ms;
    options.probe_interval = 200ms;
    client own{options};
    own.wait_for_masters();
    servers[2].stop();

    constexpr std::chrono::milliseconds ttl{3000};
    acquired won = own.acquire("stock", {.ttl = ttl});
    INFO(won.report);
    REQUIRE_FALSE(won.error);
    own.events().wait_for_down(2);
    CHECK(own.events().downs_of(2).front().reason == master_errc::unresponsive);
    const redlock::clock::time_point lapsed = redlock::clock::now() + ttl;
    REQUIRE(comes_true(servers[0], [&] { return redlock::clock::now() > lapsed; }));
    CHECK_FALSE(won.lease.valid());
    CHECK_FALSE(release(won.lease).error);

    servers[2].resume();
    own.events().wait_for_up(2, 2);
    CHECK(goes_away(servers[2], key));
    // The key was set with its full ttl, and deleted.
    CHECK(sets_run_on(servers[2]) == 1);
    CHECK(info_number(servers[2], "stats", "expired_keys") == 0);
}

TEST_CASE("unreachable masters count towards the size of the quorum", "[scenario-37]")
{
    std::vector<server> servers = start_servers(5);
    client own{unhurried(servers)};
    own.wait_for_masters();
    for (std::size_t index = 0; index < 3; ++index)
    {
        servers[index].kill();
        own.events().wait_for_down(index);
    }
    const acquired lost = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(lost.report);
    CHECK(lost.error == errc::no_quorum);
    CHECK(lost.report.count(vote::unsent) == 3);
    CHECK(lost.report.masters()[0].reason);
    CHECK(goes_away(servers[3], key));
    CHECK(goes_away(servers[4], key));
    servers[1].restart();
    own.events().wait_for_up(1, 2);
    const acquired won = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(won.report);
    CHECK_FALSE(won.error);
}

TEST_CASE("the first acquire waits for the connections, even if a minority is down", "[scenario-56]")
{
    const std::size_t missing = GENERATE(0U, 2U);
    std::vector<server> servers = start_servers(5);
    for (std::size_t index = 0; index < missing; ++index)
    {
        servers[index].kill();
    }
    client own{unhurried(servers)};
    const acquired won = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(won.report);
    CHECK_FALSE(won.error);
}

TEST_CASE("a first acquire that finds no quorum in time reports the reason for each master", "[scenario-56]")
{
    std::vector<server> servers = start_servers(3);
    servers[0].kill();
    servers[2].kill();
    redlock::config options = unhurried(servers);
    options.connect_timeout = 300ms;
    client own{options};
    const acquired lost = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(lost.report);
    CHECK(lost.error == errc::no_quorum);
    CHECK(lost.report.masters()[0].vote == vote::unsent);
    CHECK(lost.report.masters()[0].reason == boost::system::errc::connection_refused);
    CHECK(lost.report.name(0) == address_of(servers[0]).name());
    CHECK(lost.report.to_string().find(std::string{lost.report.name(2)}) != std::string::npos);
}

TEST_CASE(
    "a lease released while a master was dead is released on it when it is back with its data",
    "[scenario-60]")
{
    server_options durable;
    durable.settings = {"--appendonly", "yes", "--appendfsync", "always"};
    std::vector<server> servers = start_servers(3, durable);
    client own{unhurried(servers)};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    REQUIRE(becomes(servers[1], key, lease.owner_id()));
    servers[1].kill();
    own.events().wait_for_down(1);
    const finished released = release(lease);
    INFO(released.report);
    CHECK_FALSE(released.error);
    CHECK(released.report.masters()[1].vote == vote::unsent);
    servers[1].restart();
    CHECK(goes_away(servers[1], key));
}

TEST_CASE("a lease whose master is restarted empty still excludes others, and an extension restores its key")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    client other{unhurried(servers)};
    own.wait_for_masters();
    other.wait_for_masters();
    redlock::lease lease = own.win("stock");
    for (server& each : servers)
    {
        REQUIRE(becomes(each, key, lease.owner_id()));
    }
    servers[0].restart();
    own.events().wait_for_up(0, 2);
    other.events().wait_for_up(0, 2);
    CHECK(other.try_acquire("stock", {.ttl = long_ttl}).error == errc::held_by_other);
    REQUIRE(goes_away(servers[0], key));
    const finished extended = extend(lease, 2 * long_ttl);
    INFO(extended.report);
    CHECK_FALSE(extended.error);
    CHECK(becomes(servers[0], key, lease.owner_id()));
    CHECK_FALSE(release(lease).error);
    CHECK(is_gone_from(servers));
}
