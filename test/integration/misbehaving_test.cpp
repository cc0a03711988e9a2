// SPDX-License-Identifier: BSL-1.0
// Servers that misbehave: each loses its vote, but never delays the caller, and never causes a lock that isn't held.
#include "integration/fixture.hpp"
#include "support/fake_server.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/resource.h>

using namespace redlock::test;
using namespace std::chrono_literals;
using redlock::errc;
using redlock::master_errc;
using redlock::vote;

namespace
{

/// A kind of misbehaviour, and the reasons that a vote may then have.
struct misbehaviour
{
    std::string name;
    std::function<behaviour(applies)> make;
    std::vector<redlock::error_code> reasons;

    friend std::ostream& operator<<(std::ostream& out, const misbehaviour& one) { return out << one.name; }
};

const redlock::error_code timed_out = master_errc::timed_out;
const redlock::error_code not_resp = master_errc::protocol_error;
const redlock::error_code lost = master_errc::connection_lost;
const redlock::error_code connecting = master_errc::connect_timed_out;
const redlock::error_code nothing_yet = master_errc::not_connected;
const redlock::error_code reset = boost::system::errc::make_error_code(boost::system::errc::connection_reset);
const redlock::error_code pipe = boost::system::errc::make_error_code(boost::system::errc::broken_pipe);

/// Behaviours that no client can work with.
misbehaviour one_of_the_useless()
{
    const auto never = [](applies when) { return silent(when); };
    const auto http = [](applies when) { return speaks_http(when); };
    const auto noise = [](applies when) { return garbage(when); };
    const auto huge = [](applies when) { return huge_bulk_length(when); };
    const auto endless = [](applies when) { return endless_line(1'000'000, when); };
    const auto middle = [](applies when) { return closes_in_the_middle(when); };
    const auto instead = [](applies when) { return closes_instead(when); };
    const auto deep = [](applies when)
    { return says("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", when); };
    const auto wide = [](applies when) { return says("*4294967295\r\n", when); };
    const auto error = [](applies when) { return says("-ERR out of order\r\n", when); };
    const auto wrong_type = [](applies when) { return says("*2\r\n:1\r\n+OK\r\n", when); };
    return GENERATE_REF(
        misbehaviour{"never answers", never, {timed_out, connecting, nothing_yet}},
        misbehaviour{"speaks HTTP", http, {not_resp}}, misbehaviour{"sends garbage", noise, {not_resp}},
        misbehaviour{"announces 4 GiB", huge, {not_resp}},
        misbehaviour{"sends a line without end", endless, {not_resp}},
        misbehaviour{"closes in the middle of an answer", middle, {lost, reset, pipe}},
        misbehaviour{"closes instead of answering", instead, {lost, reset, pipe}},
        misbehaviour{"nests without end", deep, {not_resp}},
        misbehaviour{"announces 4 billion elements", wide, {not_resp}},
        misbehaviour{
            "answers every command with an error",
            error,
            {master_errc::command_failed, master_errc::authentication_failed}},
        misbehaviour{
            "answers with what no server answers",
            wrong_type,
            {not_resp, master_errc::command_failed, master_errc::authentication_failed}});
}

applies one_of_the_times()
{
    return GENERATE(applies::from_the_start, applies::to_locks);
}

/// Real masters, and misbehaving ones.
struct mixed_masters
{
    /// The misbehaving servers are separate, but behave alike.
    mixed_masters(std::size_t good, std::size_t bad, const std::function<behaviour()>& how)
        : servers{start_servers(good)}
    {
        for (std::size_t count = 0; count < bad; ++count)
        {
            scripted.push_back(std::make_unique<fake_server>(how()));
        }
    }

    redlock::config options() const
    {
        std::vector<redlock::master> masters;
        for (const auto& each : scripted)
        {
            masters.emplace_back(each->url());
        }
        for (const server& each : servers)
        {
            masters.push_back(address_of(each));
        }
        redlock::config result = unhurried(masters);
        result.node_timeout = 1s;
        return result;
    }

    std::vector<std::unique_ptr<fake_server>> scripted;
    std::vector<server> servers;
};

bool is_one_of(const std::vector<redlock::error_code>& allowed, const redlock::error_code& reason)
{
    return std::find(allowed.begin(), allowed.end(), reason) != allowed.end();
}

/// Returns the first master's vote in the first round where it isn't merely pending: rounds don't wait for it.
redlock::master_report vote_of_first(client& own, const std::vector<redlock::error_code>& allowed)
{
    redlock::master_report last;
    for (int attempt = 0; attempt < 500; ++attempt)
    {
        acquired won = own.acquire("stock", {.ttl = long_ttl, .wait = redlock::no_limit});
        last = won.report.masters()[0];
        const finished released = release(won.lease);
        if (won.error || released.error)
        {
            throw std::runtime_error{won.report.to_string() + "\n" + released.report.to_string()};
        }
        if (last.vote != vote::pending && last.reason != master_errc::not_connected &&
            is_one_of(allowed, last.reason))
        {
            return last;
        }
    }
    return last;
}

} // namespace

TEST_CASE(
    "one misbehaving master of five is one failed vote with its reason; "
    "the lock is held with the others",
    "[scenario-36][own-servers]")
{
    const misbehaviour how = one_of_the_useless();
    const applies when = one_of_the_times();
    CAPTURE(how, when);
    mixed_masters masters{4, 1, [&] { return how.make(when); }};
    client own{masters.options()};
    for (std::size_t index = 1; index < 5; ++index)
    {
        own.events().wait_for_up(index);
    }
    if (how.name == "never answers")
    {
        // Its vote is pending in every round that the others decide.
        redlock::lease lease = own.win("stock");
        CHECK_FALSE(extend(lease, 2 * long_ttl).error);
        CHECK_FALSE(release(lease).error);
    }
    else
    {
        const redlock::master_report said = vote_of_first(own, how.reasons);
        INFO(said.reason.message());
        CHECK((said.vote == vote::failed || said.vote == vote::unsent));
        CHECK(is_one_of(how.reasons, said.reason));
    }
    for (server& each : masters.servers)
    {
        CHECK(goes_away(each, "lock:stock"));
    }
    CHECK(masters.scripted[0]->complaints().empty());
}

TEST_CASE(
    "three of five masters that misbehave prevent a quorum, and never result in a lease",
    "[scenario-45][own-servers]")
{
    const misbehaviour how = one_of_the_useless();
    const applies when = one_of_the_times();
    CAPTURE(how, when);
    mixed_masters masters{2, 3, [&] { return how.make(when); }};
    redlock::config options = masters.options();
    options.connect_timeout = 1s;
    client own{options};
    for (int attempt = 0; attempt < 3; ++attempt)
    {
        const acquired none = own.try_acquire("stock", {.ttl = long_ttl});
        INFO(none.report);
        CHECK(none.error == errc::no_quorum);
        CHECK_FALSE(none.lease);
        for (std::size_t index = 0; index < 3; ++index)
        {
            const redlock::master_report& said = none.report.masters()[index];
            CHECK(said.vote != vote::granted);
            CHECK(said.vote != vote::denied);
        }
    }
    for (server& each : masters.servers)
    {
        CHECK(goes_away(each, "lock:stock"));
    }
}

TEST_CASE(
    "a master that sends a gigabyte without a line end costs no more memory than its buffer",
    "[own-servers][scenario-45]")
{
    constexpr std::size_t gigabyte = std::size_t{1} << 30;
    const applies when = GENERATE(applies::from_the_start, applies::to_locks);
    mixed_masters masters{4, 1, [&] { return endless_line(gigabyte, when); }};
    client own{masters.options()};
    for (std::size_t index = 1; index < 5; ++index)
    {
        own.events().wait_for_up(index);
    }
    const auto max_resident_kib = []
    {
        rusage used{};
        getrusage(RUSAGE_SELF, &used);
        return used.ru_maxrss;
    };
    const long before = max_resident_kib();
    // The client reconnects repeatedly; the server sends until the connection is closed.
    while (!masters.scripted[0]->wait_for_connections(5, 0ms))
    {
        const redlock::lease held = own.win("stock");
        REQUIRE(held.valid());
    }
    // Half of one of its answers: a sanitizer keeps some of the freed memory.
    CHECK(max_resident_kib() - before < static_cast<long>(gigabyte / 1024 / 2));
}

TEST_CASE("masters that answer in single bytes, or with a short delay, work", "[own-servers]")
{
    const auto bytes = [](applies when) { return in_single_bytes(when); };
    const auto later = [](applies when) { return late(20ms, when); };
    const auto how =
        GENERATE_REF(std::function<behaviour(applies)>{bytes}, std::function<behaviour(applies)>{later});
    const applies when = one_of_the_times();
    mixed_masters masters{0, 3, [&] { return how(when); }};
    client own{masters.options()};
    own.wait_for_masters();
    acquired won = own.acquire("stock", {.ttl = long_ttl, .wait = redlock::no_limit});
    INFO(won.report);
    REQUIRE_FALSE(won.error);
    CHECK_FALSE(extend(won.lease, 2 * long_ttl).error);
    CHECK_FALSE(release(won.lease).error);
}

TEST_CASE(
    "masters that answer after the node timeout are no quorum, and the keys they set are released",
    "[scenario-23][own-servers]")
{
    std::vector<std::shared_ptr<fake_redis>> states;
    std::vector<std::unique_ptr<fake_server>> servers;
    std::vector<redlock::master> addresses;
    for (int count = 0; count < 3; ++count)
    {
        states.push_back(std::make_shared<fake_redis>());
        servers.push_back(std::make_unique<fake_server>(late(1500ms, applies::to_locks, states.back())));
        addresses.emplace_back(servers.back()->url());
    }
    redlock::config options = unhurried(addresses);
    options.node_timeout = 500ms;
    client own{options};
    own.wait_for_masters();
    const acquired none = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(none.report);
    CHECK(none.error == errc::no_quorum);
    CHECK(none.report.count(vote::timed_out) == 3);
    for (std::size_t index = 0; index < 3; ++index)
    {
        CHECK(servers[index]->wait_for_command("EVALSHA", 1, patience));
    }
    // A shutdown waits for all answers.
    CHECK_FALSE(shut_down(own.locks()));
    for (const auto& each : states)
    {
        CHECK_FALSE(each->value("lock:stock"));
    }
}

TEST_CASE(
    "no answer of masters that send each one twice is taken for that of another command",
    "[scenario-43][own-servers]")
{
    const applies when = one_of_the_times();
    // Two of three: if a second answer were taken for that of the next command, a held key would look free.
    mixed_masters masters{1, 2, [&] { return answers_twice(when); }};
    client own{masters.options()};
    own.events().wait_for_up(2);
    const redlock::lease first = own.acquire("stock", {.ttl = long_ttl, .wait = 2s}).lease;
    CHECK(static_cast<bool>(first) == (when == applies::to_locks)); // Otherwise it is never connected.
    for (int attempt = 0; attempt < 20; ++attempt)
    {
        const acquired again = own.try_acquire("stock", {.ttl = long_ttl});
        INFO(again.report);
        CHECK_FALSE(again.lease);
    }
}

TEST_CASE("two answers of one master are one vote", "[scenario-43][own-servers]")
{
    const applies when = one_of_the_times();
    mixed_masters masters{2, 1, [&] { return answers_twice(when); }};
    for (server& each : masters.servers)
    {
        REQUIRE(each.command({"SET", "lock:stock", "another client"}) == "OK");
    }
    client own{masters.options()};
    own.events().wait_for_up(1);
    own.events().wait_for_up(2);
    const acquired none = own.try_acquire("stock", {.ttl = long_ttl});
    INFO(none.report);
    CHECK(none.error == errc::held_by_other);
    CHECK(none.report.count(vote::denied) == 2);
}

TEST_CASE(
    "every round of an acquire has its own owner id, and is released with it",
    "[scenario-19][scenario-25][own-servers]")
{
    const auto state = std::make_shared<fake_redis>();
    state->set("lock:stock", "another client");
    fake_server at{honest(state)};
    client own{unhurried({at.url()})};
    own.wait_for_masters();
    for (int time = 0; time < 10; ++time)
    {
        const acquired none =
            own.acquire("stock", {.ttl = long_ttl, .wait = redlock::no_limit, .max_rounds = 1});
        CHECK(none.error == errc::held_by_other);
    }
    CHECK(shut_down(own.locks()) == redlock::error_code{}); // Waits for the answers to its releases.

    std::vector<std::string> asked;
    std::vector<std::string> released;
    for (const command& each : at.commands())
    {
        if (each.front() == "SET")
        {
            CHECK(each.at(1) == "lock:stock");
            asked.push_back(each.at(2));
        }
        if (each.front() == "EVALSHA" && each.size() == 5)
        {
            CHECK(each.at(3) == "lock:stock");
            released.push_back(each.at(4));
        }
    }
    CHECK(asked == released);
    std::sort(asked.begin(), asked.end());
    CHECK(asked.size() == 10);
    CHECK(std::adjacent_find(asked.begin(), asked.end()) == asked.end());
}

TEST_CASE("a server that doesn't know HELLO is used with RESP2", "[own-servers]")
{
    std::vector<std::unique_ptr<fake_server>> servers;
    std::vector<redlock::master> addresses;
    for (int count = 0; count < 3; ++count)
    {
        const auto master =
            std::make_shared<fake_redis>(honest_options{.password = "secret", .knows_hello = false});
        // Such a server looks up the command before it requires a password.
        const auto knows_no_hello = [](session&, const command& words, std::string bytes)
        { return answer{.bytes = name_of(words) == "HELLO" ? "-ERR unknown command `HELLO`\r\n" : bytes}; };
        servers.push_back(
            std::make_unique<fake_server>(altered(knows_no_hello, applies::from_the_start, master)));
        addresses.emplace_back("redis://:secret@127.0.0.1:" + std::to_string(servers.back()->port()));
    }
    client own{unhurried(addresses)};
    client other{unhurried(addresses)};
    own.wait_for_masters();
    other.wait_for_masters();
    redlock::lease lease = own.win("stock");
    CHECK(other.try_acquire("stock", {.ttl = long_ttl}).error == errc::held_by_other);
    CHECK_FALSE(extend(lease, 2 * long_ttl).error);
    CHECK_FALSE(release(lease).error);
    CHECK_FALSE(other.try_acquire("stock", {.ttl = long_ttl}).error);
}

TEST_CASE(
    "a password that a server repeats doesn't appear in an event or a report", "[scenario-52][own-servers]")
{
    // Repeats what it receives.
    const auto repeats = [](session&, const command& words)
    {
        std::string text = "-ERR unknown argument";
        for (const std::string& word : words)
        {
            text += " '" + word + "'";
        }
        return answer{.bytes = text + "\r\n"};
    };
    fake_server at{answering(repeats)};
    client own{unhurried({"redis://user:sesame@127.0.0.1:" + std::to_string(at.port())})};
    own.events().wait_for_down(0);
    const redlock::master_down down = own.events().downs_of(0).front();
    CHECK(down.detail.find("sesame") == std::string::npos);
    CHECK(down.name.find("sesame") == std::string::npos);
    CHECK(down.reason.message().find("sesame") == std::string::npos);
}
