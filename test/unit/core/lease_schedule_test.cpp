// SPDX-License-Identifier: BSL-1.0
// When a kept lease is extended, and when its loss is declared.
#include "core/lease_schedule.hpp"
#include "core/validity.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <random>

namespace redlock::core
{

namespace
{

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

lease_schedule defaults(std::chrono::milliseconds ttl)
{
    return make_schedule(ttl, {}, {}, node_timeout(ttl, {}), 0.01);
}

} // namespace

TEST_CASE("extend_every defaults to a third of the ttl, stop_margin to a tenth")
{
    const lease_schedule ten_seconds = defaults(10s);
    CHECK(ten_seconds.extend_every == 3333ms);
    CHECK(ten_seconds.stop_margin == 1s);
    CHECK(schedule_complaint(ten_seconds).empty());

    // Twice the drift (1 % and 2 ms) is more than a tenth of a short ttl.
    const lease_schedule short_one = make_schedule(40ms, {}, {}, 1ms, 0.01);
    CHECK(short_one.stop_margin == 6ms);
}

TEST_CASE("a schedule is refused if it has no room for a late extension and a failed one")
{
    // 1.1 × 1000 + 2 × 50 + 500 + (30 + 2) = 1732
    const auto with_ttl = [](std::chrono::milliseconds ttl)
    { return make_schedule(ttl, 1000ms, 500ms, 50ms, 0.01); };
    CHECK_FALSE(schedule_complaint(with_ttl(1700ms)).empty());
    const lease_schedule edge = make_schedule(1732ms, 1000ms, 500ms, 50ms, 0.0);
    // Without a factor the drift is 2 ms: 1100 + 100 + 500 + 2 = 1702.
    CHECK(schedule_complaint(edge).empty());
    CHECK_FALSE(schedule_complaint(make_schedule(1702ms, 1000ms, 500ms, 50ms, 0.0)).empty());
    CHECK(schedule_complaint(make_schedule(1703ms, 1000ms, 500ms, 50ms, 0.0)).empty());
}

TEST_CASE("a schedule can be computed from invalid times, before they are refused")
{
    using std::chrono::milliseconds;
    for (const milliseconds ttl : {milliseconds::min(), -1ms, 0ms, 1ms, max_ttl, milliseconds::max()})
    {
        for (const milliseconds given : {milliseconds::min(), -1ms, 0ms, milliseconds::max()})
        {
            CAPTURE(ttl.count(), given.count());
            CHECK(make_schedule(ttl, {}, {}, node_timeout(ttl, {}), 0.5).ttl == ttl);
            const lease_schedule made = make_schedule(ttl, given, given, node_timeout(ttl, {}), 0.5);
            CHECK(made.extend_every == given);
            CHECK((ttl < 1ms || ttl > max_ttl || !schedule_complaint(made).empty()));
        }
    }
}

TEST_CASE("a refused schedule names its values")
{
    CHECK_THAT(
        schedule_complaint(make_schedule(1s, 900ms, 100ms, 50ms, 0.01)),
        ContainsSubstring("990 ms") && ContainsSubstring("1000 ms"));
    CHECK_THAT(
        schedule_complaint(make_schedule(1s, 0ms, 100ms, 50ms, 0.01)),
        ContainsSubstring("extend_every of 0 ms"));
    CHECK_THAT(
        schedule_complaint(make_schedule(1s, -1ms, 100ms, 50ms, 0.01)),
        ContainsSubstring("extend_every of -1 ms"));
    CHECK_THAT(
        schedule_complaint(make_schedule(1s, 300ms, -1ms, 50ms, 0.01)),
        ContainsSubstring("stop_margin of -1 ms"));
    CHECK_THAT(
        schedule_complaint(make_schedule(1s, std::chrono::milliseconds::max(), 0ms, 50ms, 0.01)),
        ContainsSubstring("extend_every of"));
}

TEST_CASE("extensions are jittered by at most a tenth of extend_every")
{
    const lease_schedule schedule = defaults(30s);
    const clock::duration every = 10s;
    const clock::time_point now{12345ms};
    std::mt19937_64 random{7};
    bool early = false;
    bool late = false;
    for (int sample = 0; sample < 10'000; ++sample)
    {
        const clock::duration delay = extension_at(schedule, now, random()) - now;
        REQUIRE(delay > every - every / 10 - 25ms);
        REQUIRE(delay <= every + every / 10);
        early = early || delay < every - every / 20;
        late = late || delay > every + every / 20;
    }
    CHECK(early);
    CHECK(late);
}

TEST_CASE("extensions are aligned to beats, so that those of many leases are sent together")
{
    std::mt19937_64 random{7};
    const clock::time_point now{12345678ns};
    for (int sample = 0; sample < 1000; ++sample)
    {
        const clock::time_point slow = extension_at(defaults(30s), now, random());
        REQUIRE(slow.time_since_epoch() % 25ms == 0ns);
        // 1/200 of an extend_every of 200 ms.
        const lease_schedule quick = make_schedule(1s, 200ms, {}, 50ms, 0.01);
        REQUIRE(extension_at(quick, now, random()).time_since_epoch() % 1ms == 0ns);
    }
    // However short the interval between two extensions, none is due in the past.
    const lease_schedule shortest = make_schedule(30ms, 1ms, {}, 1ms, 0.01);
    CHECK(extension_at(shortest, now, 0) >= now);
}

TEST_CASE("the loss is declared a stop_margin before the validity ends [scenario-32]", "[scenario-32]")
{
    const lease_schedule schedule = defaults(10s);
    const clock::time_point until{100s};
    CHECK(loss_at(schedule, until) == clock::time_point{99s});
    // The end of a lease that isn't valid is the epoch of the clock: its loss is overdue.
    CHECK(loss_at(schedule, clock::time_point{}) < clock::time_point{});
}

} // namespace redlock::core
