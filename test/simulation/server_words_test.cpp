// SPDX-License-Identifier: BSL-1.0
// Texts of servers are never passed on unchanged: every text is short, printable, and without a password.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

constexpr std::string_view first_password = "sesame-open";
constexpr std::string_view other_password = "rosebud";

/// Escape sequences, both passwords, and a long text.
const std::string evil = "\x1b[2J\x07 sesame-open rosebud \xff" + std::string(60'000, 'x');

std::vector<std::string> texts_of(const std::vector<event>& events)
{
    std::vector<std::string> texts;
    for (const event& each : events)
    {
        if (const auto* up = std::get_if<master_up>(&each))
        {
            texts.push_back(up->server);
        }
        else if (const auto* down = std::get_if<master_down>(&each))
        {
            texts.push_back(down->detail);
        }
        else if (const auto* at_risk = std::get_if<master_warning>(&each))
        {
            texts.push_back(at_risk->detail);
        }
        else if (const auto* decided = std::get_if<round_decided>(&each))
        {
            for (const master_report& vote : decided->report.masters())
            {
                texts.emplace_back(vote.detail.view());
            }
        }
    }
    return texts;
}

} // namespace

TEST_CASE(
    "whatever a server says is shown short, printable and without any master's password [scenario-94]",
    "[secrets][scenario-94]")
{
    simulation sim{2};
    config options = sim.options();
    options.masters = {
        master{"redis://:" + std::string{first_password} + "@10.0.0.1"},
        master{"redis://:" + std::string{other_password} + "@10.0.0.2"}};
    sim.master(0).password = first_password;
    sim.master(1).password = other_password;
    std::vector<event> events;
    options.observer.on_event = [&events](const event& what) { events.push_back(what); };
    for (std::size_t index = 0; index < 2; ++index)
    {
        sim_master& one = sim.master(index);
        one.run_id = evil;
        one.run_id += static_cast<char>('a' + index);
        one.version = "5.0 " + evil.substr(0, 40);
        one.maxmemory_policy = evil.substr(0, 50);
    }
    lock_manager locks = sim.make_connected_manager(options);
    sim.master(0).refuse("SET", "-ERR you sent " + evil + "\r\n");
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 0ms});
    REQUIRE(sim.finish(got));

    std::vector<std::string> texts;
    locks.async_inspect(
        "stock",
        [&texts](error_code, const inspection& found)
        {
            for (const master_inspection& each : found.masters())
            {
                texts.emplace_back(each.detail.view());
                texts.emplace_back(each.owner_id.view());
            }
        });
    sim.master(1).set("lock:other", evil, 10s);
    locks.async_inspect(
        "other", [&texts](error_code, const inspection& found)
        { texts.emplace_back(found.masters()[1].owner_id.view()); });
    locks.async_examine(
        [&texts](error_code, const std::vector<master_examination>& found)
        {
            for (const master_examination& each : found)
            {
                texts.push_back(each.server);
                texts.push_back(each.run_id);
                for (const master_issue& one : each.risks)
                {
                    texts.push_back(one.detail);
                }
            }
        });
    sim.run_for(3s);
    sim.master(0).break_connections();
    sim.master(0).refuse("HELLO", "-ERR " + evil + "\r\n");
    sim.run_for(1s);

    std::vector<std::string> told = texts_of(events);
    texts.insert(texts.end(), told.begin(), told.end());
    CAPTURE(texts);
    CHECK(texts.size() > 10);
    CHECK(
        std::count_if(texts.begin(), texts.end(), [](const auto& each) { return each.ends_with("..."); }) >
        3);
    CHECK(std::any_of(
        texts.begin(), texts.end(),
        [](const auto& each) { return each.find("\\x1b[2J\\x07 *** *** \\xff") != std::string::npos; }));
    for (const std::string& each : texts)
    {
        CAPTURE(each);
        CHECK(each.size() <= short_text::capacity);
        CHECK(std::all_of(each.begin(), each.end(), [](char one) { return one >= ' ' && one <= '~'; }));
        CHECK(each.find("sesame") == std::string::npos);
        CHECK(each.find("rosebud") == std::string::npos);
    }
    CHECK(got->report.to_string().find("sesame") == std::string::npos);
}

TEST_CASE(
    "each operation reports why a master is disconnected, with the words of its last failure", "[reports]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager(sim.options());
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    sim.run_until_idle();
    sim.master(2).refuse("HELLO", "-LOADING Redis is loading the dataset\r\n");
    sim.master(2).break_connections();
    sim.run_for(1s);

    const outcome_ptr extended = sim.extend(got->lease, 60s);
    REQUIRE(sim.finish(extended));
    const outcome_ptr other = sim.acquire(locks, "other", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(other));
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    for (const outcome_ptr& each : {extended, other, released})
    {
        CAPTURE(to_string(each->report.operation));
        REQUIRE(each->report.masters().size() == 3);
        const master_report& down = each->report.masters()[2];
        CHECK(down.vote == vote::unsent);
        CHECK(down.reason == master_errc::loading);
        CHECK(down.detail.view() == "LOADING");
    }
    master_inspection seen;
    locks.async_inspect("stock", [&seen](error_code, const inspection& found) { seen = found.masters()[2]; });
    sim.run_for(1s);
    CHECK(seen.reason == master_errc::loading);
    CHECK(seen.detail.view() == "LOADING");
}

TEST_CASE("an inspection has the remaining time of each key, however short or long", "[reports]")
{
    const std::vector<std::chrono::milliseconds> left{2ms, 999ms, 1s, 1001ms, std::chrono::hours{24 * 365}};
    simulation sim{left.size() + 2};
    lock_manager locks = sim.make_connected_manager();
    sim.run_until_idle();
    for (std::size_t index = 0; index < left.size(); ++index)
    {
        sim.master(index).set("lock:stock", "them", left[index]);
    }
    sim.master(left.size()).set("lock:stock", "them");
    const clock::time_point began = sim.now();
    std::optional<inspection> seen;
    clock::duration took{0};
    locks.async_inspect(
        "stock",
        [&](error_code, inspection found)
        {
            seen = std::move(found);
            took = sim.now() - began;
        });
    sim.run_for(1s);
    REQUIRE(seen);
    for (std::size_t index = 0; index < left.size(); ++index)
    {
        CAPTURE(index);
        const std::optional<std::chrono::milliseconds> shown = seen->masters()[index].expires_in;
        REQUIRE(shown);
        CHECK(*shown <= left[index]);
        CHECK(*shown >= left[index] - took - 1ms);
    }
    // One key never expires, and one master has none.
    CHECK_FALSE(seen->masters()[left.size()].expires_in);
    CHECK(seen->masters()[left.size()].has_key);
    CHECK_FALSE(seen->masters().back().expires_in);
    CHECK_FALSE(seen->masters().back().has_key);
}

} // namespace redlock::test
