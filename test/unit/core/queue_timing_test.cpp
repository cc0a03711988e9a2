// SPDX-License-Identifier: BSL-1.0
// The times of a client that waits in the queue.
#include "core/queue_timing.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cstdint>
#include <limits>

namespace redlock::core
{

using namespace std::chrono_literals;

namespace
{

constexpr std::uint64_t any_draw = 0x123456789abcdef;

/// Checks that the draws of a function cover these bounds, and nothing beyond them.
template <class Draw>
void check_range(clock::duration least, clock::duration most, Draw draw)
{
    const auto width = static_cast<std::uint64_t>((most - least).count());
    CHECK(draw(std::uint64_t{0}) == least);
    CHECK(draw(width) == most);
    CHECK(draw(width + 1) == least);
    CHECK(draw(width / 2) == least + clock::duration{static_cast<clock::rep>(width / 2)});
}

} // namespace

TEST_CASE("queue: the grace is two node timeouts, and 50 ms at least")
{
    CHECK(queue_grace(1ms) == 50ms);
    CHECK(queue_grace(25ms) == 50ms);
    CHECK(queue_grace(26ms) == 52ms);
    CHECK(queue_grace(500ms) == 1000ms);
    CHECK(queue_grace(501ms) == 1000ms);
    CHECK(queue_grace(1h) == 1000ms);
}

TEST_CASE("queue: the heartbeat is longer for a client far back, with a jitter of a fifth")
{
    struct row
    {
        std::size_t rank;
        clock::duration middle;
    };
    for (const row& each :
         {row{0, 250ms}, row{16, 312'500us}, row{64, 500ms}, row{640, 2750ms}, row{1U << 20, 4'096'250ms}})
    {
        INFO(each.rank);
        check_range(
            each.middle - each.middle / 5, each.middle + each.middle / 5,
            [&](std::uint64_t random) {
                return next_heartbeat({each.rank, {}}, random);
            });
    }
}

TEST_CASE("queue: a rank that no queue has leads to a heartbeat that is in range")
{
    CHECK(
        next_heartbeat({std::numeric_limits<std::size_t>::max(), {}}, any_draw) ==
        next_heartbeat({std::size_t{1} << 20, {}}, any_draw));
}

TEST_CASE("queue: the first client asks as soon as the key has expired, the others don't")
{
    CHECK(next_heartbeat({0, 0ms}, any_draw) == 1ms);
    CHECK(next_heartbeat({0, 30ms}, any_draw) == 31ms);
    CHECK(next_heartbeat({0, 10'000ms}, any_draw) == next_heartbeat({0, {}}, any_draw));
    CHECK(next_heartbeat({1, 30ms}, any_draw) == next_heartbeat({1, {}}, any_draw));
}

TEST_CASE("queue: a client without messages polls the less often, the longer nothing changes")
{
    CHECK(next_poll({0, {}}, 0ms) == 1ms);
    CHECK(next_poll({9, {}}, 0ms) == 10ms);
    CHECK(next_poll({9, {}}, 40ms) == 10ms);
    CHECK(next_poll({9, {}}, 80ms) == 20ms);
    CHECK(next_poll({0, {}}, 60ms) == 15ms);
    CHECK(next_poll({0, {}}, 1000ms) == 25ms);
    CHECK(next_poll({0, {}}, 24h) == 25ms);
    CHECK(next_poll({1, {}}, 1000ms) == 250ms);
    CHECK(next_poll({std::numeric_limits<std::size_t>::max(), {}}, 0ms) == 250ms);
}

TEST_CASE("queue: the pause after a lost round depends on its duration, and doubles")
{
    struct row
    {
        std::uint32_t losses;
        clock::duration took;
        clock::duration least;
        clock::duration most;
    };
    for (const row& each :
         {row{1, 0ms, 250us, 750us}, row{1, 4ms, 2ms, 6ms}, row{2, 4ms, 4ms, 12ms}, row{4, 4ms, 16ms, 48ms}})
    {
        INFO(each.losses << " losses, the last took " << each.took.count() << " ns");
        check_range(
            each.least, each.most,
            [&](std::uint64_t random) { return pause_after_loss(each.losses, each.took, random); });
    }
}

TEST_CASE("queue: the pause after lost rounds is 250 ms at most")
{
    for (const std::uint32_t losses : {1U, 8U, 64U, std::numeric_limits<std::uint32_t>::max()})
    {
        const clock::duration longest =
            pause_after_loss(losses, 1h, static_cast<std::uint64_t>(clock::duration{250ms}.count()));
        CHECK(longest == 250ms);
        CHECK(pause_after_loss(losses, 1h, 0) == 125ms);
    }
}

TEST_CASE("queue: a queue master is left after three overruled grants in a row, over at least 50 ms")
{
    const clock::time_point start{1h};
    overruled_watch watch;
    SECTION("three over 50 ms")
    {
        CHECK_FALSE(watch.on_lost(3, true, start));
        CHECK_FALSE(watch.on_lost(3, true, start + 49ms));
        CHECK(watch.on_lost(3, true, start + 50ms));
    }
    SECTION("two aren't enough")
    {
        CHECK_FALSE(watch.on_lost(3, true, start));
        CHECK_FALSE(watch.on_lost(3, true, start + 10s));
    }
    SECTION("three in less than 50 ms aren't enough, a later one is")
    {
        CHECK_FALSE(watch.on_lost(3, true, start));
        CHECK_FALSE(watch.on_lost(3, true, start + 1ms));
        CHECK_FALSE(watch.on_lost(3, true, start + 49ms));
        CHECK(watch.on_lost(3, true, start + 50ms));
    }
    SECTION("a round that was lost for another reason ends the series")
    {
        CHECK_FALSE(watch.on_lost(3, true, start));
        CHECK_FALSE(watch.on_lost(3, true, start + 50ms));
        CHECK_FALSE(watch.on_lost(3, false, start + 60ms));
        CHECK_FALSE(watch.on_lost(3, true, start + 70ms));
        CHECK_FALSE(watch.on_lost(3, true, start + 110ms));
        CHECK_FALSE(watch.on_lost(3, true, start + 119ms));
        CHECK(watch.on_lost(3, true, start + 120ms));
    }
    SECTION("a round at another queue master begins a series of its own")
    {
        CHECK_FALSE(watch.on_lost(3, true, start));
        CHECK_FALSE(watch.on_lost(3, true, start + 50ms));
        CHECK_FALSE(watch.on_lost(1, true, start + 60ms));
        CHECK_FALSE(watch.on_lost(1, true, start + 70ms));
        CHECK(watch.on_lost(1, true, start + 110ms));
    }
    SECTION("a reset ends the series")
    {
        CHECK_FALSE(watch.on_lost(3, true, start));
        CHECK_FALSE(watch.on_lost(3, true, start + 50ms));
        watch.reset();
        CHECK_FALSE(watch.on_lost(3, true, start + 60ms));
    }
}

} // namespace redlock::core
