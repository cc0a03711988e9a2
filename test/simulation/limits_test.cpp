// SPDX-License-Identifier: BSL-1.0
// Limits on what waits: what is refused at them, and that nothing is lost.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

} // namespace

TEST_CASE("an operation more than max_operations is refused, and a release never is")
{
    simulation all{3};
    config options = all.options();
    options.max_operations = 2;
    lock_manager locks = all.make_connected_manager(options);
    const outcome_ptr held = all.acquire(locks, "r", {.ttl = 600s});
    REQUIRE(all.finish(held));
    REQUIRE(!held->error);
    const outcome_ptr first = all.acquire(locks, "a", {.ttl = 600s});
    const outcome_ptr second = all.acquire(locks, "b", {.ttl = 600s});
    const outcome_ptr third = all.acquire(locks, "c", {.ttl = 600s});
    const outcome_ptr extended = all.extend(held->lease, 700s);
    const outcome_ptr released = all.release(held->lease);
    REQUIRE(all.finish(third));
    REQUIRE(all.finish(extended));
    REQUIRE(all.finish(released));
    REQUIRE(all.finish(first));
    REQUIRE(all.finish(second));
    CHECK(third->error == errc::too_many_operations);
    CHECK(extended->error == errc::too_many_operations);
    CHECK(!released->error);
    CHECK(!first->error);
    CHECK(!second->error);
    all.run_until_idle();
    CHECK(all.master(0).count("SET") == 3);
    // There is room again.
    const outcome_ptr later = all.acquire(locks, "c", {.ttl = 600s});
    REQUIRE(all.finish(later));
    CHECK(!later->error);
}

TEST_CASE("an acquire that would exceed max_waiting_acquires ends instead")
{
    simulation all{3};
    config options = all.options();
    options.max_waiting_acquires = 1;
    lock_manager locks = all.make_connected_manager(options);
    for (std::size_t master = 0; master < 3; ++master)
    {
        all.master(master).set("lock:r", "another");
    }
    const outcome_ptr waits = all.acquire(locks, "r", {.ttl = 10s, .wait = 30s});
    all.run_for(1ms);
    const outcome_ptr refused = all.acquire(locks, "r", {.ttl = 10s, .wait = 30s});
    REQUIRE(all.finish(refused));
    CHECK(refused->error == errc::too_many_operations);
    CHECK(refused->report.count(vote::denied) >= 2);
    // What needs no pause isn't refused.
    const outcome_ptr other = all.acquire(locks, "free", {.ttl = 10s, .wait = 30s});
    REQUIRE(all.finish(other));
    CHECK(!other->error);
    for (std::size_t master = 0; master < 3; ++master)
    {
        all.master(master).remove("lock:r");
    }
    REQUIRE(all.finish(waits));
    CHECK(!waits->error);
}

TEST_CASE(
    "times at the ends of their range are refused or kept to, wherever they are given [scenario-97]",
    "[scenario-97]")
{
    using std::chrono::milliseconds;
    simulation all{3};
    lock_manager locks = all.make_connected_manager();
    const outcome_ptr held = all.acquire(locks, "held", {.ttl = 600s});
    REQUIRE(all.finish(held));
    const auto ends_with = [&](const outcome_ptr& what, errc why)
    {
        CHECK(all.finish(what));
        CHECK(what->error == why);
    };
    for (const milliseconds end : {milliseconds::min(), milliseconds::max()})
    {
        CAPTURE(end.count());
        ends_with(all.acquire(locks, "r", {.ttl = end}), errc::invalid_ttl);
        ends_with(all.try_acquire(locks, "r", {.ttl = end}), errc::invalid_ttl);
        ends_with(all.acquire_kept(locks, "r", {.ttl = end, .max_hold = 1s}), errc::invalid_ttl);
        ends_with(all.extend(held->lease, end), errc::invalid_ttl);
        ends_with(all.acquire(locks, "r", {.ttl = 10s, .min_validity = end}), errc::invalid_min_validity);
        ends_with(all.try_acquire(locks, "r", {.ttl = 10s, .min_validity = end}), errc::invalid_min_validity);
        const keep_options rarely{.ttl = 10s, .max_hold = 1s, .extend_every = end};
        ends_with(all.acquire_kept(locks, "r", rarely), errc::invalid_schedule);
        const keep_options stopping{.ttl = 10s, .max_hold = 1s, .stop_margin = end};
        ends_with(all.acquire_kept(locks, "r", stopping), errc::invalid_schedule);

        config with = all.options();
        for (auto option :
             {&config::connect_timeout, &config::probe_interval, &config::response_timeout,
              &config::reconnect_delay_min, &config::retry_delay_max})
        {
            config wrong = with;
            wrong.*option = end;
            CHECK_THROWS_AS(all.make_manager(wrong), system_error);
        }
        with.node_timeout = end;
        CHECK_THROWS_AS(all.make_manager(with), system_error);
    }
    ends_with(all.acquire(locks, "r", {.ttl = 10s, .wait = milliseconds::min()}), errc::invalid_wait);
    ends_with(
        all.acquire_kept(locks, "r", {.ttl = 10s, .max_hold = std::chrono::hours::min()}),
        errc::invalid_max_hold);
    // The longest of all are no limits.
    const outcome_ptr longest = all.acquire_kept(
        locks, "r", {.ttl = 10s, .max_hold = std::chrono::hours::max(), .wait = std::chrono::hours::max()});
    CHECK(all.finish(longest));
    CHECK(!longest->error);
    CHECK(longest->lease.valid());
}

} // namespace redlock::test
