// SPDX-License-Identifier: BSL-1.0
// Kept leases without a body, and whole processes that keep one, on real masters with real faults.
#include "integration/fixture.hpp"

#include "support/child_process.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

acquired acquire_kept(lock_manager& locks, std::string resource, keep_options options)
{
    auto result = std::make_shared<std::promise<acquired>>();
    std::future<acquired> future = result->get_future();
    auto out = std::make_shared<redlock::report>();
    locks.async_acquire_kept(
        std::move(resource), options, *out,
        [result, out](error_code error, lease got) {
            result->set_value({error, std::move(got), *out});
        });
    return take(std::move(future), "an acquire that is kept");
}

/// The result of a wait for a loss.
struct loss
{
    error_code error;
    error_code why;
};

std::future<loss> start_wait_lost(lease& held)
{
    auto result = std::make_shared<std::promise<loss>>();
    std::future<loss> future = result->get_future();
    held.async_wait_lost([result](error_code error, error_code why) { result->set_value({error, why}); });
    return future;
}

/// With a node timeout that fits into the schedule of `often` twice.
config keeping(const std::vector<server>& servers)
{
    config options = unhurried(servers);
    options.node_timeout = 1s;
    return options;
}

/// Extended twice a second; lost five seconds after a quorum of masters has stopped answering.
constexpr keep_options often{
    .ttl = 20s, .max_hold = redlock::no_limit, .wait = 60s, .extend_every = 500ms, .stop_margin = 15s};

std::string text_of(const std::string& file)
{
    std::ifstream in{file};
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

} // namespace

TEST_CASE("a kept lease without a body is extended until it is released", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    client one{keeping(servers)};
    one.wait_for_masters();
    acquired got = acquire_kept(one.locks(), "stock", often);
    REQUIRE_FALSE(got.error);
    std::future<loss> lost = start_wait_lost(got.lease);
    const clock::time_point first = got.lease.valid_until();
    one.events().wait_until(
        [](const std::vector<event>& events)
        {
            return std::count_if(
                       events.begin(), events.end(),
                       [](const event& each) { return std::holds_alternative<lease_extended>(each); }) >= 3;
        },
        "three extensions");
    CHECK(got.lease.valid());
    CHECK(got.lease.valid_until() > first);
    REQUIRE_FALSE(release(got.lease).error);
    // Released, not lost.
    CHECK(take(std::move(lost), "the end of the wait").error == errc::not_held);
    for (server& each : servers)
    {
        CHECK(goes_away(each, "lock:stock"));
    }
}

TEST_CASE("a kept lease that is destroyed is released", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    client one{keeping(servers)};
    one.wait_for_masters();
    {
        const acquired got = acquire_kept(one.locks(), "stock", often);
        REQUIRE_FALSE(got.error);
    }
    for (server& each : servers)
    {
        CHECK(goes_away(each, "lock:stock"));
    }
}

TEST_CASE(
    "a wait for the loss returns when the lease is lost, and until when no other client can acquire it",
    "[threads][patient]")
{
    std::vector<server> servers = start_servers(3);
    client one{keeping(servers)};
    one.wait_for_masters();
    acquired got = acquire_kept(one.locks(), "stock", often);
    REQUIRE_FALSE(got.error);
    std::future<loss> lost = start_wait_lost(got.lease);
    SECTION("a quorum hangs")
    {
        servers[0].stop();
        servers[1].stop();
        const loss told = take(std::move(lost), "the loss");
        CHECK_FALSE(told.error);
        CHECK(told.why == errc::lease_lost);
        CHECK_FALSE(got.lease.valid());
        CHECK(got.lease.remaining() == 0ns);
        // Fifteen seconds before the end of its validity.
        CHECK(got.lease.valid_until() > clock::time_point{});
        servers[0].resume();
        servers[1].resume();
    }
    SECTION("a quorum answers that another client holds it")
    {
        servers[0].command({"SET", "lock:stock", "another client"});
        servers[1].command({"SET", "lock:stock", "another client"});
        const loss told = take(std::move(lost), "the loss");
        CHECK_FALSE(told.error);
        CHECK(told.why == errc::lease_lost);
        CHECK(got.lease.valid_until() == clock::time_point{});
        REQUIRE_FALSE(release(got.lease).error);
        CHECK(servers[0].command({"GET", "lock:stock"}) == "another client");
    }
    SECTION("the manager is shut down")
    {
        std::future<error_code> ended = start_shutdown(one.locks());
        const loss told = take(std::move(lost), "the loss");
        CHECK_FALSE(told.error);
        CHECK(told.why == errc::closed);
        // Nothing is released while the caller may still work under the lease.
        CHECK(servers[2].command({"EXISTS", "lock:stock"}).integer == 1);
        REQUIRE_FALSE(release(got.lease).error);
        CHECK_FALSE(take(std::move(ended), "the shutdown"));
    }
}

TEST_CASE("work in parallel with a wait for the loss ends with whichever completes first", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    client one{keeping(servers)};
    one.wait_for_masters();
    acquired got = acquire_kept(one.locks(), "stock", often);
    REQUIRE_FALSE(got.error);
    auto first = [&got](std::chrono::nanoseconds duration) -> asio::awaitable<std::size_t>
    {
        using namespace boost::asio::experimental::awaitable_operators;
        asio::steady_timer work{co_await asio::this_coro::executor, duration};
        auto working = work.async_wait(asio::use_awaitable);
        auto losing = got.lease.async_wait_lost(asio::use_awaitable);
        const auto ended = co_await (std::move(working) || std::move(losing));
        co_return ended.index();
    };
    CHECK(one.loop().run(first(1ms)) == 0);
    servers[0].command({"DEL", "lock:stock"});
    servers[1].command({"DEL", "lock:stock"});
    CHECK(one.loop().run(first(1h)) == 1);
}

TEST_CASE(
    "a process that was stopped finds its lease lost at the first check [scenario-1]",
    "[threads][scenario-1][patient]")
{
    std::vector<server> servers = start_servers(5);
    const temporary_directory directory;
    const std::string output = directory.path() + "/output";
    const config reached = reaching(servers);
    std::vector<std::string> arguments{LEASE_HOLDER, "stock", "3000", reached.tls.ca_file};
    for (const master& each : reached.masters)
    {
        arguments.insert(arguments.end(), {each.name(), each.username(), each.password().reveal()});
    }
    child_process holder{arguments, output};
    REQUIRE(comes_true(servers[0], [&] { return text_of(output).find("\nvalid\n") != std::string::npos; }));
    holder.stop();

    // The other client succeeds when the lease has expired, and not before.
    client other{unhurried(servers)};
    other.wait_for_masters();
    const acquired got = other.acquire("stock", {.ttl = long_ttl, .wait = redlock::no_limit});
    REQUIRE_FALSE(got.error);
    // On a master whose clock is behind, the key may expire too late for this round.
    const auto keeps_quorum = [&]
    {
        return std::count_if(
                   servers.begin(), servers.end(),
                   [&](server& each) {
                       return each.command({"GET", "lock:stock"}) == got.lease.owner_id();
                   }) >= 3;
    };
    REQUIRE(comes_true(servers[0], keeps_quorum));
    holder.resume();
    REQUIRE(holder.wait_for_end(patience));
    const std::string said = text_of(output);
    INFO(said);
    const std::string after = said.substr(said.find('\n') + 1);
    // Cancelled before its first check, or invalid at its first check.
    CHECK((after == "valid\ninvalid\ncancelled\nlost\n" || after == "valid\ncancelled\nlost\n"));
    CHECK(got.lease.valid());
    CHECK(keeps_quorum());
}

} // namespace redlock::test
