// SPDX-License-Identifier: BSL-1.0
// Detection of a master's clock that jumps or drifts.
#include "core/clock_watch.hpp"
#include "core/validity.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

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
        CHECK(told->by <= jump + 1ms);
        CHECK(told->by >= jump - 1ms);
        CHECK_FALSE(watch.add(reading(3s, jump)));
    }
}

TEST_CASE("a deviation is measured from the last reading before a moment, if that isn't too long ago")
{
    clock_watch watch{0.01};
    CHECK(!watch.deviation_since(clock::time_point{1h}));
    REQUIRE_FALSE(watch.add(reading(10s)));
    CHECK(!watch.deviation_since(clock::time_point{10s}));
    const auto step = GENERATE(100ms, 500ms, 1s);
    const clock::duration jump = GENERATE(0ms, 5ms, 40s, -40s);
    clock::duration at = 10s;
    for (; at < 20s; at += step)
    {
        watch.add(reading(at + step, at >= 18s ? jump : clock::duration{0}));
    }
    for (const clock::duration since : {16500ms, 17000ms, 18000ms})
    {
        const std::optional<clock_deviation> found = watch.deviation_since(clock::time_point{since});
        REQUIRE(found);
        CHECK(found->since < clock::time_point{since});
        CHECK(found->since >= clock::time_point{since - 2s});
        CHECK(found->by <= jump + 1ms);
        CHECK(found->by + found->between >= jump);
        CHECK(found->between == 2ms);
        CHECK(found->drift >= drift(std::chrono::ceil<std::chrono::milliseconds>(at - since), 0.01));
    }
    CHECK(!watch.deviation_since(clock::time_point{9s}));
    watch.forget();
    CHECK(!watch.deviation_since(clock::time_point{18s}));
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
            CHECK((told->by > 0s) == (second > first));
            CHECK(told->by <= century);
            CHECK(told->by >= -century - 2s);
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
