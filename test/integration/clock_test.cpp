// SPDX-License-Identifier: BSL-1.0
// A real server whose clock is changed while it holds locks.
#include "integration/fixture.hpp"
#include "support/settable_clock.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using Catch::Matchers::StartsWith;

std::vector<master_warning> clock_risks(const std::vector<event>& events)
{
    std::vector<master_warning> found;
    for (const event& each : events)
    {
        const auto* one = std::get_if<master_warning>(&each);
        if (one != nullptr && one->what == redlock::risk::clock)
        {
            found.push_back(*one);
        }
    }
    return found;
}

} // namespace

TEST_CASE(
    "a master's clock set forward removes keys early, set back keeps them too long: both are reported "
    "[scenario-4][scenario-5]",
    "[own-servers][scenario-4][scenario-5]")
{
    settable_clock clock_of_third{SETTABLE_CLOCK_PRELOAD};
    std::vector<server> servers = start_servers(2, server_options::plain());
    server_options with_clock = server_options::plain();
    with_clock.program = clock_of_third.program();
    servers.emplace_back(with_clock);
    config options = unhurried(servers);
    options.probe_interval = 50ms;
    client one{options};
    one.wait_for_masters();
    const lease held = one.win("stock", 600s);
    REQUIRE(becomes(servers[2], "lock:stock", held.owner_id()));

    clock_of_third.set(1h);
    one.events().wait_until(
        [](const std::vector<event>& events) { return clock_risks(events).size() == 1; }, "the step ahead");
    CHECK_THAT(clock_risks(one.events().events())[0].detail, StartsWith("it went ahead by 3"));
    // This master has lost its key long before the end of the lease.
    CHECK(goes_away(servers[2], "lock:stock"));
    CHECK(held.valid());
    CHECK(servers[0].command({"GET", "lock:stock"}) == held.owner_id());

    servers[2].command({"SET", "lock:other", "x", "PX", "1000"});
    clock_of_third.set(0s);
    one.events().wait_until(
        [](const std::vector<event>& events) { return clock_risks(events).size() == 2; }, "the step back");
    CHECK_THAT(clock_risks(one.events().events())[1].detail, StartsWith("it fell behind by 3"));
    CHECK(servers[2].command({"PTTL", "lock:other"}).integer > 3'000'000);
}

} // namespace redlock::test
