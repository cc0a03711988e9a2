// SPDX-License-Identifier: BSL-1.0
// Inspections of a resource on real masters.
#include "integration/fixture.hpp"

#include <catch2/catch_test_macros.hpp>

namespace redlock::test
{

namespace
{

struct inspected
{
    error_code error;
    redlock::inspection found;
};

inspected inspect(redlock::lock_manager& locks, std::string resource)
{
    auto result = std::make_shared<std::promise<inspected>>();
    std::future<inspected> future = result->get_future();
    locks.async_inspect(
        std::move(resource),
        [result](error_code error, redlock::inspection found) {
            result->set_value({error, std::move(found)});
        });
    return take(std::move(future), "an inspection");
}

} // namespace

TEST_CASE("an inspection of a free resource finds no key on any master", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    client one{unhurried(servers)};
    // Also if it is a manager's very first operation: it waits for all masters, not only for a quorum.
    const inspected got = inspect(one.locks(), "stock");
    CHECK_FALSE(got.error);
    CHECK(got.found.answered() == 3);
    CHECK(got.found.holder().empty());
    REQUIRE(got.found.masters().size() == 3);
    for (const master_inspection& each : got.found.masters())
    {
        CHECK_FALSE(each.reason);
        CHECK_FALSE(each.has_key);
        CHECK(each.owner_id.view().empty());
        CHECK_FALSE(each.expires_in);
    }
    CHECK(got.found.name(0) == address_of(servers[0]).name());
}

TEST_CASE("an inspection shows the holder of a resource and the remaining time, on every master", "[threads]")
{
    std::vector<server> servers = start_servers(5);
    client holder{unhurried(servers)};
    client watcher{unhurried(servers)};
    holder.wait_for_masters();
    const lease held = holder.win("stock");
    // On one master the key never expires, on one it belongs to another client, on one it isn't a lock at all.
    for (server& each : servers)
    {
        REQUIRE(becomes(each, "lock:stock", held.owner_id()));
    }
    servers[2].command({"PERSIST", "lock:stock"});
    servers[3].command({"SET", "lock:stock", "some\nbody", "PX", "600000"});
    servers[4].command({"DEL", "lock:stock"});
    servers[4].command({"LPUSH", "lock:stock", "a list"});
    const inspected got = inspect(watcher.locks(), "stock");
    CHECK_FALSE(got.error);
    CHECK(got.found.holder() == held.owner_id());
    CHECK(got.found.quorum() == 3);
    CHECK(got.found.count(held.owner_id()) == 3);
    const auto masters = got.found.masters();
    REQUIRE(masters.size() == 5);
    REQUIRE(masters[0].expires_in);
    CHECK(*masters[0].expires_in > std::chrono::milliseconds{0});
    CHECK(*masters[0].expires_in <= long_ttl);
    CHECK(masters[2].owner_id.view() == held.owner_id());
    CHECK_FALSE(masters[2].expires_in);
    CHECK(masters[3].owner_id.view() == "some\\nbody");
    CHECK_FALSE(masters[4].reason);
    CHECK(masters[4].has_key);
    CHECK(masters[4].owner_id.view().empty());
    CHECK(masters[4].detail.view().starts_with("WRONGTYPE"));
    CHECK(got.found.answered() == 5);
    servers[4].command({"DEL", "lock:stock"});
}

TEST_CASE(
    "an inspection of a huge value closes no connection, and other operations continue [scenario-92]",
    "[inspect][threads][scenario-92]")
{
    std::vector<server> servers = start_servers(3);
    client one{unhurried(servers)};
    one.wait_for_masters();
    const std::string megabyte(std::size_t{1} << 20, 'v');
    for (server& each : servers)
    {
        each.command({"SET", "lock:megabyte", megabyte, "PX", "600000"});
        each.command({"SETRANGE", "lock:huge", "16777216", "end"});
    }
    for (const std::string resource : {"megabyte", "huge"})
    {
        std::vector<std::future<acquired>> acquires;
        for (int count = 0; count < 20; ++count)
        {
            acquires.push_back(start_acquire(
                one.locks(), resource + " alongside " + std::to_string(count), {.ttl = long_ttl}));
        }
        const inspected got = inspect(one.locks(), resource);
        CHECK_FALSE(got.error);
        for (const master_inspection& each : got.found.masters())
        {
            INFO(each.reason.message() << ' ' << each.detail.view());
            CHECK_FALSE(each.reason);
            CHECK(each.has_key);
            CHECK(each.expires_in.has_value() == (resource == "megabyte"));
            CHECK(each.owner_id.view().size() <= short_text::capacity);
            CHECK(each.owner_id.view().ends_with("..."));
        }
        for (std::future<acquired>& each : acquires)
        {
            const acquired got_too = take(std::move(each), "an acquire during the inspection");
            INFO(got_too.report);
            CHECK_FALSE(got_too.error);
            CHECK(got_too.report.count(vote::failed) == 0);
        }
    }
    for (std::size_t index = 0; index < servers.size(); ++index)
    {
        CHECK(one.events().downs_of(index).empty());
    }
}

TEST_CASE("an empty value, and a value of any type, count as a key", "[inspect][threads][scenario-92]")
{
    std::vector<server> servers = start_servers(5);
    client one{unhurried(servers)};
    one.wait_for_masters();
    servers[0].command({"SET", "lock:stock", ""});
    servers[1].command({"HSET", "lock:stock", "field", "1"});
    servers[2].command({"SADD", "lock:stock", "member"});
    servers[3].command({"XADD", "lock:stock", "*", "field", "1"});
    servers[3].command({"PEXPIRE", "lock:stock", "600000"});
    servers[4].command({"ZADD", "lock:stock", "1", "member"});
    const inspected got = inspect(one.locks(), "stock");
    CHECK_FALSE(got.error);
    CHECK(got.found.answered() == 5);
    CHECK(got.found.taken() == 5);
    CHECK(got.found.holder().empty());
    const auto masters = got.found.masters();
    CHECK(masters[0].detail.view().empty());
    for (std::size_t index = 1; index < masters.size(); ++index)
    {
        CHECK(masters[index].detail.view().starts_with("WRONGTYPE"));
    }
    CHECK_FALSE(masters[2].expires_in);
    REQUIRE(masters[3].expires_in);
    CHECK(*masters[3].expires_in > std::chrono::milliseconds{0});
    // No connection was closed.
    CHECK(one.events().downs_of(1).empty());
    lease held = one.win("another");
    CHECK_FALSE(release(held).error);
    for (server& each : servers)
    {
        each.command({"DEL", "lock:stock"});
    }
}

TEST_CASE(
    "an inspection without a quorum of answers reports the masters without an answer, and why", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    config options = unhurried(servers);
    options.response_timeout = std::chrono::seconds{1};
    client one{options};
    one.wait_for_masters();
    const lease held = one.win("stock");
    REQUIRE(becomes(servers[0], "lock:stock", held.owner_id()));
    servers[1].kill();
    servers[2].stop();
    one.events().wait_for_down(1);
    const inspected got = inspect(one.locks(), "stock");
    CHECK(got.error == errc::no_quorum);
    CHECK(got.found.answered() == 1);
    CHECK(got.found.masters()[0].owner_id.view() == held.owner_id());
    CHECK(got.found.masters()[1].reason);
    const error_code hung = got.found.masters()[2].reason;
    CHECK((hung == master_errc::timed_out || hung == master_errc::unresponsive));
    servers[2].resume();
}

TEST_CASE("an inspection changes nothing", "[threads]")
{
    std::vector<server> servers = start_servers(1);
    client one{unhurried(servers)};
    lease held = one.win("stock");
    servers[0].command({"PEXPIRE", "lock:stock", "500000"});
    REQUIRE_FALSE(inspect(one.locks(), "stock").error);
    CHECK(servers[0].command({"PTTL", "lock:stock"}).integer <= 500'000);
    CHECK(servers[0].command({"GET", "lock:stock"}) == held.owner_id());
    CHECK_FALSE(release(held).error);
    CHECK(inspect(one.locks(), "stock").found.holder().empty());
}

TEST_CASE("an inspection of an invalid name, and one after the shutdown, are refused", "[threads]")
{
    std::vector<server> servers = start_servers(1);
    client one{unhurried(servers)};
    CHECK(inspect(one.locks(), "").error == errc::invalid_resource);
    CHECK(inspect(one.locks(), std::string(1025, 'x')).error == errc::invalid_resource);
    REQUIRE_FALSE(shut_down(one.locks()));
    CHECK(inspect(one.locks(), "stock").error == errc::closed);
}

} // namespace redlock::test
