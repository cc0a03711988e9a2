// SPDX-License-Identifier: BSL-1.0
// Masters that refuse releases permanently, send unsolicited pushes, or announce another master's run id, over TCP.
#include "integration/fixture.hpp"
#include "support/fake_server.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

std::vector<master_warning> refusals_in(const std::vector<event>& events)
{
    std::vector<master_warning> found;
    for (const event& each : events)
    {
        const auto* one = std::get_if<master_warning>(&each);
        if (one != nullptr && one->what == risk::release_refused)
        {
            found.push_back(*one);
        }
    }
    return found;
}

/// Returns two real masters and a third.
std::vector<master> with(const master& third, const std::vector<server>& real)
{
    std::vector<master> all{third};
    for (const server& each : real)
    {
        all.push_back(address_of(each));
    }
    return all;
}

constexpr int repetitions = 200;

void lock_and_release(client& own)
{
    for (int count = 0; count < repetitions; ++count)
    {
        lease held = own.win("stock" + std::to_string(count));
        REQUIRE_FALSE(release(held).error);
    }
}

} // namespace

TEST_CASE(
    "a master without scripts counts as confirmed, is reported once, and doesn't delay the shutdown",
    "[release][scenario-87][own-servers]")
{
    server_options options = server_options::plain();
    options.settings = {"--rename-command", "EVALSHA", "", "--rename-command", "EVAL", ""};
    const server refusing{options};
    const std::vector<server> others = start_servers(2);
    client own{unhurried(with(address_of(refusing), others))};
    own.wait_for_masters();
    lock_and_release(own);
    own.events().wait_until(
        [](const std::vector<event>& events) { return !refusals_in(events).empty(); }, "a refusal");
    CHECK_FALSE(shut_down(own.locks()));
    const std::vector<master_warning> told = refusals_in(own.events().events());
    REQUIRE(told.size() == 1);
    CHECK(told[0].index == 0);
    CHECK(told[0].detail.starts_with("the ttl frees the key: ERR unknown command"));
}

TEST_CASE("a hash in the place of a lock is another client's key", "[release][scenario-87][own-servers]")
{
    std::vector<server> masters = start_servers(3);
    for (const std::size_t each : {0U, 1U})
    {
        masters[each].command({"HSET", "lock:stock", "uuid", "1"});
    }
    client own{unhurried(masters)};
    own.wait_for_masters();
    for (int count = 0; count < repetitions; ++count)
    {
        CHECK(own.try_acquire("stock", {.ttl = long_ttl}).error == errc::held_by_other);
    }
    CHECK_FALSE(shut_down(own.locks()));
    CHECK(masters[2].command({"EXISTS", "lock:stock"}) == 0);
    const std::vector<master_warning> told = refusals_in(own.events().events());
    REQUIRE(told.size() == 2);
    CHECK(told[0].detail.starts_with("a key is not a lock: WRONGTYPE"));
}

TEST_CASE("a server that sends unsolicited pushes is disconnected", "[connection][scenario-89][own-servers]")
{
    const applies when = GENERATE(applies::from_the_start, applies::to_locks);
    const auto pushes = [](session&, const command&, std::string honest_bytes)
    {
        std::string bytes;
        for (int count = 0; count < 16; ++count)
        {
            bytes += ">2\r\n$7\r\nmessage\r\n$2\r\nhi\r\n";
        }
        return answer{.bytes = bytes + honest_bytes};
    };
    fake_server pushing{altered(pushes, when)};
    const std::vector<server> others = start_servers(2);
    client own{unhurried(with(master{pushing.url()}, others))};
    own.events().wait_for_up(1);
    own.events().wait_for_up(2);
    if (when == applies::to_locks)
    {
        own.events().wait_for_up(0);
    }
    lease held = own.win("stock");
    own.events().wait_for_down(0);
    const master_down why = own.events().downs_of(0).front();
    CHECK(why.reason == master_errc::protocol_error);
    CHECK(why.detail == "it sent 16 unsolicited pushes");
    CHECK_FALSE(release(held).error);
}

TEST_CASE(
    "a server that announces another server's run id doesn't take over its role",
    "[handshake][scenario-90][own-servers]")
{
    const std::string run_id(40, 'a');
    auto honest_one = std::make_unique<fake_server>(honest({.run_id = run_id}));
    const std::vector<server> others = start_servers(2);
    fake_server liar{honest({.run_id = std::string(40, 'b')})};
    std::vector<master> all = with(master{honest_one->url()}, others);
    all.emplace_back(liar.url());
    client own{unhurried(all)};
    own.wait_for_masters();
    // From now on it announces the other's run id, and the other is down.
    liar.behave(honest({.run_id = run_id}));
    honest_one.reset();
    own.events().wait_for_down(0);
    liar.end_connections();
    const auto refused = [](const std::vector<event>& events)
    {
        return std::any_of(
            events.begin(), events.end(),
            [](const event& each)
            {
                const auto* down = std::get_if<master_down>(&each);
                return down != nullptr && down->index == 3 && down->reason == master_errc::same_server;
            });
    };
    own.events().wait_until(refused, "same_server");
    CHECK(own.events().times_up(3) == 1);
}

} // namespace redlock::test
