// SPDX-License-Identifier: BSL-1.0
// Tests of the order of extensions, release, loss and destruction in the life of one lease.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

constexpr keep_options forever{.ttl = 10s, .max_hold = no_limit};

/// One lease that is extended and released at random, some of it at the same time.
class racer
{
  public:
    racer(simulation& sim, lock_manager& locks, std::size_t number) : sim_{sim}
    {
        const std::string resource = "stock" + std::to_string(number);
        const bool kept = sim.world().random_below(2) == 0;
        acquired_ =
            kept ? sim.acquire_kept(locks, resource, {.ttl = 1s, .max_hold = no_limit, .extend_every = 2ms})
                 : sim.acquire(locks, resource, {.ttl = 1s});
    }

    void begin()
    {
        lost_ = sim_.wait_lost(acquired_->lease);
        const std::size_t extensions = sim_.world().random_below(4);
        for (std::size_t time = 0; time < extensions; ++time)
        {
            at_random([this] { extended_.push_back(sim_.extend(acquired_->lease, 1s)); });
        }
        const bool dropped = sim_.world().random_below(4) == 0;
        at_random(
            [this, dropped]
            {
                released_ = true;
                dropped ? void(acquired_->lease = {}) : void(release_ = sim_.release(acquired_->lease));
            });
    }

    bool acquired() const { return acquired_->done && !acquired_->error; }
    bool done() const
    {
        bool done = released_ && lost_->done && (!release_ || release_->done);
        for (const outcome_ptr& each : extended_)
        {
            done = done && each->done;
        }
        return done;
    }
    /// Nothing failed, and no loss was reported.
    bool is_fine() const
    {
        bool fine = lost_->error == errc::not_held && !lost_->why && (!release_ || !release_->error);
        for (const outcome_ptr& each : extended_)
        {
            fine = fine && (!each->error || each->error == errc::not_held);
        }
        return fine;
    }

  private:
    void at_random(std::function<void()> what)
    {
        const std::chrono::nanoseconds pause{sim_.world().random_below(4'000'000)};
        sim_.world().at(sim_.now() + pause, event_kind::timer, std::move(what));
    }

    simulation& sim_;
    outcome_ptr acquired_;
    outcome_ptr lost_;
    outcome_ptr release_;
    std::vector<outcome_ptr> extended_;
    bool released_ = false;
};

/// Counts the commands that followed the release of their lease.
std::size_t late_commands(const sim_master& master)
{
    std::set<std::string> released;
    std::size_t late = 0;
    for (const received& each : master.log())
    {
        if (each.what == "release")
        {
            released.insert(each.words.at(4));
        }
        else if (each.what == "extend" || each.what == "SET")
        {
            late += released.contains(each.words.at(each.what == "SET" ? 2 : 4)) ? 1U : 0U;
        }
    }
    return late;
}

} // namespace

TEST_CASE("extensions and releases that race tens of thousands of times stay in order", "[scenario-28]")
{
    constexpr std::size_t at_once = 250;
    const int part = GENERATE(range(0, RACES / 10'000));
    simulation sim{3, static_cast<std::uint64_t>(part) + 1};
    std::size_t losses = 0;
    config options = sim.options();
    options.observer.max_waiting = 100'000;
    options.observer.on_event = [&losses](const event& what)
    { losses += std::holds_alternative<lease_lost>(what) ? 1U : 0U; };
    lock_manager locks = sim.make_connected_manager(options);
    for (const auto& each : sim.masters())
    {
        each->network.jitter = 1ms;
    }
    std::size_t extensions = 0;
    for (std::size_t batch = 0; batch < 40; ++batch)
    {
        std::vector<racer> racers;
        racers.reserve(at_once);
        for (std::size_t number = 0; number < at_once; ++number)
        {
            racers.emplace_back(sim, locks, number);
        }
        sim.run_for(10ms);
        for (racer& each : racers)
        {
            REQUIRE(each.acquired());
            each.begin();
        }
        sim.run_for(20ms);
        std::size_t fine = 0;
        for (const racer& each : racers)
        {
            fine += each.done() && each.is_fine() ? 1U : 0U;
        }
        CHECK(fine == at_once);
        REQUIRE(sim.keys() == 0);
        extensions += sim.count("extend");
        for (const auto& each : sim.masters())
        {
            CHECK(late_commands(*each) == 0);
            each->forget_log();
        }
    }
    CHECK(extensions > 3 * 40 * at_once);
    CHECK(losses == 0);
}

TEST_CASE("an extension whose answers come together with those to the next one has succeeded")
{
    // In two runs that are the same up to there, the second time knowing when the keeper extends.
    clock::time_point beat{};
    for (const bool known : {false, true})
    {
        simulation sim{3};
        config options = sim.options();
        options.node_timeout = 1s;
        lock_manager locks = sim.make_connected_manager(options);
        const outcome_ptr other = sim.acquire(locks, "other", {.ttl = 10s});
        const outcome_ptr got = sim.acquire_kept(locks, "stock", forever);
        REQUIRE(sim.finish(got));
        if (!known)
        {
            REQUIRE(sim.run_until([&] { return sim.master(0).count("extend") == 1; }, 5s));
            beat = sim.now();
            continue;
        }
        sim.run_until(beat - 100ms);
        for (const auto& each : sim.masters())
        {
            each->link().hold_replies();
        }
        const outcome_ptr first = sim.extend(other->lease, 10s);
        const outcome_ptr extended = sim.extend(got->lease, 20s);
        sim.run_until(beat + 1ms);
        CHECK(sim.master(0).count("extend") == 3);
        // The process reads the first answer by itself, and the other two of each master at once.
        for (const auto& each : sim.masters())
        {
            each->link().let_go_of_replies();
        }
        REQUIRE(sim.finish(extended));
        CHECK(!extended->error);
        CHECK(got->lease.valid_until() == beat - 100ms + 20s - 202ms);
    }
}

TEST_CASE("an acquire that is cancelled after any step keeps nothing", "[scenario-22]")
{
    const bool taken = GENERATE(false, true);
    const bool hung = GENERATE(false, true);
    std::size_t at = 0;
    for (bool more = true; more; ++at)
    {
        CAPTURE(at);
        simulation sim{3};
        lock_manager locks = sim.make_manager();
        if (taken)
        {
            sim.master(0).set("lock:stock", "another", 1ms);
            sim.master(1).set("lock:stock", "another", 1ms);
        }
        if (hung)
        {
            sim.master(2).hang();
        }
        const outcome_ptr got =
            sim.acquire_kept(locks, "stock", {.ttl = 60s, .max_hold = no_limit, .extend_every = 20ms});
        for (std::size_t steps = 0; steps < at; ++steps)
        {
            REQUIRE(sim.step());
        }
        more = !got->done;
        got->cancel.emit(asio::cancellation_type::terminal);
        CHECK(sim.finish(got, 0ms));
        CHECK((got->lease || got->error == asio::error::operation_aborted));
        got->lease = {};
        sim.master(2).resume();
        CHECK(sim.run_until_no_keys(2s));
        sim.run_for(200s);
        CHECK(sim.keys() == 0);
        CHECK(sim.count("extend") == 0);
    }
    CHECK(at > 30);
}

TEST_CASE("a wait for a loss ends with what happened instead")
{
    simulation sim{3};
    std::optional<lock_manager> locks{sim.make_connected_manager()};
    const bool keeps = GENERATE(false, true);
    const outcome_ptr got =
        keeps ? sim.acquire_kept(*locks, "stock", forever) : sim.acquire(*locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    const outcome_ptr watch = sim.wait_lost(got->lease);
    const outcome_ptr second = sim.wait_lost(got->lease);
    sim.run_for(1s);
    CHECK_FALSE(watch->done);
    const clock::time_point then = sim.now();
    SECTION("it was cancelled, and the other wait continues")
    {
        watch->cancel.emit(GENERATE(
            asio::cancellation_type::terminal, asio::cancellation_type::partial,
            asio::cancellation_type::total));
        sim.run_for(0ms);
        REQUIRE(watch->done);
        CHECK(watch->error == asio::error::operation_aborted);
        CHECK_FALSE(second->done);
    }
    SECTION("the lease was released")
    {
        const outcome_ptr released = sim.release(got->lease);
        sim.run_for(0ms);
        REQUIRE(watch->done);
        CHECK(watch->error == errc::not_held);
        CHECK(second->error == watch->error);
        const outcome_ptr late = sim.wait_lost(got->lease);
        REQUIRE(sim.finish(late, 0ms));
        CHECK(late->error == errc::not_held);
    }
    SECTION("the lease was destroyed")
    {
        got->lease = {};
        sim.run_for(0ms);
        REQUIRE(watch->done);
        CHECK(watch->error == errc::not_held);
        CHECK(second->error == watch->error);
    }
    SECTION("the manager was destroyed")
    {
        locks.reset();
        sim.run_for(0ms);
        REQUIRE(watch->done);
        CHECK(watch->error == asio::error::operation_aborted);
        CHECK(second->error == watch->error);
        const outcome_ptr late = sim.wait_lost(got->lease);
        REQUIRE(sim.finish(late, 0ms));
        CHECK(late->error == errc::closed);
        CHECK(got->lease.valid());
        sim.run_for(10s);
        CHECK_FALSE(got->lease.valid());
    }
    SECTION("the manager was shut down")
    {
        const outcome_ptr down = sim.shut_down(*locks);
        sim.run_for(0ms);
        REQUIRE(watch->done);
        CHECK(watch->error == (keeps ? error_code{} : error_code{errc::closed}));
        CHECK(watch->why == (keeps ? error_code{errc::closed} : error_code{}));
        CHECK_FALSE(got->lease.valid());
    }
    CHECK(watch->at == then);
}

TEST_CASE("a wait for a loss that can no longer happen ends at once")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    lease empty;
    const outcome_ptr nothing = sim.wait_lost(empty);
    REQUIRE(sim.finish(nothing, 0ms));
    CHECK(nothing->error == errc::not_held);
    const outcome_ptr got = sim.acquire_kept(locks, "stock", {.ttl = 10s, .max_hold = 1s});
    REQUIRE(sim.finish(got));
    sim.run_for(5s);
    const outcome_ptr late = sim.wait_lost(got->lease);
    REQUIRE(sim.finish(late, 0ms));
    CHECK(!late->error);
    CHECK(late->why == errc::hold_limit_reached);
}

TEST_CASE("a lease that isn't kept is lost when its validity ends, however often it is extended")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    const std::size_t extensions = GENERATE(0U, 1U, 3U);
    const outcome_ptr watch = sim.wait_lost(got->lease);
    for (std::size_t time = 0; time < extensions; ++time)
    {
        sim.run_for(7s);
        const outcome_ptr extended = sim.extend(got->lease, 20s);
        REQUIRE(sim.finish(extended));
        CHECK(!extended->error);
    }
    const clock::time_point until = got->lease.valid_until();
    REQUIRE(sim.finish(watch));
    CHECK(watch->at == until);
    CHECK(!watch->error);
    CHECK(watch->why == errc::lease_lost);
    CHECK(got->lease.valid_until() == until);
    // Denials of its masters end it, too.
    const outcome_ptr other = sim.acquire(locks, "other", {.ttl = 10s});
    REQUIRE(sim.finish(other));
    const outcome_ptr other_watch = sim.wait_lost(other->lease);
    sim.master(0).remove("lock:other");
    sim.master(1).remove("lock:other");
    const outcome_ptr extended = sim.extend(other->lease, 10s);
    REQUIRE(sim.finish(other_watch, 1s));
    CHECK(extended->error == errc::lease_lost);
    CHECK(other_watch->why == errc::lease_lost);
}

TEST_CASE("a kept lease may outlive its manager, and its execution context")
{
    const bool context = GENERATE(false, true);
    const bool manager_first = GENERATE(false, true);
    simulation sim{3};
    std::optional<lock_manager> locks{sim.make_connected_manager()};
    const outcome_ptr got = sim.acquire_kept(*locks, "stock", forever);
    REQUIRE(sim.finish(got));
    const clock::time_point until = got->lease.valid_until();
    if (manager_first)
    {
        locks.reset();
        sim.run_until_idle();
    }
    if (context)
    {
        sim.destroy_context();
    }
    locks.reset();
    CHECK(got->lease.valid_until() == until);
    got->lease = {};
    CHECK(!got->lease);
}

} // namespace redlock::test
