// SPDX-License-Identifier: BSL-1.0
// Tests of the wait queue of a resource, at its queue master.
#include "simulation.hpp"

#include "core/leader.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace redlock::test
{

namespace
{

/// Acquires the resource, holds it for a while, releases it, and acquires it again after a pause.
class taker
{
  public:
    taker(
        simulation& sim, lock_manager& locks, clock::duration longest_pause, clock::duration holds = 3ms,
        clock::duration holds_at_most = 7ms)
        : sim_{sim},
          locks_{locks},
          longest_pause_{longest_pause},
          holds_{holds},
          holds_at_most_{holds_at_most}
    {
    }

    std::size_t grants() const noexcept { return grants_; }
    clock::duration longest_wait() const noexcept { return longest_wait_; }

    /// Begins the next operation if its time has come.
    void act()
    {
        if (waits_for_ ? !waits_for_->done : sim_.now() < next_)
        {
            return;
        }
        if (!waits_for_ && !held_)
        {
            asked_ = sim_.now();
            waits_for_ = sim_.acquire(locks_, "stock", {.ttl = 10s, .wait = no_limit});
        }
        else if (!waits_for_)
        {
            waits_for_ = sim_.release(held_);
        }
        else if (held_)
        {
            waits_for_.reset();
            held_ = {};
            pause(clock::duration{0}, longest_pause_);
        }
        else
        {
            held_ = std::move(waits_for_->lease);
            waits_for_.reset();
            ++grants_;
            longest_wait_ = std::max(longest_wait_, sim_.now() - asked_);
            pause(holds_, holds_at_most_);
        }
    }

  private:
    void pause(clock::duration least, clock::duration most)
    {
        const auto width = static_cast<std::size_t>((most - least).count()) + 1;
        next_ = sim_.now() + least + clock::duration{sim_.world().random_below(width)};
        sim_.world().at(next_, event_kind::timer, [] {});
    }

    simulation& sim_;
    lock_manager& locks_;
    clock::duration longest_pause_;
    clock::duration holds_;
    clock::duration holds_at_most_;
    lease held_;
    outcome_ptr waits_for_;
    clock::time_point asked_{};
    clock::time_point next_{};
    clock::duration longest_wait_{0};
    std::size_t grants_ = 0;
};

/// Returns the queue master of a resource.
sim_master& leader_of(simulation& sim, const std::string& resource)
{
    const std::uint64_t key = core::stable_hash("lock:" + resource);
    const config known = sim.options();
    std::size_t leader = 0;
    const auto claim = [&](std::size_t index)
    { return core::claim_to_lead(core::stable_hash(known.masters[index].name()), key); };
    for (std::size_t index = 1; index < known.masters.size(); ++index)
    {
        leader = claim(index) > claim(leader) ? index : leader;
    }
    return sim.master(leader);
}

config with_long_pauses(const simulation& sim)
{
    config options = sim.options();
    options.retry_delay_min = options.retry_delay_max = 10s;
    return options;
}

/// A client that holds the resource, and another one that waits for it.
struct rivals
{
    rivals(simulation& on, const config& of_the_second)
        : sim{on}, one{on.make_connected_manager()}, two{on.make_connected_manager(of_the_second)}
    {
        first = sim.acquire(one, "stock", {.ttl = 60s});
        REQUIRE(sim.finish(first));
    }

    void wait(time_limit at_most = no_limit)
    {
        second = sim.acquire(two, "stock", {.ttl = 60s, .wait = at_most});
    }
    /// The first client releases the resource, and the second one acquires it.
    void hand_over()
    {
        freed = sim.now();
        released = sim.release(first->lease);
        REQUIRE(sim.finish(second));
        CHECK(!second->error);
    }

    simulation& sim;
    lock_manager one;
    lock_manager two;
    outcome_ptr first{};
    outcome_ptr second{};
    outcome_ptr released{};
    clock::time_point freed{};
};

} // namespace

TEST_CASE("a client that acquires again at once leaves the resource to waiting clients")
{
    simulation sim{5, static_cast<std::uint64_t>(GENERATE(range(1, 6)))};
    for (const auto& each : sim.masters())
    {
        each->network.jitter = 200us;
    }
    lock_manager one = sim.make_connected_manager();
    lock_manager two = sim.make_connected_manager();
    taker greedy{sim, one, 0ms};
    taker polite{sim, two, 5ms};
    const clock::time_point end = sim.now() + 10s;
    while (sim.step(end))
    {
        greedy.act();
        polite.act();
    }
    const std::size_t grants = greedy.grants() + polite.grants();
    CHECK(grants > 1000);
    CHECK(100 * greedy.grants() / grants < 60);
    CHECK(polite.longest_wait() < 100ms);
}

TEST_CASE("the time in which a resource is free does not prolong the wait of the next client")
{
    simulation sim{5, static_cast<std::uint64_t>(GENERATE(range(1, 6)))};
    for (const auto& each : sim.masters())
    {
        each->network.jitter = 200us;
    }
    lock_manager one = sim.make_connected_manager();
    lock_manager two = sim.make_connected_manager();
    taker first{sim, one, 0ms, 200us, 400us};
    taker second{sim, two, 0ms, 200us, 400us};
    const clock::time_point end = sim.now() + 5s;
    while (sim.step(end))
    {
        first.act();
        second.act();
    }
    // A grant takes four round trips and a hold: two milliseconds at most, and one more until the next slot.
    CHECK(first.grants() + second.grants() > 1500);
    CHECK(first.longest_wait() < 100ms);
    CHECK(second.longest_wait() < 100ms);
}

TEST_CASE("a queued client acquires the resource as soon as it is free, and asks only the queue master")
{
    simulation sim{5};
    rivals of{sim, with_long_pauses(sim)};
    of.wait();
    sim.run_for(1s);
    REQUIRE_FALSE(of.second->done);
    for (const auto& each : sim.masters())
    {
        CHECK(each->count("SET") == 2);
        CHECK(each->count("release") == 1); // Of its only round. A refused slot request sets no key.
        CHECK((each->count("turn") > 0) == (each.get() == &leader_of(sim, "stock")));
    }
    of.hand_over();
    CHECK(of.second->report.rounds == 2);
    CHECK(of.second->at - of.freed < 300ms); // A quarter of the second for which it was held.
    CHECK(leader_of(sim, "stock").count("SET") == 2);
    sim.run_until_idle();
    for (const auto& each : sim.masters())
    {
        CHECK(each->value("lock:stock") == of.second->lease.owner_id());
    }
}

TEST_CASE("a resource without a queue costs no slot")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    for (int times = 0; times < 3; ++times)
    {
        const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
        REQUIRE(sim.finish(got));
        REQUIRE(sim.finish(sim.release(got->lease)));
    }
    CHECK(sim.count("turn") == 0);
}

TEST_CASE("only the release at the queue master asks for queued clients")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(got));
    REQUIRE(sim.finish(sim.release(got->lease)));
    sim.run_until_idle();
    for (const auto& each : sim.masters())
    {
        REQUIRE(each->count("release") == 1);
        const bool asked = each->last("release").words.back() == "line";
        CHECK(asked == (each.get() == &leader_of(sim, "stock")));
    }
}

TEST_CASE("a try has its one round even if other clients are queued")
{
    simulation sim{3};
    rivals of{sim, with_long_pauses(sim)};
    of.wait();
    sim.run_for(100ms);
    of.hand_over();
    REQUIRE(sim.finish(sim.release(of.second->lease)));
    const std::size_t turns = sim.count("turn");
    const outcome_ptr tried = sim.try_acquire(of.one, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(tried));
    CHECK(!tried->error);
    CHECK(tried->report.rounds == 1);
    CHECK(sim.count("turn") == turns);
}

TEST_CASE("a queue master that doesn't answer is not asked for a slot", "[scenario-36]")
{
    simulation sim{3};
    rivals of{sim, sim.options()};
    of.wait();
    sim.run_for(100ms);
    leader_of(sim, "stock").hang();
    of.hand_over();
    CHECK(
        of.second->at - of.freed <=
        600ms); // retry_delay_max, and one or two slot requests without an answer.
    leader_of(sim, "stock").resume();
    REQUIRE(sim.finish(sim.release(of.second->lease)));
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a queue master that lost the key doesn't make clients ask the other masters more often")
{
    simulation sim{5};
    rivals of{sim, sim.options()};
    leader_of(sim, "stock").flush_all();
    of.wait(10s);
    REQUIRE(sim.finish(of.second));
    CHECK(of.second->error == errc::held_by_other);
    // Each pause is half a second at most, and a quarter on average; it may follow a round that began with a slot.
    CHECK(of.second->report.rounds < 200);
    CHECK(of.first->lease.valid());
    REQUIRE(sim.finish(sim.release(of.first->lease)));
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a queue master that forgot the script is sent it in full, but not after the release")
{
    simulation sim{3};
    rivals of{sim, with_long_pauses(sim)};
    sim_master& leader = leader_of(sim, "stock");
    leader.flush_scripts();
    of.wait();
    REQUIRE(sim.run_until([&] { return leader.count("turn") == 1; }, 1s));
    SECTION("while the acquire is running")
    {
        REQUIRE(sim.run_until([&] { return leader.count("turn") == 2; }, 1s));
        CHECK(leader.last("turn").words.front() == "EVAL");
        of.hand_over();
    }
    SECTION("not after the acquire has ended")
    {
        of.second->cancel.emit(asio::cancellation_type::terminal);
        REQUIRE(sim.finish(of.second));
        CHECK(of.second->error == asio::error::operation_aborted);
        REQUIRE(sim.finish(sim.release(of.first->lease)));
        CHECK(sim.run_until_no_keys());
        CHECK(leader.last("turn").words.front() == "EVALSHA");
    }
}

TEST_CASE("a foreign key under the name of the queue is not changed", "[scenario-19]")
{
    simulation sim{3};
    rivals of{sim, sim.options()};
    const outcome_ptr other = sim.acquire(of.one, "stock:redlock-line", {.ttl = 60s});
    REQUIRE(sim.finish(other));
    of.wait();
    sim.run_for(2s);
    REQUIRE(leader_of(sim, "stock").count("turn") > 0);
    for (const auto& each : sim.masters())
    {
        CHECK(each->value("lock:stock:redlock-line") == other->lease.owner_id());
    }
    of.hand_over();
    CHECK(sim.master(0).value("lock:stock:redlock-line") == other->lease.owner_id());
}

TEST_CASE("an empty value counts as a lock of another client")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    for (const auto& each : sim.masters())
    {
        each->set("lock:stock", "");
    }
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 2s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::held_by_other);
    CHECK(sim.count("turn") > 0);
    for (const auto& each : sim.masters())
    {
        CHECK(each->value("lock:stock") == "");
    }
}

TEST_CASE("a single master has a queue too")
{
    simulation sim{1};
    rivals of{sim, with_long_pauses(sim)};
    of.wait();
    sim.run_for(100ms);
    of.hand_over();
    CHECK(sim.count("SET") == 2);
    REQUIRE(sim.finish(sim.release(of.second->lease)));
    CHECK(sim.run_until_no_keys());
}

} // namespace redlock::test
