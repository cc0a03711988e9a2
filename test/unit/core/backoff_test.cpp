// SPDX-License-Identifier: BSL-1.0
// Tests of the random delay before something is tried again.
#include "core/backoff.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using core::backoff_delay;
using core::backoff_floor;
using core::backoff_policy;
using std::chrono::nanoseconds;

/// Returns the largest delay over all random numbers. It is found by the width of the range, which is the divisor of
/// the random number.
nanoseconds longest_delay(const backoff_policy& policy, std::uint32_t failures, nanoseconds took)
{
    // delay(random) grows by one with each random number until it wraps at the bound: a binary search finds the wrap.
    std::uint64_t low = 0;
    std::uint64_t high = static_cast<std::uint64_t>(nanoseconds{2h}.count());
    while (high - low > 1)
    {
        const std::uint64_t middle = low + (high - low) / 2;
        const auto delay = backoff_delay(policy, failures, took, middle);
        const bool wrapped = delay != backoff_floor + nanoseconds{static_cast<nanoseconds::rep>(middle)};
        (wrapped ? high : low) = middle;
    }
    return backoff_delay(policy, failures, took, low);
}

} // namespace

TEST_CASE("the upper bound of the delay doubles with each failure, up to the maximum")
{
    const backoff_policy policy{10ms, 500ms};
    const std::array<nanoseconds, 8> bounds{10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms};
    for (std::size_t place = 0; place < bounds.size(); ++place)
    {
        CAPTURE(place);
        CHECK(longest_delay(policy, static_cast<std::uint32_t>(place + 1), 0ms) == bounds[place]);
    }
}

TEST_CASE("the delay grows with the duration of the attempt, up to the maximum")
{
    const backoff_policy policy{10ms, 500ms};
    CHECK(longest_delay(policy, 1, 1ms) == 10ms);
    CHECK(longest_delay(policy, 1, 5ms) == 40ms);
    CHECK(longest_delay(policy, 1, 50ms) == 400ms);
    CHECK(longest_delay(policy, 1, 70ms) == 500ms);
    CHECK(longest_delay(policy, 1, nanoseconds::max()) == 500ms);
}

TEST_CASE("every delay lies between the floor and its upper bound")
{
    std::mt19937_64 random{20240902};
    int kept = 0;
    for (int run = 0; run < 20'000; ++run)
    {
        const nanoseconds first{static_cast<nanoseconds::rep>(random() % 3'600'000'000'000)};
        const nanoseconds longest{static_cast<nanoseconds::rep>(random() % 3'600'000'000'000)};
        const nanoseconds took{static_cast<nanoseconds::rep>(random() % 10'000'000'000)};
        const auto failures = static_cast<std::uint32_t>(random() % (run % 2 == 0 ? 20 : UINT32_MAX));
        const nanoseconds delay = backoff_delay({first, longest}, failures, took, random());
        const bool in_bounds = delay >= backoff_floor && delay <= std::max(longest, backoff_floor);
        if (!in_bounds)
        {
            FAIL(
                "first " << first.count() << ", longest " << longest.count() << ", took " << took.count()
                         << ", failures " << failures << ": " << delay.count());
        }
        ++kept;
    }
    CHECK(kept == 20'000);
}

TEST_CASE("full jitter: the delay reaches both ends of its range")
{
    const backoff_policy policy{10ms, 500ms};
    const auto width = static_cast<std::uint64_t>(nanoseconds{20ms - backoff_floor}.count()) + 1;
    CHECK(backoff_delay(policy, 2, 0ms, 0) == backoff_floor);
    CHECK(backoff_delay(policy, 2, 0ms, width - 1) == 20ms);
    CHECK(backoff_delay(policy, 2, 0ms, width) == backoff_floor);
    CHECK(backoff_delay(policy, 2, 0ms, std::numeric_limits<std::uint64_t>::max()) <= 20ms);
}

TEST_CASE("delays are spread evenly over their range")
{
    std::mt19937_64 random{20240903};
    std::array<int, 10> drawn{};
    constexpr int draws = 20'000;
    const nanoseconds width = 320ms - backoff_floor;
    for (int run = 0; run < draws; ++run)
    {
        const nanoseconds delay = backoff_delay({10ms, 500ms}, 6, 0ms, random()) - backoff_floor;
        ++drawn[std::min<std::size_t>(static_cast<std::size_t>(delay * 10 / width), 9)];
    }
    // Six standard deviations of a tenth of all draws. The seed is fixed, so the result is reproducible.
    for (const int count : drawn)
    {
        CHECK(std::abs(count - draws / 10) < 255);
    }
}

TEST_CASE("a policy whose bounds leave no range yields the floor")
{
    const std::uint64_t chance = GENERATE(0U, 1U, 999U, UINT64_MAX);
    CHECK(backoff_delay({0ms, 0ms}, 1, 0ms, chance) == backoff_floor);
    CHECK(backoff_delay({1ms, 1ms}, 40, 10s, chance) == backoff_floor);
}

} // namespace redlock::test
