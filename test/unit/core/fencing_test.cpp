// SPDX-License-Identifier: BSL-1.0
// The choice of a token, compared with its definition over all orders of answers; hints; the latest time.
#include "core/fencing.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using core::token_choice;
using numbers = std::vector<std::uint64_t>;

/// What happens in a round: the grants in this order, each with a counter. Acknowledgements come when the test says so.
struct answer
{
    std::size_t master;
    std::uint64_t counter;
};

/// The masters that have exactly this value for the round: granted with it, or raised to it.
struct bookkeeping
{
    explicit bookkeeping(std::size_t masters) : has(masters) {}

    std::size_t with(std::uint64_t value) const
    {
        return static_cast<std::size_t>(std::count(has.begin(), has.end(), value));
    }

    numbers has;
};

} // namespace

TEST_CASE("token: equal counters of a quorum are the token at once, and nothing is raised")
{
    token_choice choice{5};
    choice.add_grant(3, 70);
    choice.add_grant(0, 70);
    CHECK_FALSE(choice.token());
    choice.add_grant(4, 70);
    CHECK(choice.token() == 70U);
    CHECK(choice.target() == 0);
    choice.add_grant(1, 90);
    CHECK(choice.token() == 70U);
    CHECK(choice.target() == 0);
    CHECK_FALSE(choice.is_below_target(1));
}

TEST_CASE("token: different counters are raised to the largest of the first quorum")
{
    token_choice choice{5};
    choice.add_grant(0, 7);
    choice.add_grant(1, 9);
    CHECK(choice.target() == 0);
    choice.add_grant(2, 8);
    CHECK(choice.target() == 9);
    CHECK_FALSE(choice.token());
    CHECK(choice.is_below_target(0));
    CHECK_FALSE(choice.is_below_target(1));
    CHECK(choice.is_below_target(2));
    CHECK_FALSE(choice.is_below_target(3));
    SECTION("acknowledgements make a quorum")
    {
        choice.add_raised(0);
        CHECK_FALSE(choice.token());
        choice.add_raised(0);
        CHECK_FALSE(choice.token());
        choice.add_raised(2);
        CHECK(choice.token() == 9U);
    }
    SECTION("a later grant of the same counter counts")
    {
        choice.add_grant(3, 9);
        CHECK_FALSE(choice.token());
        choice.add_raised(2);
        CHECK(choice.token() == 9U);
    }
    SECTION("a later grant of a smaller one is raised as well")
    {
        choice.add_grant(4, 1);
        CHECK(choice.is_below_target(4));
        choice.add_raised(4);
        choice.add_raised(0);
        CHECK(choice.token() == 9U);
    }
    SECTION("a later grant of a larger one doesn't count, nor does an acknowledgement of it")
    {
        choice.add_grant(3, 10);
        choice.add_grant(4, 11);
        CHECK(choice.target() == 9);
        choice.add_raised(3);
        choice.add_raised(4);
        choice.add_raised(0);
        CHECK_FALSE(choice.token());
        choice.add_raised(2);
        CHECK(choice.token() == 9U);
    }
    SECTION("later equal counters below the target aren't a token")
    {
        // Masters 0, 3 and 4 have granted with 7, but 0 may have been raised meanwhile.
        choice.add_grant(3, 7);
        choice.add_grant(4, 7);
        CHECK_FALSE(choice.token());
    }
}

TEST_CASE(
    "token: of all orders of answers, none issues a token that fewer than a quorum have exactly",
    "[scenario-67]")
{
    const auto masters =
        GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, std::size_t{5});
    std::mt19937 draw{static_cast<std::mt19937::result_type>(masters)};
    for (int run = 0; run < 4000; ++run)
    {
        std::vector<answer> answers(masters);
        for (std::size_t master = 0; master < masters; ++master)
        {
            answers[master] = {master, 1 + draw() % 3};
        }
        std::shuffle(answers.begin(), answers.end(), draw);
        token_choice choice{masters};
        bookkeeping real{masters};
        std::size_t granted = 0;
        std::optional<std::uint64_t> first;
        while (granted < masters || draw() % 4 != 0)
        {
            const std::size_t raised = draw() % masters;
            if (granted < masters && draw() % 2 == 0)
            {
                const answer& next = answers[granted++];
                real.has[next.master] = next.counter;
                choice.add_grant(next.master, next.counter);
            }
            else if (choice.is_below_target(raised))
            {
                real.has[raised] = choice.target();
                choice.add_raised(raised);
            }
            const std::optional<std::uint64_t> token = choice.token();
            CAPTURE(masters, run, granted, choice.target());
            if (token)
            {
                REQUIRE(real.with(*token) >= quorum_of(masters));
                REQUIRE((!first || first == token));
                first = token;
            }
            else
            {
                REQUIRE_FALSE(first);
                REQUIRE((choice.target() == 0 || real.with(choice.target()) < quorum_of(masters)));
                REQUIRE((choice.target() != 0) == (granted >= quorum_of(masters)));
            }
        }
    }
}

TEST_CASE("hint: the lower median of the clocks, above every counter that was seen")
{
    const auto hint = [](std::vector<std::chrono::microseconds> clocks, std::uint64_t seen)
    { return core::counter_hint(clocks, seen); };
    CHECK(hint({}, 0) == 1);
    CHECK(hint({}, 41) == 42);
    CHECK(hint({500us}, 0) == 500);
    CHECK(hint({900us, 500us}, 0) == 500);
    CHECK(hint({900us, 100us, 500us}, 0) == 500);
    CHECK(hint({900us, 100us, 500us, 600us}, 0) == 500);
    CHECK(hint({500us}, 499) == 500);
    CHECK(hint({500us}, 500) == 501);
    CHECK(hint({-500us}, 0) == 1);
}

TEST_CASE("latest: by the last reading, its age, the drift and the node timeout")
{
    const clock::time_point sent{10s};
    const core::clock_reading last{.sent = sent, .received = sent + 3ms, .theirs = 100s};
    // The reading counts from the time at which it was asked for.
    CHECK(core::latest_at(last, sent + 3ms, 50ms, 0) == 100s + 3ms + 50ms + 2ms);
    CHECK(core::latest_at(last, sent + 1s, 50ms, 0.01) == 100s + 1s + 50ms + 10ms + 2ms);
    CHECK(core::latest_at(last, sent + 1s, 20ms, 0.01) == 100s + 1s + 20ms + 10ms + 2ms);
}

TEST_CASE("token: a master whose raise has failed counts no more")
{
    core::token_choice choice{5};
    CHECK(choice.is_possible(5));
    choice.add_grant(0, 7);
    choice.add_grant(1, 8);
    choice.add_grant(2, 9);
    REQUIRE(choice.target() == 9);
    CHECK(choice.largest() == 9);
    CHECK(choice.is_possible(0)); // Both may be raised.
    choice.add_failed_raise(0);
    CHECK(!choice.is_possible(0));
    CHECK(choice.is_possible(1));
    CHECK(!choice.is_below_target(0));
    choice.add_raised(0); // Too late.
    choice.add_grant(3, 12);
    CHECK(choice.target() == 9);
    CHECK(!choice.is_possible(0)); // Above the target: it doesn't count.
    choice.add_raised(1);
    CHECK(!choice.token());
    choice.add_grant(4, 9);
    CHECK(choice.token() == 9);
}

TEST_CASE("floor by the clock: the present time and two hours")
{
    const clock::time_point sent{10s};
    const core::clock_reading last{.sent = sent, .received = sent + 3ms, .theirs = 1'000'000us};
    CHECK(core::floor_by_clock(last, sent) == 1'000'000U + 7'200'000'000U);
    CHECK(core::floor_by_clock(last, sent + 5ms) == 1'005'000U + 7'200'000'000U);
    const core::clock_reading wrong{.sent = sent, .received = sent, .theirs = -9'000'000'000us};
    CHECK(core::floor_by_clock(wrong, sent) == 1);
}

} // namespace redlock::test
