// SPDX-License-Identifier: BSL-1.0
// Tests of the order of things in the life of one lease: extensions, release, loss, and the end of everything.
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
    racer(simulation& all, lock_manager& locks, std::size_t number) : all_{all}
    {
        const std::string resource = "r" + std::to_string(number);
        const bool kept = all.world().random_below(2) == 0;
        acquired_ =
            kept ? all.acquire_kept(locks, resource, {.ttl = 1s, .max_hold = no_limit, .extend_every = 2ms})
                 : all.acquire(locks, resource, {.ttl = 1s});
    }

    void begin()
    {
        lost_ = all_.wait_lost(acquired_->lease);
        const std::size_t extensions = all_.world().random_below(4);
        for (std::size_t time = 0; time < extensions; ++time)
        {
            at_random([this] { extended_.push_back(all_.extend(acquired_->lease, 1s)); });
        }
        const bool dropped = all_.world().random_below(4) == 0;
        at_random(
            [this, dropped]
            {
                released_ = true;
                dropped ? void(acquired_->lease = {}) : void(release_ = all_.release(acquired_->lease));
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
        const std::chrono::nanoseconds pause{all_.world().random_below(4'000'000)};
        all_.world().at(all_.now() + pause, event_kind::timer, std::move(what));
    }

    simulation& all_;
    outcome_ptr acquired_;
    outcome_ptr lost_;
    outcome_ptr release_;
    std::vector<outcome_ptr> extended_;
    bool released_ = false;
};

/// How many commands came after the release of their lease.
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
    simulation all{3, static_cast<std::uint64_t>(part) + 1};
    std::size_t losses = 0;
    config options = all.options();
    options.observer.max_waiting = 100'000;
    options.observer.on_event = [&losses](const event& what)
    { losses += std::holds_alternative<lease_lost>(what) ? 1U : 0U; };
    lock_manager locks = all.make_connected_manager(options);
    for (const auto& each : all.masters())
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
            racers.emplace_back(all, locks, number);
        }
        all.run_for(10ms);
        for (racer& each : racers)
        {
            REQUIRE(each.acquired());
            each.begin();
        }
        all.run_for(20ms);
        std::size_t fine = 0;
        for (const racer& each : racers)
        {
            fine += each.done() && each.is_fine() ? 1U : 0U;
        }
        CHECK(fine == at_once);
        REQUIRE(all.keys() == 0);
        extensions += all.count("extend");
        for (const auto& each : all.masters())
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
        simulation all{3};
        config options = all.options();
        options.node_timeout = 1s;
        lock_manager locks = all.make_connected_manager(options);
        const outcome_ptr other = all.acquire(locks, "other", {.ttl = 10s});
        const outcome_ptr got = all.acquire_kept(locks, "r", forever);
        REQUIRE(all.finish(got));
        if (!known)
        {
            REQUIRE(all.run_until([&] { return all.master(0).count("extend") == 1; }, 5s));
            beat = all.now();
            continue;
        }
        all.run_until(beat - 100ms);
        for (const auto& each : all.masters())
        {
            each->link().hold_replies();
        }
        const outcome_ptr first = all.extend(other->lease, 10s);
        const outcome_ptr extended = all.extend(got->lease, 20s);
        all.run_until(beat + 1ms);
        CHECK(all.master(0).count("extend") == 3);
        // The process reads the first answer by itself, and the other two of each master at once.
        for (const auto& each : all.masters())
        {
            each->link().let_go_of_replies();
        }
        REQUIRE(all.finish(extended));
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
        simulation all{3};
        lock_manager locks = all.make_manager();
        if (taken)
        {
            all.master(0).set("lock:r", "another", 1ms);
            all.master(1).set("lock:r", "another", 1ms);
        }
        if (hung)
        {
            all.master(2).hang();
        }
        const outcome_ptr got =
            all.acquire_kept(locks, "r", {.ttl = 60s, .max_hold = no_limit, .extend_every = 20ms});
        for (std::size_t steps = 0; steps < at; ++steps)
        {
            REQUIRE(all.step());
        }
        more = !got->done;
        got->cancel.emit(asio::cancellation_type::terminal);
        CHECK(all.finish(got, 0ms));
        CHECK((got->lease || got->error == asio::error::operation_aborted));
        got->lease = {};
        all.master(2).resume();
        CHECK(all.run_until_no_keys(2s));
        all.run_for(200s);
        CHECK(all.keys() == 0);
        CHECK(all.count("extend") == 0);
    }
    CHECK(at > 30);
}

TEST_CASE("a wait for a loss ends with what came instead")
{
    simulation all{3};
    std::optional<lock_manager> locks{all.make_connected_manager()};
    const bool keeps = GENERATE(false, true);
    const outcome_ptr got =
        keeps ? all.acquire_kept(*locks, "r", forever) : all.acquire(*locks, "r", {.ttl = 10s});
    REQUIRE(all.finish(got));
    const outcome_ptr watch = all.wait_lost(got->lease);
    const outcome_ptr second = all.wait_lost(got->lease);
    all.run_for(1s);
    CHECK_FALSE(watch->done);
    const clock::time_point then = all.now();
    SECTION("it was cancelled, and the other one waits on")
    {
        watch->cancel.emit(GENERATE(
            asio::cancellation_type::terminal, asio::cancellation_type::partial,
            asio::cancellation_type::total));
        all.run_for(0ms);
        REQUIRE(watch->done);
        CHECK(watch->error == asio::error::operation_aborted);
        CHECK_FALSE(second->done);
    }
    SECTION("the lease was released")
    {
        const outcome_ptr released = all.release(got->lease);
        all.run_for(0ms);
        REQUIRE(watch->done);
        CHECK(watch->error == errc::not_held);
        CHECK(second->error == watch->error);
        const outcome_ptr late = all.wait_lost(got->lease);
        REQUIRE(all.finish(late, 0ms));
        CHECK(late->error == errc::not_held);
    }
    SECTION("the lease went")
    {
        got->lease = {};
        all.run_for(0ms);
        REQUIRE(watch->done);
        CHECK(watch->error == errc::not_held);
        CHECK(second->error == watch->error);
    }
    SECTION("the manager went")
    {
        locks.reset();
        all.run_for(0ms);
        REQUIRE(watch->done);
        CHECK(watch->error == asio::error::operation_aborted);
        CHECK(second->error == watch->error);
        const outcome_ptr late = all.wait_lost(got->lease);
        REQUIRE(all.finish(late, 0ms));
        CHECK(late->error == errc::closed);
        CHECK(got->lease.valid());
        all.run_for(10s);
        CHECK_FALSE(got->lease.valid());
    }
    SECTION("the manager was shut down")
    {
        const outcome_ptr down = all.shut_down(*locks);
        all.run_for(0ms);
        REQUIRE(watch->done);
        CHECK(watch->error == (keeps ? error_code{} : error_code{errc::closed}));
        CHECK(watch->why == (keeps ? error_code{errc::closed} : error_code{}));
        CHECK_FALSE(got->lease.valid());
    }
    CHECK(watch->at == then);
}

TEST_CASE("a wait for a loss that can't happen any more ends at once")
{
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    lease empty;
    const outcome_ptr nothing = all.wait_lost(empty);
    REQUIRE(all.finish(nothing, 0ms));
    CHECK(nothing->error == errc::not_held);
    const outcome_ptr got = all.acquire_kept(locks, "r", {.ttl = 10s, .max_hold = 1s});
    REQUIRE(all.finish(got));
    all.run_for(5s);
    const outcome_ptr late = all.wait_lost(got->lease);
    REQUIRE(all.finish(late, 0ms));
    CHECK(!late->error);
    CHECK(late->why == errc::hold_limit_reached);
}

TEST_CASE("a lease that isn't kept is lost when its validity ends, however often that moves")
{
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    const outcome_ptr got = all.acquire(locks, "r", {.ttl = 10s});
    REQUIRE(all.finish(got));
    const std::size_t extensions = GENERATE(0U, 1U, 3U);
    const outcome_ptr watch = all.wait_lost(got->lease);
    for (std::size_t time = 0; time < extensions; ++time)
    {
        all.run_for(7s);
        const outcome_ptr extended = all.extend(got->lease, 20s);
        REQUIRE(all.finish(extended));
        CHECK(!extended->error);
    }
    const clock::time_point until = got->lease.valid_until();
    REQUIRE(all.finish(watch));
    CHECK(watch->at == until);
    CHECK(!watch->error);
    CHECK(watch->why == errc::lease_lost);
    CHECK(got->lease.valid_until() == until);
    // Its masters' word ends it, too.
    const outcome_ptr other = all.acquire(locks, "other", {.ttl = 10s});
    REQUIRE(all.finish(other));
    const outcome_ptr other_watch = all.wait_lost(other->lease);
    all.master(0).remove("lock:other");
    all.master(1).remove("lock:other");
    const outcome_ptr extended = all.extend(other->lease, 10s);
    REQUIRE(all.finish(other_watch, 1s));
    CHECK(extended->error == errc::lease_lost);
    CHECK(other_watch->why == errc::lease_lost);
}

TEST_CASE("a kept lease may outlive its manager, and its execution context")
{
    const bool context = GENERATE(false, true);
    const bool manager_first = GENERATE(false, true);
    simulation all{3};
    std::optional<lock_manager> locks{all.make_connected_manager()};
    const outcome_ptr got = all.acquire_kept(*locks, "r", forever);
    REQUIRE(all.finish(got));
    const clock::time_point until = got->lease.valid_until();
    if (manager_first)
    {
        locks.reset();
        all.run_until_idle();
    }
    if (context)
    {
        all.destroy_context();
    }
    locks.reset();
    CHECK(got->lease.valid_until() == until);
    got->lease = {};
    CHECK(!got->lease);
}

} // namespace redlock::test
