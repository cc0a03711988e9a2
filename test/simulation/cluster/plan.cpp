// SPDX-License-Identifier: BSL-1.0
// What a seed draws.
#include "plan.hpp"

#include "chance.hpp"
#include "faults.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using std::chrono::milliseconds;

template <class T, std::size_t N>
T one_of(chance& draws, const std::array<T, N>& choices)
{
    return choices[draws.below(N)];
}

void draw_times(plan& drawn, chance& draws)
{
    // Short ttls expire during the run; a resource with a long ttl only becomes free by a release.
    constexpr std::array<milliseconds, 8> ttls{20ms, 40ms, 60ms, 100ms, 150ms, 300ms, 1s, 4s};
    const std::size_t how_many = 1 + draws.below(2);
    for (std::size_t each = 0; each < how_many; ++each)
    {
        drawn.ttls.push_back(one_of(draws, ttls));
    }
    const milliseconds shortest = *std::min_element(drawn.ttls.begin(), drawn.ttls.end());
    if (draws.one_in(2))
    {
        drawn.node_timeout = std::clamp(shortest / 8, 2ms, 50ms);
    }
    drawn.connect_timeout = one_of(draws, std::array{50ms, 100ms, 500ms});
    drawn.reconnect_delay_max = one_of(draws, std::array{10ms, 50ms, 200ms});
    drawn.retry_delay_max = one_of(draws, std::array{10ms, 20ms, 100ms});
    drawn.probe_interval = one_of(draws, std::array{100ms, 300ms, 1000ms});
    drawn.response_timeout = one_of(draws, std::array{30ms, 100ms, 300ms});
    drawn.drift_factor = one_of(draws, std::array{0.01, 0.01, 0.05, 0.1});
    drawn.latency = one_of(draws, std::array<clock::duration, 3>{50us, 100us, 500us});
    drawn.jitter = one_of(draws, std::array<clock::duration, 3>{0us, 100us, 1ms});
}

void draw_workload(plan& drawn, chance& draws)
{
    workload& does = drawn.does;
    does.tries = draws.below(3);
    does.acquires = draws.below(3);
    does.keeps = draws.below(3);
    does.bodies = 1 + draws.below(3);
    does.drops_one_in = 1 + draws.below(6);
    does.cancels_one_in = one_of(draws, std::array<std::size_t, 3>{2, 5, 1000});
    does.pause = one_of(draws, std::array<clock::duration, 3>{500us, 5ms, 20ms});
    const clock::duration shortest = *std::min_element(drawn.ttls.begin(), drawn.ttls.end());
    does.work = std::min<clock::duration>(shortest * (1 + draws.below(3)), 200ms);
}

void draw_limits(plan& drawn, chance& draws)
{
    const auto small = [&draws](std::size_t most)
    { return draws.one_in(8) ? std::optional{1 + draws.below(most)} : std::nullopt; };
    drawn.max_outstanding_keys = small(3);
    // An observer client may be busy for longer than the checks at the end wait.
    drawn.max_operations = drawn.looked_on ? std::nullopt : small(4);
    drawn.max_waiting_acquires = small(2);
    drawn.max_waiting_events = small(8).value_or(drawn.max_waiting_events);
    if (draws.one_in(100))
    {
        // Hours of frequent probes would take as long as thousands of seeds.
        drawn.rest =
            drawn.probe_interval == 1000ms && draws.one_in(32) ? clock::duration{3h} : clock::duration{20min};
    }
}

habit draw_habit(chance& draws)
{
    // By a renamed command, or by an ACL.
    static const std::array<std::vector<const char*>, 17> refused{
        {{"SET"},
         {"INFO"},
         {"TIME"},
         {"EVAL"},
         {"EVALSHA"},
         {"EVAL", "EVALSHA"},
         {"EVAL", "EVALSHA", "SCRIPT LOAD", "SCRIPT FLUSH"},
         {"SCRIPT LOAD", "SCRIPT FLUSH"},
         {"CLIENT ID"},
         {"CLIENT SETNAME"},
         {"CLIENT KILL", "may kill?"},
         {"CLIENT ID", "CLIENT SETNAME", "CLIENT KILL", "may kill?"},
         {"SELECT"},
         {"SUBSCRIBE"},
         {"PUBLISH"},
         {"may greet?"},
         {"HELLO"}}};
    habit drawn;
    if (draws.one_in(4))
    {
        drawn.fsync = draws.between(100us, 20ms);
        return drawn;
    }
    drawn.refuses = refused.at(draws.below(refused.size()));
    // No ACL forbids HELLO before the log-in.
    const bool renamed = drawn.refuses.front() == std::string_view{"HELLO"} || draws.one_in(2);
    drawn.with = renamed ? "-ERR unknown command, with args beginning with: \r\n"
                         : "-NOPERM this user has no permissions to run this command\r\n";
    if (draws.one_in(8))
    {
        drawn.refuses = {"SET", "ask"};
        if (draws.one_in(2)) // As Redis 8.6 does.
        {
            drawn.refuses.push_back("SUBSCRIBE");
        }
        drawn.with = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    }
    else if (draws.one_in(3))
    {
        // The library calls most of these in scripts only.
        drawn.refuses = {one_of(
            draws, std::array{
                       "GET", "DEL", "PTTL", "PEXPIRE", "EXISTS", "HGET", "HMGET", "HSET", "HDEL", "HVALS",
                       "ZADD", "ZREM", "ZRANGE", "ZRANK", "ZSCORE", "ZCARD"})};
    }
    else if (renamed && draws.one_in(16))
    {
        drawn.refuses = {"HELLO", "AUTH"};
    }
    return drawn;
}

void draw_habits(plan& drawn, chance& draws)
{
    const std::size_t minority = (drawn.masters - 1) / 2;
    if (minority == 0 || !draws.one_in(4))
    {
        return;
    }
    const std::size_t how_many = 1 + draws.below(minority);
    for (std::size_t each = 0; each < how_many; ++each)
    {
        drawn.habits.push_back(draw_habit(draws));
    }
}

bool breaks_assumptions(const plan& drawn, const fault& one)
{
    return one.breaks_assumptions && !(drawn.guarded && one.guarded == in_guarded::keeps_promises);
}

/// A run that is long enough for quarantines to end, or a short one.
void draw_guarded(plan& drawn, chance& draws)
{
    guarded_plan its;
    for (milliseconds& each : drawn.ttls)
    {
        each = draws.one_in(4) ? each : std::min(each, one_of(draws, std::array{60ms, 150ms, 300ms}));
    }
    const milliseconds shortest = *std::min_element(drawn.ttls.begin(), drawn.ttls.end());
    if (drawn.node_timeout)
    {
        drawn.node_timeout = std::clamp(shortest / 8, 2ms, 50ms);
    }
    drawn.does.work = std::min<clock::duration>(drawn.does.work, 3 * shortest);
    its.max_ttl = std::max(
        drawn.longest_ttl(), one_of(draws, std::array<milliseconds, 6>{150ms, 300ms, 300ms, 1s, 5s, 60s}));
    if (its.max_ttl <= 1s && !draws.one_in(3))
    {
        // As many operations, over a longer time.
        const auto longer = static_cast<clock::rep>(5 + draws.below(25));
        drawn.length *= longer;
        drawn.does.pause *= longer / 3;
    }
    its.plain_client = draws.one_in(6);
    its.shared_counter = draws.one_in(3);
    drawn.guarded = its;
}

/// Some runs are of the size of real programs: many clients wait together, or the masters are far away.
void draw_size(plan& drawn, chance& draws)
{
    if (draws.one_in(32))
    {
        drawn.workers = 8 + draws.below(32);
        drawn.does.pause = std::max<clock::duration>(drawn.does.pause, 5ms);
    }
    if (draws.one_in(32))
    {
        drawn.latency = one_of(draws, std::array<clock::duration, 3>{3ms, 12ms, 40ms});
        const auto answer = std::chrono::ceil<milliseconds>(2 * (drawn.latency + drawn.jitter));
        for (milliseconds& each : drawn.ttls)
        {
            each = std::max(each, 20 * answer);
        }
        drawn.node_timeout = answer + 20ms;
        drawn.connect_timeout = std::max(drawn.connect_timeout, 9 * answer); // Up to seven round trips.
        drawn.response_timeout = std::max(drawn.response_timeout, 2 * answer);
        drawn.length *= 10;
        if (drawn.guarded)
        {
            drawn.guarded->max_ttl = std::max(drawn.guarded->max_ttl, drawn.longest_ttl());
        }
    }
}

void draw_injections(plan& drawn, chance& draws)
{
    // Each seed enables a random subset: some violations need the absence of other faults.
    const std::size_t rareness = 2 + draws.below(8);
    std::vector<std::size_t> enabled;
    const auto& all = all_faults();
    for (std::size_t kind = 0; kind < all.size(); ++kind)
    {
        // Faults of guarded mode take no draw from plain seeds.
        const bool fits =
            drawn.guarded ? all[kind].guarded != in_guarded::excluded : all[kind].guarded != in_guarded::only;
        if (fits && draws.one_in(rareness) &&
            (drawn.breaks_assumptions || !breaks_assumptions(drawn, all[kind])))
        {
            enabled.push_back(kind);
        }
    }
    if (enabled.empty())
    {
        return;
    }
    const clock::duration mean = drawn.length / static_cast<clock::rep>(2 + draws.below(12));
    for (clock::duration at = draws.between(0us, mean); at < drawn.length; at += draws.between(0us, 2 * mean))
    {
        const std::size_t kind = enabled[draws.below(enabled.size())];
        drawn.injections.push_back({at, kind, draws.fork()});
    }
}

} // namespace

milliseconds plan::longest_ttl() const
{
    return *std::max_element(ttls.begin(), ttls.end());
}

std::int64_t plan::max_drift() const
{
    // One ahead and one behind: (1 + x) / (1 - x) <= 1 + drift_factor.
    return static_cast<std::int64_t>(drift_factor * 1'000'000 / (2 + drift_factor));
}

plan draw_plan(std::uint64_t seed)
{
    chance draws{chance::mixed(seed)};
    plan drawn;
    drawn.seed = seed;
    drawn.breaks_assumptions = draws.one_in(5);
    drawn.masters = one_of(draws, std::array<std::size_t, 12>{1, 2, 3, 3, 3, 3, 4, 5, 5, 5, 6, 7});
    drawn.clients = 2 + draws.below(2);
    drawn.workers = 1 + draws.below(3);
    drawn.resources = 1 + draws.below(2);
    drawn.looked_on = draws.one_in(8);
    drawn.observed = drawn.looked_on || !draws.one_in(4);
    drawn.locked_up = draws.one_in(4);
    drawn.old_masters = draws.one_in(10);
    drawn.database = draws.one_in(10) ? 3 : 0;
    drawn.length = draws.between(20ms, 200ms);
    draw_times(drawn, draws);
    draw_workload(drawn, draws);
    draw_limits(drawn, draws);
    draw_habits(drawn, draws);
    drawn.other_executors = draws.one_in(3);
    drawn.throws_one_in = draws.one_in(4) ? 6 : 0;
    if (seed >= first_guarded_seed)
    {
        chance guarded{chance::mixed(seed + 5)};
        draw_guarded(drawn, guarded);
    }
    chance sizes{chance::mixed(seed + 6)};
    draw_size(drawn, sizes);
    drawn.joins = sizes.one_in(2);
    draw_injections(drawn, draws);
    drawn.strict = draws.one_in(4);
    drawn.close_resets = draws.one_in(2);
    return drawn;
}

} // namespace redlock::test
