// SPDX-License-Identifier: BSL-1.0
// What an observer is notified of, in which order, on which executor, and what it may do.
#include "integration/fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

using namespace redlock::test;
using namespace std::chrono_literals;
using redlock::errc;
using redlock::vote;

namespace
{

/// A short line for an event, without what differs between runs.
std::string line(const redlock::event& what)
{
    struct writer
    {
        std::string operator()(const redlock::master_up& one) const
        {
            return "up " + std::to_string(one.index);
        }
        std::string operator()(const redlock::master_down& one) const
        {
            return "down " + std::to_string(one.index);
        }
        std::string operator()(const redlock::master_warning& one) const
        {
            return "at risk " + std::to_string(one.index);
        }
        std::string operator()(const redlock::round_decided& one) const
        {
            const std::string verb{redlock::to_string(one.report.operation)};
            return verb + " " + one.resource + ": " +
                   (one.report.result ? one.report.result.message() : "won");
        }
        std::string operator()(const redlock::acquire_queued& one) const
        {
            return "queued for " + one.resource;
        }
        std::string operator()(const redlock::lease_extended& one) const
        {
            return "extended " + one.resource;
        }
        std::string operator()(const redlock::lease_lost& one) const { return "lost " + one.resource; }
        std::string operator()(const redlock::lease_released& one) const
        {
            return "released " + one.resource;
        }
        std::string operator()(const redlock::events_dropped& one) const
        {
            return "dropped " + std::to_string(one.count);
        }
        std::string operator()(const redlock::master_quarantined& one) const
        {
            return "quarantined " + std::to_string(one.index);
        }
        std::string operator()(const redlock::master_armed& one) const
        {
            return "armed " + std::to_string(one.index);
        }
    };
    return std::visit(writer{}, what);
}

std::vector<std::string> lines(const std::vector<redlock::event>& events)
{
    std::vector<std::string> text;
    for (const redlock::event& one : events)
    {
        text.push_back(line(one));
    }
    return text;
}

/// Returns the only event of a type.
template <class Event>
Event only(const std::vector<redlock::event>& events)
{
    std::vector<Event> found;
    for (const redlock::event& one : events)
    {
        if (const Event* match = std::get_if<Event>(&one))
        {
            found.push_back(*match);
        }
    }
    REQUIRE(found.size() == 1);
    return found.front();
}

} // namespace

TEST_CASE("an observer is notified of events in their order")
{
    server at;
    client own{unhurried({address_of(at)})};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    const std::string owner{lease.owner_id()};
    CHECK(own.try_acquire("stock", {.ttl = long_ttl}).error == errc::held_by_other);
    CHECK_FALSE(extend(lease, 2 * long_ttl).error);
    const redlock::clock::time_point until = lease.valid_until();
    CHECK_FALSE(release(lease).error);
    redlock::lease stolen = own.win("s");
    REQUIRE(at.command({"DEL", "lock:s"}) == 1);
    CHECK(extend(stolen, 2 * long_ttl).error == errc::lease_lost);
    at.kill();
    own.events().wait_for_down(0);
    at.restart();
    own.events().wait_for_up(0, 2);

    const std::vector<redlock::event> events = own.events().events();
    // While the master is down, each new reason is reported once; the first is that the connection was lost.
    std::vector<std::string> text = lines(events);
    text.erase(std::unique(text.begin(), text.end()), text.end());
    const std::string held = "acquire stock: " + redlock::error_code{errc::held_by_other}.message();
    const std::string disowned = "extend s: " + redlock::error_code{errc::lease_lost}.message();
    CHECK(
        text == std::vector<std::string>{
                    "up 0", "acquire stock: won", held, "extended stock", "extend stock: won",
                    "release stock: won", "released stock", "acquire s: won", disowned, "lost s", "down 0",
                    "up 0"});

    const auto up = std::get<redlock::master_up>(events.front());
    CHECK(up.name == address_of(at).name());
    CHECK(up.server.size() == 40);
    const auto extended = only<redlock::lease_extended>(events);
    CHECK(extended.owner_id == owner);
    CHECK(extended.valid_until == until);
    const auto released = only<redlock::lease_released>(events);
    CHECK(released.owner_id == owner);
    CHECK_FALSE(released.result);
    const auto lost = only<redlock::lease_lost>(events);
    CHECK(lost.reason == errc::lease_lost);
    CHECK(lost.owner_id == stolen.owner_id());
    CHECK(own.events().downs_of(0).front().reason == redlock::master_errc::connection_lost);
    const auto decided = std::get<redlock::round_decided>(events[1]);
    CHECK(decided.report.count(vote::granted) == 1);
    CHECK(decided.report.rounds == 1);
}

TEST_CASE("a lease that is destroyed without a release causes an event, too")
{
    server at;
    client own{unhurried({address_of(at)})};
    own.wait_for_masters();
    {
        const redlock::lease lease = own.win("stock");
    }
    own.events().wait_until(
        [](const auto& events) { return std::holds_alternative<redlock::lease_released>(events.back()); },
        "the release in the background");
    CHECK_FALSE(only<redlock::lease_released>(own.events().events()).result);
}

TEST_CASE("an observer is called on its executor and may call the manager", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    event_loop loop{2};
    asio::io_context other;
    auto work = asio::make_work_guard(other);
    std::optional<redlock::lock_manager> locks;
    std::vector<std::thread::id> called_on;
    std::promise<redlock::error_code> acquired_inside;
    const auto on_event = [&](const redlock::event& what)
    {
        called_on.push_back(std::this_thread::get_id());
        const auto* released = std::get_if<redlock::lease_released>(&what);
        if (released != nullptr && released->resource == "stock")
        {
            // An acquire started right after the notification: an internal mutex held during the call would deadlock
            // here.
            const auto then = [&](redlock::error_code error, redlock::lease)
            {
                acquired_inside.set_value(error);
                work.reset();
            };
            locks->async_acquire("s", long_ttl, then);
        }
    };
    redlock::config options = unhurried(servers);
    options.observer = {.on_event = on_event, .executor = other.get_executor(), .max_waiting = 1000};
    locks.emplace(loop.context(), options);
    redlock::lease lease = acquire(*locks, "stock", {.ttl = long_ttl}).lease;
    CHECK_FALSE(release(lease).error);
    other.run_for(patience);
    CHECK_FALSE(take(acquired_inside.get_future(), "an acquire from inside an observer"));
    CHECK(called_on.size() >= 4);
    CHECK(called_on == std::vector<std::thread::id>(called_on.size(), std::this_thread::get_id()));
    loop.stop();
}

TEST_CASE("events that an observer is too slow for are dropped and counted", "[threads]")
{
    server at;
    asio::io_context slow;
    std::vector<redlock::event> seen;
    event_loop loop; // Destroyed first: releasing the last lease still causes events.
    redlock::config options = unhurried({address_of(at)});
    options.observer = {
        .on_event = [&](const redlock::event& one) { seen.push_back(one); },
        .executor = slow.get_executor(),
        .max_waiting = 4};
    redlock::lock_manager locks{loop.context(), options};
    for (int time = 0; time < 10; ++time)
    {
        redlock::lease lease = acquire(locks, "stock", {.ttl = long_ttl, .wait = redlock::no_limit}).lease;
        CHECK_FALSE(release(lease).error);
    }
    CHECK(seen.empty());
    slow.poll();
    // The master came up, and each time an acquire was won, a release was won, and the lease was released: 31 events,
    // of which 4 had room.
    CHECK(
        lines(seen) ==
        std::vector<std::string>{
            "up 0", "acquire stock: won", "release stock: won", "released stock", "dropped 27"});

    seen.clear();
    redlock::lease lease = acquire(locks, "s", {.ttl = long_ttl}).lease;
    slow.restart();
    slow.poll();
    CHECK(lines(seen) == std::vector<std::string>{"acquire s: won"});
}
