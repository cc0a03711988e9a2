// SPDX-License-Identifier: BSL-1.0
// How votes decide a round, compared with definitions that try every answer that is still possible.
#include "core/ballot.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace redlock::test
{

namespace
{

using core::ballot;
using core::refusal;
using core::verdict;

constexpr std::array all_votes{vote::pending,   vote::granted, vote::denied,
                               vote::timed_out, vote::failed,  vote::unsent};

ballot with(std::span<const vote> votes)
{
    ballot result{votes.size()};
    for (std::size_t master = 0; master < votes.size(); ++master)
    {
        if (votes[master] != vote::pending)
        {
            result.cast(master, votes[master]);
        }
    }
    return result;
}

/// The outcomes of a round that are still possible.
struct possible
{
    bool win = false;             // More than half of all masters grant.
    bool loss_to_others = false;  // They don't, but more than half answered.
    bool loss_to_silence = false; // Fewer answered.
};

/// Tries every answer that each pending master can still give. `failed` stands for everything that isn't an answer.
void explore(std::vector<vote>& votes, std::size_t from, possible& found)
{
    const auto next =
        std::find(votes.begin() + static_cast<std::ptrdiff_t>(from), votes.end(), vote::pending);
    if (next == votes.end())
    {
        const auto grants = std::count(votes.begin(), votes.end(), vote::granted);
        const auto answers = grants + std::count(votes.begin(), votes.end(), vote::denied);
        const auto all = static_cast<std::ptrdiff_t>(votes.size());
        found.win = found.win || grants * 2 > all;
        found.loss_to_others = found.loss_to_others || (grants * 2 <= all && answers * 2 > all);
        found.loss_to_silence = found.loss_to_silence || answers * 2 <= all;
        return;
    }
    for (const vote answer : {vote::granted, vote::denied, vote::failed})
    {
        *next = answer;
        explore(votes, static_cast<std::size_t>(next - votes.begin()) + 1, found);
    }
    *next = vote::pending;
}

possible ends_of(std::vector<vote> votes)
{
    possible found;
    explore(votes, 0, found);
    return found;
}

verdict verdict_of(const possible& ends)
{
    const bool loss = ends.loss_to_others || ends.loss_to_silence;
    return ends.win ? (loss ? verdict::undecided : verdict::won) : verdict::lost;
}

refusal refusal_of(const possible& ends)
{
    if (ends.loss_to_others)
    {
        return ends.loss_to_silence ? refusal::unknown : refusal::held;
    }
    return refusal::no_quorum;
}

/// Advances `votes` to the next combination; false after the last one.
bool advance(std::vector<vote>& votes)
{
    for (vote& one : votes)
    {
        if (one != all_votes.back())
        {
            one = *std::next(std::find(all_votes.begin(), all_votes.end(), one));
            return true;
        }
        one = all_votes.front();
    }
    return false;
}

} // namespace

TEST_CASE(
    "the verdict agrees with the answers that are still possible, for every combination of votes",
    "[scenario-35]")
{
    const std::size_t masters = GENERATE(range(std::size_t{1}, std::size_t{8}));
    std::vector<vote> votes(masters, vote::pending);
    std::size_t wrong = 0;
    std::size_t combinations = 0;
    do
    {
        const possible ends = ends_of(votes);
        const ballot seen = with(votes);
        const bool same_verdict = seen.outcome() == verdict_of(ends);
        const bool same_refusal = ends.win || seen.why_lost() == refusal_of(ends);
        wrong += same_verdict && same_refusal ? 0 : 1;
        ++combinations;
    } while (advance(votes));
    CAPTURE(masters);
    CHECK(combinations >= 6);
    CHECK(wrong == 0);
}

TEST_CASE("with two masters, one grant and one refusal lose the round at once", "[scenario-35]")
{
    const vote second = GENERATE(vote::denied, vote::timed_out, vote::failed, vote::unsent);
    ballot votes{2};
    REQUIRE(votes.quorum() == 2);
    votes.cast(0, vote::granted);
    REQUIRE(votes.outcome() == verdict::undecided);
    votes.cast(1, second);
    CHECK(votes.outcome() == verdict::lost);
    CHECK(votes.why_lost() == (second == vote::denied ? refusal::held : refusal::no_quorum));
}

TEST_CASE("grants that have failed later are no answers")
{
    ballot votes{5};
    for (const std::size_t master : {0U, 1U, 2U})
    {
        votes.cast(master, vote::granted);
    }
    votes.cast(3, vote::denied);
    CHECK(votes.why_lost(1) == refusal::held);
    CHECK(votes.why_lost(2) == refusal::unknown);
    CHECK(votes.why_lost(3) == refusal::no_quorum);
    votes.cast(4, vote::denied);
    CHECK(votes.why_lost(2) == refusal::held);
    CHECK(votes.why_lost(3) == refusal::no_quorum);
}

TEST_CASE("a quorum of grants without a token isn't held by others")
{
    ballot votes{3};
    votes.cast(0, vote::granted);
    votes.cast(1, vote::granted);
    votes.cast(2, vote::granted);
    CHECK(votes.why_lost(1) == refusal::no_quorum);
}

TEST_CASE("with two masters, the first refusal loses the round before the second answer", "[scenario-35]")
{
    ballot votes{2};
    votes.cast(1, vote::denied);
    CHECK(votes.outcome() == verdict::lost);
    CHECK(votes.why_lost() == refusal::unknown);
}

TEST_CASE("the quorum is a majority of the configured masters, however few are reachable", "[scenario-37]")
{
    const std::size_t masters = GENERATE(range(std::size_t{1}, max_masters + 1));
    const vote unreachable = GENERATE(vote::timed_out, vote::failed, vote::unsent);
    for (std::size_t reachable = 0; reachable <= masters; ++reachable)
    {
        ballot votes{masters};
        for (std::size_t master = 0; master < masters; ++master)
        {
            votes.cast(master, master < reachable ? vote::granted : unreachable);
        }
        CAPTURE(masters, reachable);
        CHECK((votes.outcome() == verdict::won) == (2 * reachable > masters));
        CHECK((votes.outcome() == verdict::lost) == (2 * reachable <= masters));
    }
}

TEST_CASE("the deciding vote decides a round, and later votes don't change it", "[scenario-37]")
{
    std::mt19937_64 random{20240901};
    for (int run = 0; run < 2000; ++run)
    {
        const std::size_t masters = 1 + random() % max_masters;
        std::vector<std::size_t> order(masters);
        for (std::size_t place = 0; place < masters; ++place)
        {
            order[place] = place;
        }
        std::shuffle(order.begin(), order.end(), random);
        ballot votes{masters};
        verdict before = votes.outcome();
        for (const std::size_t master : order)
        {
            const bool grants = random() % 2 == 0;
            votes.cast(master, grants ? vote::granted : all_votes[2 + random() % 4]);
            const verdict after = votes.outcome();
            if (before != verdict::undecided && after != before)
            {
                FAIL("run " << run << " was decided twice");
            }
            before = after;
        }
        REQUIRE(before != verdict::undecided);
    }
}

TEST_CASE("only the first vote of a master counts")
{
    ballot votes{3};
    CHECK(votes.cast(1, vote::timed_out));
    CHECK_FALSE(votes.cast(1, vote::granted));
    CHECK(votes.of(1) == vote::timed_out);
    CHECK(votes.count(vote::timed_out) == 1);
    CHECK(votes.count(vote::granted) == 0);
    CHECK(votes.count(vote::pending) == 2);
}

TEST_CASE("a single call records a vote for all masters whose vote is pending")
{
    ballot votes{5};
    votes.cast(0, vote::granted);
    votes.cast(3, vote::denied);
    votes.cast_pending(vote::timed_out);
    CHECK(votes.of(0) == vote::granted);
    CHECK(votes.of(3) == vote::denied);
    CHECK(votes.count(vote::timed_out) == 3);
    CHECK(votes.count(vote::pending) == 0);
    CHECK(votes.outcome() == verdict::lost);
}

TEST_CASE("a lease is disowned as soon as too few masters remain for a quorum")
{
    const std::size_t masters = GENERATE(range(std::size_t{1}, std::size_t{10}));
    ballot votes{masters};
    for (std::size_t refusals = 0; refusals <= masters; ++refusals)
    {
        CAPTURE(masters, refusals);
        CHECK(votes.disowned() == (2 * (masters - refusals) <= masters));
        if (refusals < masters)
        {
            votes.cast(refusals, vote::denied);
        }
    }
}

TEST_CASE("silence doesn't disown a lease")
{
    const vote silence = GENERATE(vote::timed_out, vote::failed, vote::unsent);
    ballot votes{5};
    votes.cast(0, vote::denied);
    votes.cast(1, vote::denied);
    votes.cast_pending(silence);
    CHECK_FALSE(votes.disowned());
}

TEST_CASE("every vote has its own text")
{
    std::vector<std::string_view> words;
    for (const vote value : all_votes)
    {
        words.push_back(to_string(value));
    }
    CHECK(
        words ==
        std::vector<std::string_view>{"pending", "granted", "denied", "timed out", "failed", "unsent"});
    CHECK(to_string(static_cast<vote>(99)) == "unknown");
}

} // namespace redlock::test
