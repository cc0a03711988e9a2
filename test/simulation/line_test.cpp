// SPDX-License-Identifier: BSL-1.0
// Tests of those who stand in line for a resource at the master that leads for it.
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

/// Takes the resource, holds it for a while, gives it back, and wants it again after a pause.
class taker
{
  public:
    taker(
        simulation& all, lock_manager& locks, clock::duration longest_pause, clock::duration holds = 3ms,
        clock::duration holds_at_most = 7ms)
        : all_{all},
          locks_{locks},
          longest_pause_{longest_pause},
          holds_{holds},
          holds_at_most_{holds_at_most}
    {
    }

    std::size_t grants() const noexcept { return grants_; }
    clock::duration longest_wait() const noexcept { return longest_wait_; }

    /// Does what is to be done now.
    void act()
    {
        if (waits_for_ ? !waits_for_->done : all_.now() < next_)
        {
            return;
        }
        if (!waits_for_ && !held_)
        {
            asked_ = all_.now();
            waits_for_ = all_.acquire(locks_, "r", {.ttl = 10s, .wait = no_limit});
        }
        else if (!waits_for_)
        {
            waits_for_ = all_.release(held_);
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
            longest_wait_ = std::max(longest_wait_, all_.now() - asked_);
            pause(holds_, holds_at_most_);
        }
    }

  private:
    void pause(clock::duration least, clock::duration most)
    {
        const auto width = static_cast<std::size_t>((most - least).count()) + 1;
        next_ = all_.now() + least + clock::duration{all_.world().random_below(width)};
        all_.world().at(next_, event_kind::timer, [] {});
    }

    simulation& all_;
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

/// Which master leads for a resource.
sim_master& leader_of(simulation& all, const std::string& resource)
{
    const std::uint64_t key = core::stable_hash("lock:" + resource);
    const config known = all.options();
    std::size_t leader = 0;
    const auto claim = [&](std::size_t index)
    { return core::claim_to_lead(core::stable_hash(known.masters[index].name()), key); };
    for (std::size_t index = 1; index < known.masters.size(); ++index)
    {
        leader = claim(index) > claim(leader) ? index : leader;
    }
    return all.master(leader);
}

config with_long_pauses(const simulation& all)
{
    config options = all.options();
    options.retry_delay_min = options.retry_delay_max = 10s;
    return options;
}

/// One who has the resource, and another one who waits for it.
struct rivals
{
    rivals(simulation& on, const config& of_the_second)
        : all{on}, one{on.make_connected_manager()}, two{on.make_connected_manager(of_the_second)}
    {
        first = all.acquire(one, "r", {.ttl = 60s});
        REQUIRE(all.finish(first));
    }

    void wait(time_limit at_most = no_limit)
    {
        second = all.acquire(two, "r", {.ttl = 60s, .wait = at_most});
    }
    /// The first one gives it back, and the second one gets it.
    void hand_over()
    {
        freed = all.now();
        released = all.release(first->lease);
        REQUIRE(all.finish(second));
        CHECK(!second->error);
    }

    simulation& all;
    lock_manager one;
    lock_manager two;
    outcome_ptr first{};
    outcome_ptr second{};
    outcome_ptr released{};
    clock::time_point freed{};
};

} // namespace

TEST_CASE("who wants a resource again at once leaves it to those who wait")
{
    simulation all{5, static_cast<std::uint64_t>(GENERATE(range(1, 6)))};
    for (const auto& each : all.masters())
    {
        each->network.jitter = 200us;
    }
    lock_manager one = all.make_connected_manager();
    lock_manager two = all.make_connected_manager();
    taker greedy{all, one, 0ms};
    taker polite{all, two, 5ms};
    const clock::time_point end = all.now() + 10s;
    while (all.step(end))
    {
        greedy.act();
        polite.act();
    }
    const std::size_t grants = greedy.grants() + polite.grants();
    CHECK(grants > 1000);
    CHECK(100 * greedy.grants() / grants < 60);
    CHECK(polite.longest_wait() < 100ms);
}

TEST_CASE("time in which a resource is free makes no waiting client wait longer")
{
    simulation all{5, static_cast<std::uint64_t>(GENERATE(range(1, 6)))};
    for (const auto& each : all.masters())
    {
        each->network.jitter = 200us;
    }
    lock_manager one = all.make_connected_manager();
    lock_manager two = all.make_connected_manager();
    taker first{all, one, 0ms, 200us, 400us};
    taker second{all, two, 0ms, 200us, 400us};
    const clock::time_point end = all.now() + 5s;
    while (all.step(end))
    {
        first.act();
        second.act();
    }
    // A grant takes four round trips and a hold: two milliseconds at most, and one more for the next turn.
    CHECK(first.grants() + second.grants() > 1500);
    CHECK(first.longest_wait() < 100ms);
    CHECK(second.longest_wait() < 100ms);
}

TEST_CASE("who stands in line has the resource as soon as it is free, and asks one master for it")
{
    simulation all{5};
    rivals of{all, with_long_pauses(all)};
    of.wait();
    all.run_for(1s);
    REQUIRE_FALSE(of.second->done);
    for (const auto& each : all.masters())
    {
        CHECK(each->count("SET") == 2);
        CHECK(each->count("release") == 1); // Of its only round. A turn that is refused leaves nothing.
        CHECK((each->count("turn") > 0) == (each.get() == &leader_of(all, "r")));
    }
    of.hand_over();
    CHECK(of.second->report.rounds == 2);
    CHECK(of.second->at - of.freed < 300ms); // A quarter of the second for which it was held.
    CHECK(leader_of(all, "r").count("SET") == 2);
    all.run_until_idle();
    for (const auto& each : all.masters())
    {
        CHECK(each->value("lock:r") == of.second->lease.owner_id());
    }
}

TEST_CASE("a resource without a queue costs no slot")
{
    simulation all{5};
    lock_manager locks = all.make_connected_manager();
    for (int times = 0; times < 3; ++times)
    {
        const outcome_ptr got = all.acquire(locks, "r", {.ttl = 10s});
        REQUIRE(all.finish(got));
        REQUIRE(all.finish(all.release(got->lease)));
    }
    CHECK(all.count("turn") == 0);
}

TEST_CASE("of all releases only the one at the leading master asks about the line")
{
    simulation all{5};
    lock_manager locks = all.make_connected_manager();
    const outcome_ptr got = all.acquire(locks, "r", {.ttl = 60s});
    REQUIRE(all.finish(got));
    REQUIRE(all.finish(all.release(got->lease)));
    all.run_until_idle();
    for (const auto& each : all.masters())
    {
        REQUIRE(each->count("release") == 1);
        const bool asked = each->last("release").words.back() == "line";
        CHECK(asked == (each.get() == &leader_of(all, "r")));
    }
}

TEST_CASE("a try has its one round, also if other clients are queued")
{
    simulation all{3};
    rivals of{all, with_long_pauses(all)};
    of.wait();
    all.run_for(100ms);
    of.hand_over();
    REQUIRE(all.finish(all.release(of.second->lease)));
    const std::size_t turns = all.count("turn");
    const outcome_ptr tried = all.try_acquire(of.one, "r", {.ttl = 10s});
    REQUIRE(all.finish(tried));
    CHECK(!tried->error);
    CHECK(tried->report.rounds == 1);
    CHECK(all.count("turn") == turns);
}

TEST_CASE("a leading master that doesn't answer is left out of it", "[scenario-36]")
{
    simulation all{3};
    rivals of{all, all.options()};
    of.wait();
    all.run_for(100ms);
    leader_of(all, "r").hang();
    of.hand_over();
    CHECK(of.second->at - of.freed <= 600ms); // retry_delay_max, and a turn or two without an answer.
    leader_of(all, "r").resume();
    REQUIRE(all.finish(all.release(of.second->lease)));
    CHECK(all.run_until_no_keys());
}

TEST_CASE("a leading master that lost the key doesn't make clients ask the others more often")
{
    simulation all{5};
    rivals of{all, all.options()};
    leader_of(all, "r").flush_all();
    of.wait(10s);
    REQUIRE(all.finish(of.second));
    CHECK(of.second->error == errc::held_by_other);
    // Each pause is half a second at most, and a quarter on average; it may follow a round that a turn began.
    CHECK(of.second->report.rounds < 200);
    CHECK(of.first->lease.valid());
    REQUIRE(all.finish(all.release(of.first->lease)));
    CHECK(all.run_until_no_keys());
}

TEST_CASE("a leading master that forgot the script is sent it in full, but not after the release")
{
    simulation all{3};
    rivals of{all, with_long_pauses(all)};
    sim_master& leader = leader_of(all, "r");
    leader.flush_scripts();
    of.wait();
    REQUIRE(all.run_until([&] { return leader.count("turn") == 1; }, 1s));
    SECTION("while it is wanted")
    {
        REQUIRE(all.run_until([&] { return leader.count("turn") == 2; }, 1s));
        CHECK(leader.last("turn").words.front() == "EVAL");
        of.hand_over();
    }
    SECTION("not once it is over")
    {
        of.second->cancel.emit(asio::cancellation_type::terminal);
        REQUIRE(all.finish(of.second));
        CHECK(of.second->error == asio::error::operation_aborted);
        REQUIRE(all.finish(all.release(of.first->lease)));
        CHECK(all.run_until_no_keys());
        CHECK(leader.last("turn").words.front() == "EVALSHA");
    }
}

TEST_CASE("a key that others have where the line would be stays as it is", "[scenario-19]")
{
    simulation all{3};
    rivals of{all, all.options()};
    const outcome_ptr other = all.acquire(of.one, "r:redlock-line", {.ttl = 60s});
    REQUIRE(all.finish(other));
    of.wait();
    all.run_for(2s);
    REQUIRE(leader_of(all, "r").count("turn") > 0);
    for (const auto& each : all.masters())
    {
        CHECK(each->value("lock:r:redlock-line") == other->lease.owner_id());
    }
    of.hand_over();
    CHECK(all.master(0).value("lock:r:redlock-line") == other->lease.owner_id());
}

TEST_CASE("a lock of others whose value is empty is theirs all the same")
{
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    for (const auto& each : all.masters())
    {
        each->set("lock:r", "");
    }
    const outcome_ptr got = all.acquire(locks, "r", {.ttl = 10s, .wait = 2s});
    REQUIRE(all.finish(got));
    CHECK(got->error == errc::held_by_other);
    CHECK(all.count("turn") > 0);
    for (const auto& each : all.masters())
    {
        CHECK(each->value("lock:r") == "");
    }
}

TEST_CASE("a line at the only master")
{
    simulation all{1};
    rivals of{all, with_long_pauses(all)};
    of.wait();
    all.run_for(100ms);
    of.hand_over();
    CHECK(all.count("SET") == 2);
    REQUIRE(all.finish(all.release(of.second->lease)));
    CHECK(all.run_until_no_keys());
}

} // namespace redlock::test
