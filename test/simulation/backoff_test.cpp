// SPDX-License-Identifier: BSL-1.0
// Tests of the pause between the rounds of an acquire, and of what ends them.
#include "simulation.hpp"
#include "waiting_clients.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace redlock::test
{

namespace
{

/// When the first master was asked for the resource, as seen by the client.
std::vector<clock::time_point> round_starts(simulation& sim)
{
    std::vector<clock::time_point> times;
    for (const received& each : sim.master(0).log())
    {
        if (each.what == "SET")
        {
            times.push_back(each.at - sim.master(0).network.there);
        }
    }
    return times;
}

void take_everywhere(simulation& sim)
{
    for (const auto& each : sim.masters())
    {
        each->set("lock:stock", "another");
    }
}

/// All masters are this far away.
void set_distance(simulation& sim, clock::duration passage)
{
    for (const auto& each : sim.masters())
    {
        each->network = {.there = passage, .back = passage};
    }
}

/// Returns a manager for which the lock "stock" is taken, at masters without queues.
lock_manager connect_without_queues(simulation& sim, std::chrono::milliseconds retry_delay_max)
{
    config options = sim.options();
    options.retry_delay_min = 1ms;
    options.retry_delay_max = retry_delay_max;
    lock_manager locks = sim.make_connected_manager(options);
    take_everywhere(sim);
    sim.forbid_queues();
    return locks;
}

/// A client that waits for "stock" at masters that are some way off.
struct losing_client
{
    static constexpr clock::duration passage = 10ms;
    static constexpr clock::duration round = 2 * passage;

    explicit losing_client(std::uint64_t seed) : sim{3, seed}
    {
        set_distance(sim, passage);
        sim.run_for(1s);
    }

    /// The queue master loses the key, and grants. The others refuse. Returns when the SETs of the client's next rounds arrive at
    /// one of them.
    std::vector<clock::time_point> lose(std::size_t rounds)
    {
        sim_master& other = sim.master((wrong + 1) % 3);
        other.forget_log();
        sim.master(wrong).remove("lock:stock");
        REQUIRE(sim.run_until([&] { return other.count("SET") == rounds; }, 10s));
        std::vector<clock::time_point> arrived;
        for (const received& each : other.log())
        {
            if (each.what == "SET")
            {
                arrived.push_back(each.at);
            }
        }
        return arrived;
    }

    simulation sim;
    waiting_clients with{sim, 1, sim.options()};
    std::size_t wrong = queue_master_index(sim, "stock"); // The queue master.
};

} // namespace

TEST_CASE("a pause between rounds is at least a millisecond and within its bound")
{
    simulation sim{3, static_cast<std::uint64_t>(GENERATE(range(1, 6)))};
    lock_manager locks = connect_without_queues(sim, 20ms);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 2s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::held_by_other);
    const std::vector<clock::time_point> starts = round_starts(sim);
    CHECK(starts.size() == got->report.rounds);
    CHECK(starts.size() > 100);
    clock::duration longest{};
    for (std::size_t at = 1; at < starts.size(); ++at)
    {
        const clock::duration pause = starts[at] - starts[at - 1] - trip;
        CHECK(pause >= 1ms);
        CHECK(pause <= 20ms + 3 * trip); // Each master is asked once in a second.
        longest = std::max(longest, pause);
    }
    CHECK(longest > 15ms);
}

TEST_CASE("no round starts after the wait, and none is squeezed in before its end")
{
    simulation sim{3, static_cast<std::uint64_t>(GENERATE(range(1, 40)))};
    config options = sim.options();
    options.retry_delay_min = 1ms;
    options.retry_delay_max = 4ms;
    lock_manager locks = sim.make_connected_manager(options);
    take_everywhere(sim);
    sim.forbid_queues();
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 20ms});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::held_by_other);
    CHECK(got->at - began <= 20ms + trip);
    const std::vector<clock::time_point> starts = round_starts(sim);
    REQUIRE(starts.size() > 1);
    for (std::size_t at = 1; at < starts.size(); ++at)
    {
        CHECK(starts[at] - starts[at - 1] - trip >= 1ms);
        CHECK(starts[at] - began <= 20ms);
    }
}

TEST_CASE("no round starts after the wait when the process slept through its end")
{
    simulation sim{3};
    config options = sim.options();
    options.retry_delay_min = 400ms;
    lock_manager locks = sim.make_connected_manager(options);
    take_everywhere(sim);
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 1s});
    sim.run_until_idle();
    REQUIRE_FALSE(got->done);
    sim.world().jump(1h);
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::held_by_other);
    for (const clock::time_point start : round_starts(sim))
    {
        CHECK(start - began <= 1s);
    }
}

TEST_CASE("an acquire without a wait has one round, and max_rounds limits those of others")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    take_everywhere(sim);
    const outcome_ptr once = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 0ms});
    REQUIRE(sim.finish(once));
    CHECK(once->error == errc::held_by_other);
    CHECK(once->report.rounds == 1);
    sim.forbid_queues();
    const outcome_ptr thrice = sim.acquire(locks, "stock", {.ttl = 10s, .wait = no_limit, .max_rounds = 3U});
    REQUIRE(sim.finish(thrice));
    CHECK(thrice->error == errc::held_by_other);
    CHECK(thrice->report.rounds == 3);
    CHECK(sim.master(0).count("SET") == 4);
}

TEST_CASE("an acquire without limits continues until it succeeds")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    for (const auto& each : sim.masters())
    {
        each->set("lock:stock", "another", 1min);
    }
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = no_limit});
    REQUIRE(sim.finish(got, 2min));
    CHECK(!got->error);
    CHECK(got->at - began >= 1min);
    CHECK(got->at - began <= 1min + 501ms);
}

TEST_CASE("without a queue, the pause after a round grows with the duration of the round")
{
    constexpr clock::duration round = 40ms;
    clock::duration longest{};
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
    {
        simulation sim{3, seed};
        lock_manager locks = connect_without_queues(sim, 10s);
        // It finds that no master has a queue, and asks none for a second.
        const outcome_ptr earlier = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 10ms});
        REQUIRE(sim.finish(earlier));
        set_distance(sim, round / 2);
        const clock::time_point began = sim.now();
        const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = no_limit, .max_rounds = 2U});
        REQUIRE(sim.finish(got));
        CHECK(got->report.rounds == 2);
        const clock::duration pause = got->at - began - 2 * round;
        CHECK(pause >= 1ms);
        CHECK(pause <= 8 * round);
        longest = std::max(longest, pause);
    }
    CHECK(longest > 4 * round);
}

TEST_CASE("in the queue, the pause after a lost round grows with the duration of the round", "[queue]")
{
    losing_client client{static_cast<std::uint64_t>(GENERATE(range(1, 6)))};
    const std::vector<clock::time_point> arrived = client.lose(3);
    // From the answer to a SET to the sending of the next one. Each loss doubles the pause.
    CHECK(arrived[1] - arrived[0] - losing_client::round >= losing_client::passage);
    CHECK(arrived[2] - arrived[1] - losing_client::round >= 2 * losing_client::passage);
}

TEST_CASE("in the queue, a wait between two lost rounds ends their row", "[queue]")
{
    losing_client client{static_cast<std::uint64_t>(GENERATE(range(1, 6)))};
    client.lose(4);
    // The queue master refuses again, so the client waits.
    client.sim.master(client.wrong).set("lock:stock", "another", 1min);
    client.sim.run_for(3s);
    const std::vector<clock::time_point> arrived = client.lose(2);
    // The fifth loss in a row would be followed by a pause of eight rounds at least.
    CHECK(arrived[1] - arrived[0] <= 5 * losing_client::round);
}

TEST_CASE("in the queue, a wait between lost rounds lets their queue master keep its place", "[queue]")
{
    losing_client client{static_cast<std::uint64_t>(GENERATE(range(1, 6)))};
    for (int time = 0; time < 2; ++time)
    {
        client.lose(2);
        // After three in a row the client would ask another one.
        for (const auto& each : client.sim.masters())
        {
            CHECK((each.get() == &client.sim.master(client.wrong) || each->count("ask") == 0));
        }
        client.sim.master(client.wrong).set("lock:stock", "another", 1min);
        client.sim.run_for(3s);
    }
}

} // namespace redlock::test
