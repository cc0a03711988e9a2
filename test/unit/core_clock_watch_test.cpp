// SPDX-License-Identifier: BSL-1.0
// Whether a master's clock goes as ours does.
#include "core/clock_watch.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace redlock::core
{

namespace
{

using namespace std::chrono_literals;

constexpr clock::duration since_1970 = std::chrono::hours{24 * 365 * 50};

/// Asked at `at`, answered 1 ms later, with their clock ahead by so much.
clock_reading reading(clock::duration at, clock::duration ahead = 0s)
{
    return {
        clock::time_point{at}, clock::time_point{at + 1ms},
        std::chrono::duration_cast<std::chrono::microseconds>(since_1970 + at + 500us + ahead)};
}

} // namespace

TEST_CASE("clocks that go alike are never told of, however long the answers take")
{
    clock_watch watch{0.01};
    for (int second = 0; second < 1000; ++second)
    {
        clock_reading one = reading(std::chrono::seconds{second});
        one.received += std::chrono::milliseconds{second % 700};
        REQUIRE_FALSE(watch.add(one));
    }
}

TEST_CASE("a jump is told with its size, once", "[scenario-4][scenario-5]")
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

TEST_CASE("a jump to any time that can be said is a jump", "[scenario-97]")
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
            // A clock that stands still has fallen behind.
            REQUIRE(told);
            CHECK((*told > 0s) == (second > first));
            CHECK(*told <= century);
            CHECK(*told >= -century - 2s);
        }
    }
}

TEST_CASE("what drift and round trips explain isn't told of")
{
    clock_watch watch{0.01};
    REQUIRE_FALSE(watch.add(reading(0s)));
    // 1 % of a second and 2 ms, and half a millisecond of the round trip.
    CHECK_FALSE(watch.add(reading(1s, 12ms)));
    CHECK(watch.add(reading(2s, 12ms + 14ms)));
}

TEST_CASE("a clock that runs two percent too fast is told of, though no step of it is large")
{
    clock_watch watch{0.01};
    bool told = false;
    // In each 100 ms it gains 2 ms: as much as a single look allows for.
    for (int tick = 0; tick < 100 && !told; ++tick)
    {
        const clock::duration at = tick * 100ms;
        told = watch.add(reading(at, at / 50)).has_value();
    }
    CHECK(told);
}

TEST_CASE("what was seen of another server is forgotten")
{
    clock_watch watch{0.01};
    REQUIRE_FALSE(watch.add(reading(0s)));
    watch.forget();
    CHECK_FALSE(watch.add(reading(1s, 1h)));
}

} // namespace redlock::core
