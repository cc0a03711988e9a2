// SPDX-License-Identifier: BSL-1.0
// Detection of a master's clock that jumps or drifts.
#include "core/clock_watch.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace redlock::core
{

namespace
{

using namespace std::chrono_literals;

constexpr clock::duration since_1970 = std::chrono::hours{24 * 365 * 50};

/// A reading taken at `at` and answered 1 ms later, by a master whose clock is `ahead` of ours.
clock_reading reading(clock::duration at, clock::duration ahead = 0s)
{
    return {
        clock::time_point{at}, clock::time_point{at + 1ms},
        std::chrono::duration_cast<std::chrono::microseconds>(since_1970 + at + 500us + ahead)};
}

} // namespace

TEST_CASE("clocks that agree are never reported, however long the answers take")
{
    clock_watch watch{0.01};
    for (int second = 0; second < 1000; ++second)
    {
        clock_reading one = reading(std::chrono::seconds{second});
        one.received += std::chrono::milliseconds{second % 700};
        REQUIRE_FALSE(watch.add(one));
    }
}

TEST_CASE("a jump is reported once, with its size", "[scenario-4][scenario-5]")
{
    for (const clock::duration jump : {clock::duration{1h}, clock::duration{-1h}, clock::duration{50ms}})
    {
        clock_watch watch{0.01};
        REQUIRE_FALSE(watch.add(reading(0s)));
        REQUIRE_FALSE(watch.add(reading(1s)));
        const auto told = watch.add(reading(2s, jump));
        REQUIRE(told);
        CHECK(*told <= jump + 1ms);
        CHECK(*told >= jump - 1ms);
        CHECK_FALSE(watch.add(reading(3s, jump)));
    }
}

TEST_CASE("a jump above what can go unnoticed is always reported, one below it only if it shows")
{
    clock_watch watch{0.01};
    CHECK(watch.unnoticed() == clock::duration::max());
    for (int second = 0; second < 3; ++second)
    {
        REQUIRE_FALSE(watch.add(reading(std::chrono::seconds{second})));
        CHECK(
            watch.unnoticed() ==
            clock::duration::max()); // Before the first reading, it may have done anything.
    }
    REQUIRE_FALSE(watch.add(reading(3s)));
    const clock::duration most = watch.unnoticed();
    CHECK(most >= 2ms + 12ms); // Two round trips, and what may drift in a second.
    CHECK(most <= 2ms + 13ms);
    clock_watch other = watch;
    clock_reading early = reading(4s, most + 1ms);
    early.theirs -=
        std::chrono::microseconds{1000}; // As if it had been read at once, and the one before at last.
    CHECK(other.add(early));
    CHECK_FALSE(watch.add(reading(4s, most - 3ms)));
    clock_reading slow = reading(5s, most - 3ms);
    slow.received += 100ms;
    REQUIRE_FALSE(watch.add(slow));
    CHECK(watch.unnoticed() >= most + 100ms);
    watch.forget();
    CHECK(watch.unnoticed() == clock::duration::max());
}

TEST_CASE("a jump between any two representable times is reported", "[scenario-97]")
{
    using std::chrono::microseconds;
    constexpr clock::duration century = std::chrono::hours{24 * 365 * 100};
    const microseconds times[]{
        microseconds::min(), microseconds{0}, microseconds{std::int64_t{1} << 60}, microseconds::max()};
    for (const microseconds first : times)
    {
        for (const microseconds second : times)
        {
            CAPTURE(first.count(), second.count());
            clock_watch watch{0.01};
            clock_reading one = reading(0s);
            one.theirs = first;
            CHECK_FALSE(watch.add(one));
            clock_reading other = reading(1s);
            other.theirs = second;
            const auto told = watch.add(other);
            // A clock that doesn't advance has fallen back by the time between the readings.
            REQUIRE(told);
            CHECK((*told > 0s) == (second > first));
            CHECK(*told <= century);
            CHECK(*told >= -century - 2s);
        }
    }
}

TEST_CASE("a difference explained by drift and round trip isn't reported")
{
    clock_watch watch{0.01};
    REQUIRE_FALSE(watch.add(reading(0s)));
    // 1 % of a second, 2 ms, and half of the round trip of 1 ms.
    CHECK_FALSE(watch.add(reading(1s, 12ms)));
    CHECK(watch.add(reading(2s, 12ms + 14ms)));
}

TEST_CASE("a clock that runs two percent too fast is reported, though each step is small")
{
    clock_watch watch{0.01};
    bool told = false;
    // It gains 2 ms in each 100 ms: within the allowance for two consecutive readings.
    for (int tick = 0; tick < 100 && !told; ++tick)
    {
        const clock::duration at = tick * 100ms;
        told = watch.add(reading(at, at / 50)).has_value();
    }
    CHECK(told);
}

TEST_CASE("a clock that begins to run too fast after a day is reported within two minutes, not another day")
{
    clock_watch watch{0.01};
    for (clock::duration at = 0s; at < 24h; at += 1s)
    {
        REQUIRE_FALSE(watch.add(reading(at)));
    }
    bool told = false;
    for (clock::duration fast = 0s; fast < 2min && !told; fast += 100ms)
    {
        told = watch.add(reading(24h + fast, fast / 50)).has_value();
    }
    CHECK(told);
}

TEST_CASE("readings of a previous server are forgotten")
{
    clock_watch watch{0.01};
    REQUIRE_FALSE(watch.add(reading(0s)));
    watch.forget();
    CHECK_FALSE(watch.add(reading(1s, 1h)));
}

} // namespace redlock::core
