// SPDX-License-Identifier: BSL-1.0
// The backoff of releases: the size of a batch, and the delay after a refusal.
#include "net/release_backoff.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using net::release_backoff;

constexpr clock::time_point start{1h};
constexpr core::backoff_policy policy{10ms, 500ms};
constexpr std::uint64_t shortest_delay = 0; // The random number that yields the floor.

/// Records a refusal and returns the delay after it, with the random number that yields the maximum.
clock::duration delay_of_refusal(release_backoff& backoff, clock::time_point now, clock::duration bound)
{
    backoff.on_refused();
    const auto longest = static_cast<std::uint64_t>((bound - core::backoff_floor).count());
    return backoff.delay(now, longest) ? backoff.not_before() - now : clock::duration{0};
}

} // namespace

TEST_CASE("the next batch waits for all answers to the previous one", "[release][scenario-88]")
{
    release_backoff backoff{policy};
    CHECK(backoff.may_send(start));
    for (std::size_t sent = 0; sent < release_backoff::batch; ++sent)
    {
        backoff.on_sent();
    }
    for (std::size_t left = release_backoff::batch; left > 0; --left)
    {
        CHECK_FALSE(backoff.may_send(start));
        backoff.on_answered();
    }
    CHECK(backoff.may_send(start));
}

TEST_CASE(
    "each consecutive refusal doubles the bound of the delay, up to the maximum", "[release][scenario-88]")
{
    release_backoff backoff{policy};
    clock::time_point now = start;
    for (const clock::duration bound :
         std::vector<clock::duration>{10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms})
    {
        CHECK(delay_of_refusal(backoff, now, bound) == bound);
        CHECK_FALSE(backoff.may_send(now + bound - 1ns));
        now += bound;
        CHECK(backoff.may_send(now));
    }
    backoff.on_all_done();
    CHECK(delay_of_refusal(backoff, now, 10ms) == 10ms);
}

TEST_CASE("refusals that arrive while the next batch is delayed don't extend the delay", "[release]")
{
    release_backoff backoff{policy};
    REQUIRE(delay_of_refusal(backoff, start, 10ms) == 10ms);
    CHECK(delay_of_refusal(backoff, start + 9ms, 10ms) == 0ms);
    CHECK_FALSE(backoff.refused());
    CHECK(backoff.may_send(start + 10ms));
}

TEST_CASE("without a refusal there is no delay", "[release]")
{
    release_backoff backoff{policy};
    CHECK_FALSE(backoff.delay(start, shortest_delay));
    CHECK(backoff.may_send(start));
}

TEST_CASE("an unknown error counts as permanent after several consecutive delays", "[release]")
{
    release_backoff backoff{policy};
    clock::time_point now = start;
    for (std::uint32_t delays = 0; delays < release_backoff::patience; ++delays)
    {
        CHECK_FALSE(backoff.gives_up());
        backoff.on_refused();
        REQUIRE(backoff.delay(now, shortest_delay));
        now = backoff.not_before();
    }
    CHECK(backoff.gives_up());
    SECTION("until releases succeed again")
    {
        backoff.on_all_done();
        CHECK_FALSE(backoff.gives_up());
    }
    SECTION("even if releases of other operations succeed while the refused one is in flight")
    {
        backoff.on_sent();
        backoff.on_all_done();
        CHECK(backoff.gives_up());
        backoff.on_answered();
        backoff.on_all_done();
        CHECK_FALSE(backoff.gives_up());
    }
    SECTION("until a new connection is made, on which nothing is in flight")
    {
        backoff.on_sent();
        backoff.reset();
        CHECK_FALSE(backoff.gives_up());
        CHECK(backoff.may_send(start));
    }
}

TEST_CASE("a permanent refusal doesn't restart the counter", "[release]")
{
    release_backoff backoff{policy};
    clock::time_point now = start;
    for (int delays = 0; delays < 1000; ++delays)
    {
        backoff.on_refused();
        REQUIRE(backoff.delay(now, shortest_delay));
        now = backoff.not_before();
        CHECK(backoff.gives_up() == (delays + 1 >= static_cast<int>(release_backoff::patience)));
    }
}

} // namespace redlock::test
