// SPDX-License-Identifier: BSL-1.0
// Tests of releases: of one lease, of all leases at a shutdown, and of leases that are dropped.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

/// A manager with this many leases.
struct crowded_manager
{
    crowded_manager(simulation& sim, std::size_t leases) : crowded_manager{sim, leases, sim.options()} {}
    crowded_manager(simulation& sim, std::size_t leases, config options)
        : locks{sim.make_connected_manager(options_for(std::move(options), leases))}
    {
        for (std::size_t number = 0; number < leases; ++number)
        {
            held.push_back(sim.acquire(locks, "stock" + std::to_string(number), {.ttl = 600s}));
        }
        for (const outcome_ptr& each : held)
        {
            REQUIRE(sim.finish(each));
            REQUIRE(!each->error);
        }
        sim.run_until_idle();
    }

    static config options_for(config options, std::size_t leases)
    {
        options.max_operations = leases;
        return options;
    }

    lock_manager locks;
    std::vector<outcome_ptr> held;
};

outcome_ptr granted(simulation& sim, lock_manager& locks, const std::string& resource)
{
    const outcome_ptr got = sim.acquire(locks, resource, {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    REQUIRE(!got->error);
    return got;
}

/// Destroys a manager with its lease while a master refuses releases for now.
void end_while_busy(simulation& sim)
{
    std::optional<lock_manager> locks{sim.make_connected_manager()};
    const outcome_ptr got = granted(sim, *locks, "stock");
    sim.run_until_idle();
    sim.master(0).refuse("release", "-BUSY Redis is busy running a script\r\n");
    got->lease = {};
    locks.reset();
}

} // namespace

TEST_CASE("a release is done with a quorum, and reports whether the key existed")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = granted(sim, locks, "stock");
    sim.run_until_idle();
    sim.master(3).hang();
    sim.master(4).network = {.there = 7ms, .back = 0ms};
    const bool gone = GENERATE(false, true);
    for (const std::size_t without : {0U, 1U, 2U})
    {
        gone ? sim.master(without).remove("lock:stock") : void();
    }
    const clock::time_point began = sim.now();
    const outcome_ptr released = sim.release(got->lease);
    // Not valid before the first byte is out.
    sim.step();
    CHECK_FALSE(got->lease.valid());
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    CHECK(released->at - began == 200us);
    CHECK(released->report.already_gone() == gone);
    sim.master(3).resume();
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a release that no quorum confirms in time fails, and is completed later", "[scenario-23]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = granted(sim, locks, "stock");
    sim.run_until_idle();
    sim.master(1).hang();
    sim.master(2).door = entrance::refuses;
    sim.master(2).break_connections();
    sim.run_until_idle();
    const clock::time_point began = sim.now();
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(released->error == errc::unconfirmed);
    CHECK(released->at - began == 50ms);
    CHECK(released->report.count(vote::granted) == 1);
    CHECK(released->report.count(vote::timed_out) == 1);
    CHECK(released->report.count(vote::unsent) == 1);
    sim.run_for(10s);
    sim.master(1).resume();
    sim.master(2).door = entrance::open;
    CHECK(sim.run_until_no_keys(1s));
}

TEST_CASE("a release continues without its caller", "[scenario-21]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = granted(sim, locks, "stock");
    const outcome_ptr released = sim.release(got->lease);
    SECTION("cancelled before anything happened")
    {
        released->cancel.emit(asio::cancellation_type::terminal);
    }
    SECTION("cancelled while in flight")
    {
        sim.step();
        released->cancel.emit(asio::cancellation_type::partial);
    }
    SECTION("the lease is dropped meanwhile")
    {
        got->lease = {};
    }
    REQUIRE(sim.finish(released));
    CHECK((!released->error || released->error == asio::error::operation_aborted));
    CHECK(sim.run_until_no_keys());
    CHECK(sim.master(0).count("release") == 1);
}

TEST_CASE("a shutdown knows how a release ended whose caller waits no longer", "[shutdown]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = granted(sim, locks, "stock");
    const bool hang = GENERATE(false, true);
    const bool is_first = GENERATE(false, true);
    CAPTURE(hang, is_first);
    for (const auto& each : sim.masters())
    {
        each->network.back = 5ms;
    }
    if (hang)
    {
        sim.master(1).hang();
        sim.master(2).hang();
    }
    const outcome_ptr released = sim.release(got->lease);
    sim.run_for(1ms);
    outcome_ptr down = is_first ? sim.shut_down(locks) : nullptr;
    released->cancel.emit(asio::cancellation_type::terminal);
    sim.run_for(1ms);
    CHECK(released->done);
    CHECK(released->error == asio::error::operation_aborted);
    down = is_first ? down : sim.shut_down(locks);
    REQUIRE(sim.finish(down, 1min));
    CHECK(down->error == (hang ? error_code{errc::unconfirmed} : error_code{}));
}

TEST_CASE("a lease that is dropped is released")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = granted(sim, locks, "stock");
    const outcome_ptr other = granted(sim, locks, "other");
    got->lease = std::move(other->lease);
    CHECK(got->lease.resource() == "other");
    CHECK(!other->lease);
    sim.run_until_idle();
    CHECK(sim.keys() == 3);
    got->lease = {};
    CHECK(sim.run_until_no_keys());
}

TEST_CASE(
    "a release that was begun, or a lease that was dropped, isn't lost with the manager",
    "[release][scenario-111]")
{
    simulation sim{3};
    lock_manager rival = sim.make_connected_manager();
    const outcome_ptr held = granted(sim, rival, "other");
    std::optional<lock_manager> locks{sim.make_connected_manager()};
    const outcome_ptr got = granted(sim, *locks, "stock");
    const bool waits = GENERATE(false, true); // Another operation has work in the same step.
    const bool drops = GENERATE(false, true);
    const outcome_ptr wait = waits ? sim.acquire(*locks, "other", {.ttl = 60s, .wait = no_limit}) : nullptr;
    sim.run_for(5ms);
    const outcome_ptr released = drops ? nullptr : sim.release(got->lease);
    got->lease = {};
    locks.reset();
    sim.run_for(1s);
    for (const auto& each : sim.masters())
    {
        CHECK(!each->value("lock:stock"));
    }
}

TEST_CASE("many releases that were begun aren't lost with their manager", "[release][scenario-111]")
{
    constexpr std::size_t many = 300; // More than a batch of releases that are due.
    const std::string name(400, 'x');
    simulation sim{3};
    config options = sim.options();
    // The output has room for few releases, so the others become due.
    const bool is_narrow = GENERATE(false, true);
    options.max_write_queue_bytes = is_narrow ? 64 * 1024 : options.max_write_queue_bytes;
    for (const auto& each : sim.masters())
    {
        each->network.close_resets = true;
    }
    std::optional<lock_manager> locks{sim.make_connected_manager(options)};
    std::vector<outcome_ptr> held;
    for (std::size_t number = 0; number < many; ++number)
    {
        held.push_back(granted(sim, *locks, name + std::to_string(number)));
    }
    sim.run_until_idle();
    CHECK(sim.keys() == 3 * many);
    const bool is_full = GENERATE(false, true); // The buffers of the system are.
    sim.master(0).takes_bytes = !is_full;
    const bool drops = GENERATE(false, true);
    for (const outcome_ptr& each : held)
    {
        const outcome_ptr released = drops ? nullptr : sim.release(each->lease);
        each->lease = {};
    }
    locks.reset();
    sim.run_for(100ms);
    sim.master(0).heal();
    CHECK(sim.run_until_no_keys(100ms));
    sim.run_until_idle();
    CHECK(sim.environment().streams() == 0);
}

TEST_CASE("an acquire that ends with its manager leaves no key", "[release][scenario-111]")
{
    simulation sim{3};
    for (const auto& each : sim.masters())
    {
        each->network.close_resets = true;
    }
    std::optional<lock_manager> locks{sim.make_connected_manager()};
    const outcome_ptr got = sim.acquire(*locks, "stock", {.ttl = 60s});
    sim.run_for(GENERATE(0us, 50us, 150us));
    locks.reset();
    sim.run_for(1s);
    REQUIRE(got->done);
    CHECK((got->error || got->lease));
    got->lease = {};
    CHECK(sim.keys() == 0);
}

TEST_CASE("many acquires that end with their manager leave no key on masters that are far away", "[release]")
{
    // With a batch for each round trip, they would need more than the response timeout.
    constexpr std::size_t many = 800;
    simulation sim{3};
    std::optional<lock_manager> locks{sim.make_connected_manager()};
    for (const auto& each : sim.masters())
    {
        each->network = {.there = 90ms, .back = 90ms, .close_resets = true};
    }
    std::vector<outcome_ptr> begun;
    for (std::size_t number = 0; number < many; ++number)
    {
        begun.push_back(sim.acquire(*locks, "stock-" + std::to_string(number), {.ttl = 60s}));
    }
    sim.run_for(10ms);
    locks.reset();
    sim.run_for(2s);
    CHECK(sim.count("SET") == 3 * many);
    CHECK(sim.keys() == 0);
}

TEST_CASE("acquires that end with their manager leave the queue", "[release][queue]")
{
    simulation sim{3};
    lock_manager holder = sim.make_connected_manager();
    const outcome_ptr held = granted(sim, holder, "stock");
    std::optional<lock_manager> ending{sim.make_connected_manager()};
    std::vector<outcome_ptr> waits;
    for (int number = 0; number < 150; ++number) // A call serves 100 clients without a receiver at most.
    {
        waits.push_back(sim.acquire(*ending, "stock", {.ttl = 60s, .wait = no_limit}));
    }
    sim.run_for(5ms);
    ending.reset();
    sim.run_for(5ms);
    for (const auto& each : sim.masters())
    {
        CHECK(each->queue_key_count() == 0);
    }
}

TEST_CASE("releases that were refused for now are repeated before a connection is closed", "[release]")
{
    simulation sim{3};
    end_while_busy(sim);
    sim.run_for(400ms);
    CHECK(sim.keys() == 1);
    sim.master(0).answer_as_usual();
    sim.run_for(2s);
    CHECK(sim.keys() == 0);
    CHECK(sim.environment().streams() == 0);
}

TEST_CASE("a connection that is stopped tries refused releases until its end", "[release]")
{
    for (std::uint64_t seed = 1; seed <= 50; ++seed)
    {
        CAPTURE(seed);
        simulation sim{3, seed};
        end_while_busy(sim);
        sim.run_for(sim.options().response_timeout - 20ms);
        REQUIRE(sim.keys() == 1);
        sim.master(0).answer_as_usual();
        sim.run_for(20ms);
        CHECK(sim.keys() == 0);
    }
}

TEST_CASE("a lease isn't extended once its manager was destroyed", "[release]")
{
    simulation sim{3};
    config options = sim.options();
    options.response_timeout = 10s;
    std::vector<std::string> events;
    options.observer.on_event = [&](const event& what)
    {
        const auto* const decided = std::get_if<round_decided>(&what);
        events.push_back(decided != nullptr ? "round of " + decided->resource : "");
        events.back() += std::holds_alternative<lease_lost>(what) ? "lost" : "";
    };
    std::optional<lock_manager> locks{sim.make_connected_manager(options)};
    const outcome_ptr kept = sim.acquire_kept(*locks, "stock", {.ttl = 3s, .max_hold = no_limit});
    REQUIRE(sim.finish(kept));
    const outcome_ptr other = granted(sim, *locks, "other");
    const std::size_t before = sim.count("extend");
    sim.master(0).hang(); // Which keeps the manager.
    sim.master(1).network.back = sim.master(2).network.back = 20ms;
    REQUIRE(sim.run_until([&] { return sim.count("extend") > before; }, 10s));
    other->lease = {};
    locks.reset();
    sim.run_for(100ms);
    const std::size_t extensions = sim.count("extend");
    events.clear();
    sim.run_for(20s);
    CHECK(sim.count("extend") == extensions);
    for (const std::string& each : events)
    {
        CHECK(each != "round of stock");
        CHECK(each != "lost");
    }
}

TEST_CASE(
    "a master that doesn't answer keeps a manager that was destroyed for the response timeout", "[release]")
{
    simulation sim{3};
    config options = sim.options();
    std::optional<lock_manager> locks{sim.make_connected_manager(options)};
    const outcome_ptr got = granted(sim, *locks, "stock");
    sim.run_until_idle();
    sim.master(0).hang();
    const bool releases = GENERATE(true, false); // Otherwise nothing keeps it.
    if (releases)
    {
        got->lease = {};
    }
    locks.reset();
    sim.run_for(options.response_timeout / 2);
    CHECK(sim.environment().streams() == (releases ? 1 : 0));
    sim.run_for(options.response_timeout / 2);
    CHECK(sim.environment().streams() == 0);
}

TEST_CASE("a release or an extension of an empty lease fails with an error")
{
    simulation sim{3};
    lease empty;
    for (const outcome_ptr& each : {sim.release(empty), sim.extend(empty, 10s)})
    {
        REQUIRE(sim.finish(each, 0ms));
        CHECK(each->error == errc::not_held);
    }
}

TEST_CASE("a shutdown of many leases takes no longer than a few round trips", "[shutdown]")
{
    constexpr clock::duration round_trip = 200us;
    simulation sim{3};
    crowded_manager all{sim, 300};
    const clock::time_point began = sim.now();
    const outcome_ptr ended = sim.shut_down(all.locks);
    REQUIRE(sim.finish(ended));
    CHECK(!ended->error);
    CHECK(ended->at - began <= 10 * round_trip);
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a shutdown of many leases is bounded, however slowly the masters answer", "[shutdown]")
{
    simulation sim{3};
    config options = sim.options();
    options.response_timeout = 100ms;
    options.node_timeout = 1s;
    crowded_manager all{sim, 12'000, options}; // In batches of 512.
    for (const auto& each : sim.masters())
    {
        each->network = {.there = 45ms, .back = 45ms};
    }
    const clock::time_point began = sim.now();
    const outcome_ptr ended = sim.shut_down(all.locks);
    const bool hangs = GENERATE(false, true);
    if (hangs)
    {
        sim.run_for(9 * options.response_timeout);
        sim.master(0).hang();
        sim.master(1).hang();
    }
    REQUIRE(sim.finish(ended));
    CHECK(ended->at - began <= 11 * options.response_timeout);
    CHECK(ended->error == (hangs ? error_code{errc::unconfirmed} : error_code{}));
}

TEST_CASE("a shutdown of many leases can be cancelled at once, and continues", "[shutdown]")
{
    simulation sim{1};
    crowded_manager all{sim, 600}; // More than are released concurrently.
    sim.master(0).hang();
    const outcome_ptr ended = sim.shut_down(all.locks);
    sim.run_for(1ms);
    REQUIRE_FALSE(ended->done);
    ended->cancel.emit(boost::asio::cancellation_type::terminal);
    sim.run_for(1us);
    REQUIRE(ended->done);
    CHECK(ended->error == boost::asio::error::operation_aborted);
    sim.master(0).resume();
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("a shutdown releases all leases and waits for connected masters, not for those that hang")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr one = granted(sim, locks, "one");
    const outcome_ptr two = granted(sim, locks, "two");
    sim.run_until_idle();
    const std::size_t hung = GENERATE(0U, 1U, 2U);
    for (std::size_t index = 0; index < hung; ++index)
    {
        sim.master(index).hang();
    }
    const clock::time_point began = sim.now();
    const outcome_ptr down = sim.shut_down(locks);
    REQUIRE(sim.finish(down));
    CHECK(down->error == (hung < 2 ? error_code{} : error_code{errc::unconfirmed}));
    CHECK(down->at - began <= (hung == 0 ? 1ms : 1s + 5ms));
    CHECK_FALSE(one->lease.valid());
    CHECK_FALSE(two->lease.valid());
    // The other masters run their releases when they resume, because these were written before the end.
    for (const auto& each : sim.masters())
    {
        each->resume();
    }
    sim.run_until_idle();
    CHECK(sim.keys() == 0);
    for (const auto& each : sim.masters())
    {
        CHECK(each->clients() == 0);
    }
}

TEST_CASE("a master that hangs is sent at most max_outstanding_keys SETs", "[scenario-61]")
{
    simulation sim{3};
    config options = sim.options();
    options.max_outstanding_keys = 50;
    lock_manager locks = sim.make_connected_manager(options);
    sim_master& master = sim.master(0);
    master.hang();
    std::size_t refused = 0;
    for (int count = 0; count < 500; ++count)
    {
        const outcome_ptr got = granted(sim, locks, "stock");
        refused += got->report.masters()[0].reason == master_errc::too_many_outstanding_keys ? 1U : 0U;
        const outcome_ptr released = sim.release(got->lease);
        REQUIRE(sim.finish(released));
        REQUIRE(!released->error);
    }
    CHECK(refused == 450);
    master.resume();
    sim.run_until_idle();
    CHECK(master.count("HELLO") == 1);
    CHECK(master.count("SET") == 50);
    CHECK(master.count("release") >= 50);
    CHECK(master.count("release") <= 150);
    CHECK(sim.keys() == 0);
}

TEST_CASE("a lease that is moved to itself is still held, and one that is replaced is released")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr first = sim.acquire(locks, "first", {.ttl = 10s});
    const outcome_ptr second = sim.acquire(locks, "second", {.ttl = 10s});
    REQUIRE(sim.finish(first));
    REQUIRE(sim.finish(second));
    redlock::lease& same = first->lease;
    first->lease = std::move(same);
    sim.run_for(1s);
    CHECK(first->lease.valid());
    CHECK(first->lease.resource() == "first");
    CHECK(sim.keys() == 6);
    first->lease = std::move(second->lease);
    sim.run_for(1s);
    CHECK(first->lease.resource() == "second");
    CHECK(sim.keys() == 3);
}

} // namespace redlock::test
