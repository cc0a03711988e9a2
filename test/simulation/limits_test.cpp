// SPDX-License-Identifier: BSL-1.0
// Tests of limits: what is refused at them, and that nothing is lost.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

} // namespace

TEST_CASE("an operation more than max_operations is refused, and a release never is")
{
    simulation sim{3};
    config options = sim.options();
    options.max_operations = 2;
    lock_manager locks = sim.make_connected_manager(options);
    const outcome_ptr held = sim.acquire(locks, "stock", {.ttl = 600s});
    REQUIRE(sim.finish(held));
    REQUIRE(!held->error);
    const outcome_ptr first = sim.acquire(locks, "a", {.ttl = 600s});
    const outcome_ptr second = sim.acquire(locks, "b", {.ttl = 600s});
    const outcome_ptr third = sim.acquire(locks, "c", {.ttl = 600s});
    const outcome_ptr extended = sim.extend(held->lease, 700s);
    const outcome_ptr released = sim.release(held->lease);
    REQUIRE(sim.finish(third));
    REQUIRE(sim.finish(extended));
    REQUIRE(sim.finish(released));
    REQUIRE(sim.finish(first));
    REQUIRE(sim.finish(second));
    CHECK(third->error == errc::too_many_operations);
    CHECK(extended->error == errc::too_many_operations);
    CHECK(!released->error);
    CHECK(!first->error);
    CHECK(!second->error);
    sim.run_until_idle();
    CHECK(sim.master(0).count("SET") == 3);
    // There is room again.
    const outcome_ptr later = sim.acquire(locks, "c", {.ttl = 600s});
    REQUIRE(sim.finish(later));
    CHECK(!later->error);
}

TEST_CASE("an acquire that would exceed max_waiting_acquires ends instead")
{
    simulation sim{3};
    config options = sim.options();
    options.max_waiting_acquires = 1;
    lock_manager locks = sim.make_connected_manager(options);
    for (std::size_t master = 0; master < 3; ++master)
    {
        sim.master(master).set("lock:stock", "another");
    }
    const outcome_ptr waits = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 30s});
    sim.run_for(1ms);
    const outcome_ptr refused = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 30s});
    REQUIRE(sim.finish(refused));
    CHECK(refused->error == errc::too_many_operations);
    CHECK(refused->report.count(vote::denied) >= 2);
    // An acquire without a pause isn't refused.
    const outcome_ptr other = sim.acquire(locks, "free", {.ttl = 10s, .wait = 30s});
    REQUIRE(sim.finish(other));
    CHECK(!other->error);
    for (std::size_t master = 0; master < 3; ++master)
    {
        sim.master(master).remove("lock:stock");
    }
    REQUIRE(sim.finish(waits));
    CHECK(!waits->error);
}

TEST_CASE(
    "times at the ends of their range are refused or kept to, wherever they are given [scenario-97]",
    "[scenario-97]")
{
    using std::chrono::milliseconds;
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr held = sim.acquire(locks, "held", {.ttl = 600s});
    REQUIRE(sim.finish(held));
    const auto ends_with = [&](const outcome_ptr& what, errc why)
    {
        CHECK(sim.finish(what));
        CHECK(what->error == why);
    };
    for (const milliseconds end : {milliseconds::min(), milliseconds::max()})
    {
        CAPTURE(end.count());
        ends_with(sim.acquire(locks, "stock", {.ttl = end}), errc::invalid_ttl);
        ends_with(sim.try_acquire(locks, "stock", {.ttl = end}), errc::invalid_ttl);
        ends_with(sim.acquire_kept(locks, "stock", {.ttl = end, .max_hold = 1s}), errc::invalid_ttl);
        ends_with(sim.extend(held->lease, end), errc::invalid_ttl);
        ends_with(sim.acquire(locks, "stock", {.ttl = 10s, .min_validity = end}), errc::invalid_min_validity);
        ends_with(
            sim.try_acquire(locks, "stock", {.ttl = 10s, .min_validity = end}), errc::invalid_min_validity);
        const keep_options fresh{.ttl = 10s, .max_hold = 1s, .min_validity = end};
        ends_with(sim.acquire_kept(locks, "stock", fresh), errc::invalid_min_validity);
        const keep_options rarely{.ttl = 10s, .max_hold = 1s, .extend_every = end};
        ends_with(sim.acquire_kept(locks, "stock", rarely), errc::invalid_schedule);
        const keep_options stopping{.ttl = 10s, .max_hold = 1s, .stop_margin = end};
        ends_with(sim.acquire_kept(locks, "stock", stopping), errc::invalid_schedule);

        config with = sim.options();
        for (auto option :
             {&config::connect_timeout, &config::probe_interval, &config::response_timeout,
              &config::reconnect_delay_min, &config::retry_delay_max})
        {
            config wrong = with;
            wrong.*option = end;
            CHECK_THROWS_AS(sim.make_manager(wrong), system_error);
        }
        with.node_timeout = end;
        CHECK_THROWS_AS(sim.make_manager(with), system_error);
    }
    ends_with(sim.acquire(locks, "stock", {.ttl = 10s, .wait = milliseconds::min()}), errc::invalid_wait);
    ends_with(
        sim.acquire_kept(locks, "stock", {.ttl = 10s, .max_hold = std::chrono::hours::min()}),
        errc::invalid_max_hold);
    // The longest of all are no limits.
    const outcome_ptr longest = sim.acquire_kept(
        locks, "stock",
        {.ttl = 10s, .max_hold = std::chrono::hours::max(), .wait = std::chrono::hours::max()});
    CHECK(sim.finish(longest));
    CHECK(!longest->error);
    CHECK(longest->lease.valid());
}

TEST_CASE("at the smallest limit of outstanding keys, probes leave room for an extension", "[scenario-61]")
{
    simulation sim{3};
    config options = sim.options();
    options.max_outstanding_keys = 1;
    options.response_timeout = 10s;
    lock_manager locks = sim.make_connected_manager(options);
    sim.master(0).hang();
    const outcome_ptr held = sim.acquire(locks, "stock", {.ttl = 600s});
    REQUIRE(sim.finish(held));
    REQUIRE(!held->error);
    sim.run_for(3 * options.probe_interval); // A probe follows the SET that isn't answered.
    const outcome_ptr extended = sim.extend(held->lease, 700s);
    REQUIRE(sim.finish(extended));
    CHECK(!extended->error);
    CHECK(extended->report.masters()[0].vote == vote::pending);
}

TEST_CASE("a release that finds no room for a command says so, and nothing of an earlier failure", "[report]")
{
    simulation sim{3};
    // The first handshake fails with a text.
    sim.master(0).answer("HELLO", {.bytes = "-LOADING the dataset is being loaded\r\n"});
    config options = sim.options();
    options.max_outstanding_keys = 2;
    options.response_timeout = 10s;
    lock_manager locks = sim.make_connected_manager(options);
    sim.run_for(1s);
    REQUIRE(sim.master(0).count("INFO") > 0);
    sim.master(0).hang();
    // Eight commands of two leases, and only the keys have room beyond them.
    std::vector<outcome_ptr> held;
    for (const char* const resource : {"a", "b"})
    {
        held.push_back(sim.acquire(locks, resource, {.ttl = 600s}));
        REQUIRE(sim.finish(held.back()));
        REQUIRE(!held.back()->error);
        for (const std::chrono::seconds longer : {700s, 800s, 900s})
        {
            REQUIRE(sim.finish(sim.extend(held.back()->lease, longer)));
        }
    }
    REQUIRE(sim.finish(sim.release(held.back()->lease)));
    const outcome_ptr third = sim.acquire(locks, "c", {.ttl = 600s});
    REQUIRE(sim.finish(third));
    REQUIRE(!third->error);
    const outcome_ptr released = sim.release(third->lease);
    REQUIRE(sim.finish(released));
    for (const outcome_ptr& each : {third, released})
    {
        const master_report& full = each->report.masters()[0];
        CHECK(full.vote == vote::unsent);
        CHECK(full.reason == master_errc::too_many_outstanding_keys);
        CHECK(full.detail.view().empty());
    }
    sim.master(0).resume();
}

} // namespace redlock::test
