// SPDX-License-Identifier: BSL-1.0
// Masters whose clocks were seen ahead, in worlds where it is known which clocks jumped, and when ours stood still.
#include "core/suspected_clocks.hpp"

#include <redlock/vote.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace redlock::core
{

namespace
{

using namespace std::chrono_literals;

constexpr clock::duration longest = 30s;
constexpr clock::duration length = 60s; // Of a world.
constexpr double factor = 0.01;

/// A change of a clock at a moment of the true time.
struct step
{
    clock::duration at;
    clock::duration by;
};

/// What a master has answered to one client, once a second: its time, and its marker.
struct answer
{
    std::size_t master;
    clock::duration sent;
    clock::duration read;
    clock::duration received;
};

/// A client and its masters. Times are those of a perfect clock, unless they are called ours or theirs.
struct world
{
    std::size_t masters = 5;
    std::vector<std::vector<step>> jumps{masters};             // Of each master's clock.
    std::vector<double> drifts = std::vector<double>(masters); // How much faster it is than ours.
    std::vector<step> stops;                                   // Of our clock.
    std::vector<clock::duration> round_trips =
        std::vector<clock::duration>(masters, 1ms);      // The longest ones.
    std::vector<bool> away = std::vector<bool>(masters); // All the time.
    bool is_judged_by_others = false;                    // An accused master is put into quarantine.

    explicit world(std::size_t count) : masters{count} {}
};

class run
{
  public:
    run(const world& of, std::uint64_t seed) : of_{of}, dice_{seed}
    {
        for (std::size_t master = 0; master < of.masters; ++master)
        {
            watches_.emplace_back(factor);
            nonces_.push_back("first");
            if (!of.away[master])
            {
                ask_all_the_time(master);
            }
        }
        std::stable_sort(
            answers_.begin(), answers_.end(),
            [](const answer& one, const answer& other) { return one.received < other.received; });
    }

    /// Takes one answer after the other. Calls `check` with each, and the masters that were accused by then.
    template <class Check>
    void take_all(const Check& check)
    {
        for (const answer& each : answers_)
        {
            take(each);
            check(each, accused_);
        }
    }

    bool is_suspected(std::size_t master) const { return suspected_.is_suspected(master, nonces_[master]); }
    /// Returns whether an answer is on its way at a moment.
    bool is_read_at(clock::duration moment) const
    {
        return std::any_of(
            answers_.begin(), answers_.end(),
            [&](const answer& each) { return each.sent <= moment && moment < each.received; });
    }
    std::size_t count_suspected() const
    {
        std::size_t count = 0;
        for (std::size_t master = 0; master < of_.masters; ++master)
        {
            count += is_suspected(master) ? 1U : 0U;
        }
        return count;
    }
    /// Returns when a jump of a master's clock was last reported, in our time.
    std::optional<clock::time_point> reported(std::size_t master) const { return reported_[master]; }
    clock::time_point ours(clock::duration at) const
    {
        clock::duration passed = at;
        for (const step& each : of_.stops)
        {
            passed -= std::clamp(at - each.at, clock::duration{0}, each.by);
        }
        return clock::time_point{passed};
    }

  private:
    clock::duration draw(clock::duration below)
    {
        return clock::duration{static_cast<clock::rep>(dice_() % static_cast<std::uint64_t>(below.count()))};
    }

    void ask_all_the_time(std::size_t master)
    {
        clock::duration at = draw(1s);
        while (at < length)
        {
            const clock::duration sent = awake(at);
            const clock::duration read = sent + draw(of_.round_trips[master] / 2);
            const clock::duration received = awake(read + draw(of_.round_trips[master] / 2));
            answers_.push_back({master, sent, read, received});
            at = std::max(sent + 900ms + draw(100ms), received);
        }
    }

    /// Nothing runs while our clock stands still.
    clock::duration awake(clock::duration at) const
    {
        for (const step& each : of_.stops)
        {
            at = at >= each.at ? std::max(at, each.at + each.by) : at;
        }
        return at;
    }

    std::chrono::microseconds theirs(std::size_t master, clock::duration at) const
    {
        const auto drift = static_cast<double>(at.count()) * of_.drifts[master];
        clock::duration shown =
            std::chrono::hours{24 * 365 * 50} + at + clock::duration{static_cast<clock::rep>(drift)};
        for (const step& each : of_.jumps[master])
        {
            shown += at >= each.at ? each.by : clock::duration{0};
        }
        return std::chrono::duration_cast<std::chrono::microseconds>(shown);
    }

    void take(const answer& one)
    {
        const clock_reading reading{ours(one.sent), ours(one.received), theirs(one.master, one.read)};
        const std::optional<clock_deviation> off = watches_[one.master].add(reading);
        if (off && off->by > clock::duration{0})
        {
            suspected_.on_ahead(one.master, *off, ours(one.received));
            reported_[one.master] = ours(one.received);
        }
        suspected_.on_marker(one.master, nonces_[one.master], ours(one.sent));
        accused_ = suspected_.judge(witnesses(), ours(one.received), longest);
        for (std::size_t master = 0; master < of_.masters && of_.is_judged_by_others; ++master)
        {
            if ((accused_ >> master & 1U) != 0)
            {
                nonces_[master] += "+";
            }
        }
    }

    std::vector<clock_witness> witnesses() const
    {
        std::vector<clock_witness> all;
        for (std::size_t master = 0; master < of_.masters; ++master)
        {
            all.push_back({&watches_[master], nonces_[master], !of_.away[master]});
        }
        return all;
    }

    const world& of_;
    std::mt19937_64 dice_;
    std::vector<answer> answers_;
    std::vector<clock_watch> watches_;
    std::vector<std::string> nonces_;
    suspected_clocks suspected_{of_.masters};
    std::vector<std::optional<clock::time_point>> reported_{of_.masters};
    std::uint32_t accused_ = 0;
};

constexpr std::uint64_t worlds = 2000;

clock::duration drawn(std::mt19937_64& dice, clock::duration from, clock::duration to)
{
    // Short and long ones are equally likely.
    const double share = static_cast<double>(dice() % 1000) / 1000;
    const double ratio = static_cast<double>(to.count()) / static_cast<double>(from.count());
    return clock::duration{
        static_cast<clock::rep>(static_cast<double>(from.count()) * std::pow(ratio, share))};
}

/// Masters at different distances. Clocks of a minority jump, and ours stands still, in any order.
world drawn_world(std::mt19937_64& dice, bool jump, bool stop)
{
    world drawn_one{1 + dice() % 7};
    drawn_one.is_judged_by_others = dice() % 2 == 0;
    const std::size_t minority = drawn_one.masters - quorum_of(drawn_one.masters);
    const clock::duration common = drawn(dice, 5ms, 20s);
    const clock::duration moment = drawn(dice, 5s, 50s);
    for (std::size_t master = 0; master < drawn_one.masters; ++master)
    {
        drawn_one.round_trips[master] = drawn(dice, 200us, 400ms);
        drawn_one.away[master] = dice() % 8 == 0;
        drawn_one.drifts[master] = (static_cast<double>(dice() % 101) - 50) / 50 * 0.9 * factor;
        for (std::size_t count = jump && master < minority ? 1 + dice() % 3 : 0; count > 0; --count)
        {
            const bool at_once = dice() % 2 == 0;
            const bool equal = dice() % 2 == 0;
            drawn_one.jumps[master].push_back(
                {at_once ? moment + drawn(dice, 1ms, 1s) : drawn(dice, 5s, 50s),
                 equal ? common : drawn(dice, 5ms, 20s)});
        }
    }
    for (std::size_t count = stop ? 1 + dice() % 2 : 0; count > 0; --count)
    {
        const clock::duration at = dice() % 2 == 0 ? moment + drawn(dice, 1ms, 1s) : drawn(dice, 5s, 50s);
        const clock::duration by = dice() % 2 == 0 ? common : drawn(dice, 5ms, 20s);
        if (drawn_one.stops.empty() || at > drawn_one.stops.back().at + drawn_one.stops.back().by)
        {
            drawn_one.stops.push_back({at, by});
        }
    }
    return drawn_one;
}

/// Masters that nobody reads any more, so that none of them denies anything.
struct unheard
{
    clock_watch none{factor};
    std::vector<clock_witness> witnesses;
    suspected_clocks suspected;

    explicit unheard(std::size_t masters)
        : witnesses(masters, clock_witness{&none, "first", false}), suspected{masters}
    {
    }

    /// The clock of a master has gone ahead by `by` between these two moments.
    void show(std::size_t master, clock::duration by, clock::duration since, clock::duration last)
    {
        suspected.on_ahead(master, {by, 20ms, 1ms, clock::time_point{since}}, clock::time_point{last});
    }
    /// Judges. Nobody can be accused.
    void judge(clock::duration now)
    {
        REQUIRE(suspected.judge(witnesses, clock::time_point{now}, longest) == 0);
    }
    bool is_suspected(std::size_t master) const { return suspected.is_suspected(master, "first"); }
};

} // namespace

TEST_CASE("no jump of a minority is forgotten while our clock runs", "[scenario-4]")
{
    std::size_t reported = 0;
    for (std::uint64_t seed = 0; seed < worlds; ++seed)
    {
        CAPTURE(seed);
        std::mt19937_64 dice{seed};
        world of = drawn_world(dice, true, false);
        of.is_judged_by_others = false;
        run all{of, seed};
        all.take_all(
            [&](const answer& each, std::uint32_t)
            {
                for (std::size_t master = 0; master < of.masters; ++master)
                {
                    const auto since = all.reported(master);
                    const bool may_vote = !since || all.ours(each.received) >= *since + longest;
                    reported += since ? 1U : 0U;
                    REQUIRE((may_vote || all.is_suspected(master)));
                }
            });
    }
    CHECK(reported > worlds);
}

TEST_CASE("a stop of our clock explains one jump of each master", "[scenario-4]")
{
    unheard all{3};
    all.show(0, 5s, 1s, 2s);
    all.show(1, 5s, 1s, 2s);
    CHECK(all.is_suspected(0));
    all.judge(2s);
    CHECK(!all.is_suspected(0));
    CHECK(!all.is_suspected(1));
    all.show(2, 5s, 1s, 2s);
    CHECK(!all.is_suspected(2));
    for (const std::size_t master : {0U, 2U})
    {
        all.show(master, 5s, 1s, 3s);
        CHECK(all.is_suspected(master));
    }
}

TEST_CASE("a stop of our clock doesn't explain a jump of before, even if it is as long", "[scenario-4]")
{
    const bool shows_it_as_well = GENERATE(false, true);
    CAPTURE(shows_it_as_well);
    unheard all{3};
    all.show(1, 5s, 1s, 2s);
    for (const std::size_t master : {0U, 1U, 2U})
    {
        if (master != 1 || shows_it_as_well)
        {
            all.show(master, 5s, 3s, 4s);
        }
    }
    all.judge(4s);
    CHECK(!all.is_suspected(0));
    CHECK(all.is_suspected(1));
    CHECK(!all.is_suspected(2));
}

TEST_CASE("a stop that follows a jump at once explains one of the two deviations", "[scenario-4]")
{
    unheard all{3};
    all.show(0, 5s, 1s, 2s);
    for (const std::size_t master : {0U, 1U, 2U}) // The reading before was on its way until the stop.
    {
        all.show(master, 5s, 1999ms, 3s);
    }
    all.judge(3s);
    CHECK(all.is_suspected(0));
    CHECK(!all.is_suspected(1));
    CHECK(!all.is_suspected(2));
}

TEST_CASE("many stops that nobody has told from jumps yet hide no jump", "[scenario-4]")
{
    unheard all{3};
    all.show(0, 20s, 1s, 2s);
    for (int stop = 1; stop <= 20; ++stop)
    {
        for (const std::size_t master : {0U, 1U})
        {
            all.show(master, stop * 1s, 1s + stop * 1s, 2s + stop * 1s);
        }
    }
    all.judge(23s);
    CHECK(all.is_suspected(0));
}

TEST_CASE("a single master has no witness for a stop of our clock", "[scenario-4]")
{
    unheard all{1};
    all.show(0, 5s, 1s, 2s);
    all.judge(20s);
    CHECK(all.is_suspected(0));
    all.judge(2s + longest);
    CHECK(!all.is_suspected(0));
}

TEST_CASE("only a master whose clock has jumped is accused", "[scenario-76]")
{
    std::size_t accused_ones = 0;
    for (std::uint64_t seed = 0; seed < worlds; ++seed)
    {
        CAPTURE(seed);
        std::mt19937_64 dice{seed};
        const world of = drawn_world(dice, seed % 3 != 0, seed % 4 != 0);
        run all{of, seed};
        all.take_all(
            [&](const answer& each, std::uint32_t accused)
            {
                for (std::size_t master = 0; master < of.masters; ++master)
                {
                    const bool has_jumped = std::any_of(
                        of.jumps[master].begin(), of.jumps[master].end(),
                        [&](const step& jump) { return jump.at <= each.received; });
                    const bool is_accused = (accused >> master & 1U) != 0;
                    accused_ones += is_accused ? 1U : 0U;
                    REQUIRE((has_jumped || !is_accused));
                }
            });
    }
    CHECK(accused_ones > worlds / 10);
}

TEST_CASE("a stop of our clock never costs the votes of a quorum for long", "[scenario-76]")
{
    std::size_t suspected_ones = 0;
    for (std::uint64_t seed = 0; seed < worlds; ++seed)
    {
        CAPTURE(seed);
        std::mt19937_64 dice{seed};
        world of = drawn_world(dice, false, true);
        const auto here = static_cast<std::size_t>(std::count(of.away.begin(), of.away.end(), false));
        if (of.masters < 3 || here < quorum_of(of.masters))
        {
            continue; // There may be no witness, or is no lock anyway.
        }
        of.stops.resize(1); // Others may show the next one.
        const step& stop = of.stops.front();
        run all{of, seed};
        if (all.is_read_at(stop.at))
        {
            continue; // Each of the next two readings can show a part of it.
        }
        all.take_all(
            [&](const answer& each, std::uint32_t)
            {
                const std::size_t suspected = all.count_suspected();
                suspected_ones += suspected;
                const bool is_soon = each.received < stop.at + stop.by + 5s;
                REQUIRE((is_soon || suspected <= of.masters - quorum_of(of.masters)));
            });
    }
    CHECK(suspected_ones > worlds);
}

TEST_CASE("a stop of our clock that all masters show costs no vote for long", "[scenario-76]")
{
    std::size_t checked = 0;
    for (std::uint64_t seed = 0; seed < worlds; ++seed)
    {
        CAPTURE(seed);
        std::mt19937_64 dice{seed};
        world of = drawn_world(dice, false, true);
        std::fill(of.round_trips.begin(), of.round_trips.end(), drawn(dice, 200us, 20ms));
        std::fill(of.away.begin(), of.away.end(), false);
        of.stops = {{of.stops.front().at, of.stops.front().by + 100ms}};
        run all{of, seed};
        if (of.masters == 1 || all.is_read_at(of.stops.front().at))
        {
            continue;
        }
        all.take_all(
            [&](const answer& each, std::uint32_t)
            {
                const bool is_soon = each.received < of.stops.front().at + of.stops.front().by + 5s;
                REQUIRE((is_soon || all.count_suspected() == 0));
                ++checked;
            });
    }
    CHECK(checked > worlds);
}

} // namespace redlock::core
