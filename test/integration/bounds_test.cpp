// SPDX-License-Identifier: BSL-1.0
// Memory for a master that never answers is bounded, and the other masters are unaffected.
#include "integration/fixture.hpp"
#include "support/fake_server.hpp"

#include <catch2/catch_test_macros.hpp>

#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <string>
#include <utility>
#include <vector>

using namespace redlock::test;
using namespace std::chrono_literals;
using redlock::master_errc;
using redlock::vote;

namespace
{

constexpr long long max_outstanding_keys = 500;

asio::awaitable<void>
go_on(redlock::lock_manager& locks, std::string resource, int times, std::atomic<int>& refused)
{
    for (int time = 0; time < times; ++time)
    {
        redlock::report report;
        // Waits as long as a slow machine needs until two masters have room.
        const redlock::acquire_options patient{.ttl = long_ttl, .wait = redlock::no_limit};
        redlock::lease lease = co_await locks.async_acquire(resource, patient, report);
        const redlock::master_report& third = report.masters()[2];
        refused.fetch_add(
            third.vote == vote::unsent && third.reason == master_errc::too_many_outstanding_keys ? 1 : 0);
        co_await lease.async_release();
    }
}

/// Runs 1000 clients that acquire and release. Returns how many SETs the limit of outstanding keys kept from the third
/// master.
int go_on_with_1000_clients(client& own, int times)
{
    std::atomic<int> refused{0};
    std::vector<std::future<void>> clients;
    for (int index = 0; index < 1000; ++index)
    {
        asio::awaitable<void> one = go_on(own.locks(), "stock" + std::to_string(index), times, refused);
        clients.push_back(asio::co_spawn(own.loop().context(), std::move(one), asio::use_future));
    }
    for (std::future<void>& each : clients)
    {
        take(std::move(each), "1000 clients");
    }
    return refused;
}

} // namespace

TEST_CASE(
    "a master that hangs has at most max_outstanding_keys outstanding keys, and is used again once it has "
    "answered",
    "[scenario-61]")
{
    std::vector<server> servers = start_servers(3);
    redlock::config options = unhurried(servers);
    options.max_outstanding_keys = static_cast<std::size_t>(max_outstanding_keys);
    // With 1000 clients, the two other masters may reach their limits for a moment, too: the round is then repeated.
    options.retry_delay_max = 50ms;
    options.response_timeout = 1h;
    client own{options, 1, log_of::masters};
    own.wait_for_masters();
    servers[2].stop();
    CHECK(go_on_with_1000_clients(own, 5) > 0);
    servers[2].resume();
    // Each SET, and after it the release that room was reserved for.
    const auto runs_of = [&](const char* command)
    { return info_number(servers[2], "commandstats", std::string{"cmdstat_"} + command); };
    CHECK(comes_true(servers[2], [&] { return runs_of("evalsha") >= max_outstanding_keys; }));
    CHECK(runs_of("set") == max_outstanding_keys);
    CHECK(comes_true(servers[2], [&] { return servers[2].command({"DBSIZE"}) == 0; }));
    // A new SET is sent only after everything queued for this master.
    const auto is_asked_again = [&]
    {
        const redlock::lease lease = own.win("s");
        return runs_of("set") > max_outstanding_keys;
    };
    CHECK(comes_true(servers[2], is_asked_again));
    CHECK(runs_of("set") + runs_of("evalsha") <= 4 * max_outstanding_keys);
    CHECK(own.events().downs_of(2).empty());
}

TEST_CASE(
    "at most max_write_queue_bytes wait for a master that reads nothing, and what it received is released")
{
    std::vector<server> servers = start_servers(3);
    redlock::config options = unhurried(servers);
    options.max_write_queue_bytes = 65'536;
    options.response_timeout = 1h;
    client own{options, 1, log_of::masters};
    own.wait_for_masters();
    servers[2].stop();
    // The kernel buffers some megabytes; what waits after that is in our buffer.
    bool refused = false;
    for (int count = 0; count < 50'000 && !refused; ++count)
    {
        acquired got = own.try_acquire(std::string(1000, 'x') + std::to_string(count), {.ttl = long_ttl});
        REQUIRE_FALSE(got.error);
        const redlock::master_report& third = got.report.masters()[2];
        refused = third.reason == master_errc::write_queue_full;
        CHECK((!refused || third.vote == vote::unsent));
        // The two others grant the lock; the third's releases wait in the ledger, not in the buffer.
        REQUIRE_FALSE(release(got.lease).error);
    }
    CHECK(refused);
    servers[2].resume();
    for (server& each : servers)
    {
        CHECK(comes_true(each, [&] { return each.command({"DBSIZE"}) == 0; }));
    }
    CHECK(own.events().downs_of(2).empty());
}

TEST_CASE("a master that never answers is sent at most max_outstanding_keys SETs", "[scenario-61]")
{
    std::vector<server> servers = start_servers(2);
    fake_server silent_one{silent(applies::to_locks)};
    std::vector<redlock::master> masters = addresses_of(servers);
    masters.emplace_back(silent_one.url());
    redlock::config options = unhurried(masters);
    options.max_outstanding_keys = static_cast<std::size_t>(max_outstanding_keys);
    options.retry_delay_max = 50ms;
    options.response_timeout = 1h;
    client own{options, 1, log_of::masters};
    own.wait_for_masters();
    CHECK(go_on_with_1000_clients(own, 5) > 0);
    REQUIRE(silent_one.wait_for_command("EVALSHA", options.max_outstanding_keys, patience));
    CHECK(silent_one.count("SET") == options.max_outstanding_keys);
    CHECK(silent_one.count("SET") + silent_one.count("EVALSHA") <= 4 * options.max_outstanding_keys);
    CHECK(silent_one.accepted() == 1);

    // A release always has room, an extension only if the queue isn't full.
    redlock::lease lease = own.win("s");
    finished extended;
    for (long long time = 0; time <= 4 * max_outstanding_keys; ++time)
    {
        extended = extend(lease, 2 * long_ttl);
    }
    INFO(extended.report);
    CHECK_FALSE(extended.error);
    CHECK(extended.report.masters()[2].vote == vote::unsent);
    CHECK(extended.report.masters()[2].reason == master_errc::too_many_outstanding_keys);
    CHECK_FALSE(release(lease).error);
    for (server& each : servers)
    {
        CHECK(comes_true(each, [&] { return each.command({"DBSIZE"}) == 0; }));
    }
}

TEST_CASE("an acquire that finds a majority at the limit of outstanding keys reports it", "[scenario-61]")
{
    std::vector<server> servers = start_servers(1);
    redlock::config options = unhurried(servers);
    options.max_outstanding_keys = 3;
    client own{options};
    own.wait_for_masters();
    std::vector<redlock::lease> leases;
    for (int index = 0; index < 3; ++index)
    {
        leases.push_back(own.win(std::to_string(index)));
    }
    const acquired refused = own.try_acquire("one more", {.ttl = long_ttl});
    INFO(refused.report);
    CHECK(refused.error == redlock::errc::no_quorum);
    CHECK(refused.report.masters()[0].vote == vote::unsent);
    CHECK(refused.report.masters()[0].reason == master_errc::too_many_outstanding_keys);
    CHECK_FALSE(release(leases[1]).error);
    CHECK_FALSE(own.try_acquire("one more", {.ttl = long_ttl}).error);
}
