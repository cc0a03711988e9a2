// SPDX-License-Identifier: BSL-1.0
// What an operator does with provisioning on real masters: arms restarted ones, arms an emptied group again, deletes markers.
#include "integration/guarded_masters.hpp"

#include <boost/asio/use_future.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

// Long enough for a node timeout, and short enough to be waited for.
constexpr auto short_max_ttl = 1'000ms;
constexpr provision_options group_for_operator{
    .max_ttl = short_max_ttl, .policy = arming_policy::by_hand, .fresh = true};

/// The result of a run.
struct operated
{
    error_code error;
    redlock::provision_report report;
};

operated operate(const redlock::config& options, provision_options wanted)
{
    event_loop loop;
    operated got;
    try
    {
        take(
            redlock::async_provision(loop.context(), options, wanted, got.report, asio::use_future),
            "provisioning");
    }
    catch (const redlock::system_error& error)
    {
        got.error = error.code();
    }
    return got;
}

/// Servers that an operator has made a group.
struct group_of_operator
{
    explicit group_of_operator(const std::string& program = "redis-server")
        : servers{start_servers(3, keeping_data(program, persistence::append_only))}
    {
        const operated made = operate(options(), group_for_operator);
        INFO(made.report);
        REQUIRE_FALSE(made.error);
        group = made.report.group;
    }

    redlock::config options() const { return unhurried(servers); }
    redlock::config named() const
    {
        redlock::config with = options();
        with.guarded.emplace();
        with.guarded->group = group;
        return with;
    }
    redlock::config of_client() const
    {
        redlock::config with = options();
        with.guarded.emplace();
        with.node_timeout = short_max_ttl / 4;
        with.probe_interval = 100ms;
        return with;
    }
    void restart_all()
    {
        for (server& each : servers)
        {
            each.restart();
        }
    }
    void restart_empty(std::size_t master)
    {
        const std::filesystem::path directory{servers[master].directory()};
        servers[master].kill();
        std::filesystem::remove(directory / "dump.rdb");
        std::filesystem::remove_all(directory / "appendonlydir");
        std::filesystem::remove(directory / "appendonly.aof");
        servers[master].restart();
    }
    std::string marker(std::size_t master)
    {
        return servers[master].command({"GET", guarded_masters::guard}).text;
    }
    bool is_armed(std::size_t master) { return marker(master).find(" armed ") != std::string::npos; }

    std::vector<server> servers;
    std::string group;
};

/// Acquires once, and returns the token; 0 if there are too few armed masters.
std::uint64_t token_by(client& one)
{
    acquired got = one.acquire("stock", {.ttl = 800ms, .wait = 0ms});
    const std::uint64_t token = got.lease.fencing_token().value_or(0);
    if (!got.error)
    {
        release(got.lease);
    }
    return token;
}

std::uint64_t token_in_time(client& one)
{
    acquired got = one.acquire("stock", {.ttl = 800ms, .wait = patience});
    INFO(got.report);
    REQUIRE_FALSE(got.error);
    const std::uint64_t token = got.lease.fencing_token().value_or(0);
    release(got.lease);
    return token;
}

} // namespace

TEST_CASE(
    "arming by hand: after a restart of all masters, clients wait for the operator", "[guarded][own-servers]")
{
    group_of_operator masters{GENERATE("redis-server", "valkey-server")};
    client one{masters.of_client()};
    const std::uint64_t before = token_in_time(one);
    masters.restart_all();
    // A client has put them into quarantine, and would have armed them by now.
    REQUIRE(comes_true(
        masters.servers[0],
        [&]
        {
            return masters.marker(0).find(" quarantine stale ") != std::string::npos &&
                   masters.marker(1).find(" quarantine stale ") != std::string::npos &&
                   masters.marker(2).find(" quarantine stale ") != std::string::npos;
        }));
    std::this_thread::sleep_for(short_max_ttl * 3);
    CHECK(token_by(one) == 0);
    const operated armed = operate(masters.options(), {.action = provision_action::arm});
    INFO(armed.report);
    REQUIRE_FALSE(armed.error);
    CHECK(armed.report.outcome == provision_outcome::provisioned);
    CHECK(armed.report.group == masters.group);
    CHECK(armed.report.floor > before);
    CHECK(token_in_time(one) > armed.report.floor);
}

TEST_CASE(
    "arming by hand: a group whose masters have lost their data is armed again under its name",
    "[guarded][own-servers][scenario-66]")
{
    group_of_operator masters{GENERATE("redis-server", "valkey-server")};
    const bool keeps_one = GENERATE(true, false);
    client one{masters.of_client()};
    const std::uint64_t before = token_in_time(one);
    for (std::size_t master = keeps_one ? 1 : 0; master < 3; ++master)
    {
        masters.restart_empty(master);
    }
    const operated refused = operate(masters.options(), {.action = provision_action::arm});
    CHECK(refused.error == errc::provisioning_failed);
    CHECK(refused.report.outcome == provision_outcome::unchanged);
    CHECK(token_by(one) == 0);
    provision_options again{.action = provision_action::arm_again};
    if (!keeps_one)
    {
        again.max_ttl = short_max_ttl;
        again.policy = arming_policy::by_hand;
    }
    const operated armed = operate(masters.named(), again);
    INFO(armed.report);
    REQUIRE_FALSE(armed.error);
    CHECK(armed.report.group == masters.group);
    CHECK(armed.report.floor > before);
    CHECK(token_in_time(one) > armed.report.floor);
}

TEST_CASE("arming by hand: what the operator can't do is refused, and said", "[guarded][own-servers]")
{
    group_of_operator masters;
    SECTION("one restarted master is left to the clients")
    {
        masters.servers[1].restart();
        const operated got = operate(masters.options(), {.action = provision_action::arm});
        CHECK_FALSE(got.error);
        CHECK(got.report.masters[1].found == provision_finding::in_service);
        CHECK(got.report.outcome == provision_outcome::complete);
        CHECK(got.report.advice == "clients arm each that isn't armed: leave one running");
        CHECK(got.report.to_string().ends_with("\n  next: " + got.report.advice));
    }
    SECTION("a wrong name")
    {
        masters.restart_all();
        redlock::config misnamed = masters.named();
        misnamed.guarded->group = "00000000000000aa";
        const operated got = operate(misnamed, {.action = provision_action::arm_again});
        CHECK(got.error == errc::provisioning_failed);
        CHECK(got.report.masters[1].found == provision_finding::other_group);
    }
    SECTION("no name")
    {
        const operated got = operate(masters.options(), {.action = provision_action::arm_again});
        CHECK(got.error == errc::invalid_config);
        CHECK(
            got.report.argument_error ==
            "the group to arm again isn't named: guarded.group has to be its name");
    }
    SECTION("no wait")
    {
        const operated got = operate(masters.options(), {.action = provision_action::arm, .fresh = true});
        CHECK(got.error == errc::invalid_config);
    }
}

TEST_CASE("retirement: a server with old data doesn't vote under a member's name", "[guarded][own-servers]")
{
    group_of_operator masters{GENERATE("redis-server", "valkey-server")};
    server& old = masters.servers[2];
    // A copy of the marker that a second SWAPDB would bring back.
    old.command({"COPY", guarded_masters::guard, guarded_masters::guard, "DB", "5"});
    redlock::config alone = unhurried({address_of(old)});
    const operated got = operate(alone, {.action = provision_action::retire});
    INFO(got.report);
    REQUIRE_FALSE(got.error);
    CHECK(got.report.outcome == provision_outcome::retired);
    CHECK(got.report.masters[0].found == provision_finding::unmarked);
    CHECK(got.report.to_string().starts_with("provision: the markers were deleted\n"));
    CHECK(masters.marker(2).empty());
    expect_ok(old.command({"SWAPDB", "0", "5"}));
    CHECK(masters.marker(2).empty());
    expect_ok(old.command({"SWAPDB", "0", "5"}));
    CHECK(operate(alone, {.action = provision_action::retire}).report.outcome == provision_outcome::complete);
    // The others arm it again when each lock of before has expired.
    client one{masters.of_client()};
    CHECK(token_in_time(one) > 0);
    CHECK(comes_true(old, [&] { return masters.is_armed(2); }));
}

} // namespace redlock::test
