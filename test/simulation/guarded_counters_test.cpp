// SPDX-License-Identifier: BSL-1.0
// Tests of guarded mode: what changes a counter, what it is compared with, and who may use it.
#include "guarded_group.hpp"
#include "waiting_clients.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <string>

namespace redlock::test
{

namespace
{

constexpr acquire_options one_try{.ttl = 5s, .wait = 0ms};

/// Returns whether it is a release of a client that leaves its queue.
bool leaves_queue(const received& command)
{
    // After the script, the number of keys, the key, the owner id and the grace.
    constexpr std::size_t mode = 6;
    return command.what == "release" && command.words.size() > mode + 1 && command.words[mode] == "left";
}

/// Drops a lease for which a client waits. Returns after which time the client has it.
clock::duration hand_over(simulation& sim, outcome& held, const outcome_ptr& waits)
{
    held.lease = {};
    const clock::time_point freed = sim.now();
    REQUIRE(sim.finish(waits));
    REQUIRE(!waits->error);
    return waits->at - freed;
}

} // namespace

TEST_CASE("guarded: a raise leaves a counter that another resource of its slot has raised more", "[guarded]")
{
    guarded_simulation test{3};
    const std::uint64_t ahead = test.shown(0) + 1'000'000'000;
    for (std::size_t index = 0; index < 3; ++index)
    {
        test.group.put_counter(index, "stock", ahead + 10 * index);
    }
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr got = test.sim.acquire(locks, "stock", one_try);
    REQUIRE(test.sim.run_until([&] { return test.sim.master(0).value("lock:stock").has_value(); }, 1s));
    test.group.put_counter(0, "stock", 2 * ahead);
    REQUIRE(test.sim.finish(got));
    test.sim.run_until_idle();
    CHECK(!got->error);
    CHECK(test.sim.master(0).count("raise") == 1);
    CHECK(test.group.counter(0, "stock") == 2 * ahead);
}

TEST_CASE(
    "guarded: a raise needs the key, the marker and the incarnation of the grant", "[guarded][scenario-77]")
{
    guarded_simulation test{3};
    const std::uint64_t ahead = test.shown(0) + 1'000'000'000;
    test.group.put_counter(0, "stock", ahead);
    test.group.put_counter(1, "stock", ahead + 10);
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(2).hang();
    const outcome_ptr got = test.sim.acquire(locks, "stock", one_try);
    REQUIRE(test.sim.run_until([&] { return test.sim.master(0).value("lock:stock").has_value(); }, 1s));
    switch (GENERATE(0, 1, 2, 3))
    {
    case 0:
        test.sim.master(0).set("lock:stock", "another owner", 5s);
        break;
    case 1:
        test.sim.master(0).remove("lock:stock");
        break;
    case 2:
        test.sim.master(0).remove(guard_key);
        break;
    default:
        test.sim.master(0).lose_writes_of(0ms); // Promoted, with the same key and marker.
        break;
    }
    REQUIRE(test.sim.finish(got));
    CHECK(test.sim.master(0).count("raise") == 1);
    CHECK(got->error == errc::no_quorum);
    CHECK(got->report.masters()[0].vote == vote::failed);
    CHECK(test.group.counter(0, "stock") == ahead + 1);
}

TEST_CASE("guarded: grants that come after the release are not raised", "[guarded]")
{
    guarded_simulation test{3};
    const std::uint64_t ahead = test.shown(0) + 1'000'000'000;
    for (std::size_t index = 0; index < 3; ++index)
    {
        test.group.put_counter(index, "stock", ahead + 10 * index);
        test.sim.master(index).network.back = 10ms;
    }
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr got = test.sim.acquire(locks, "stock", one_try);
    REQUIRE(test.sim.run_until([&] { return test.sim.count("acquire") == 3; }, 1s));
    got->cancel.emit(asio::cancellation_type::terminal);
    REQUIRE(test.sim.finish(got));
    test.sim.run_until_idle();
    CHECK(got->error == asio::error::operation_aborted);
    CHECK(test.sim.count("release") == 3);
    CHECK(test.sim.count("raise") == 0);
}

TEST_CASE("guarded: a grant that comes after the round was lost is not raised", "[guarded]")
{
    guarded_simulation test{4};
    const std::uint64_t ahead = test.shown(0) + 1'000'000'000;
    for (std::size_t index = 0; index < 4; ++index)
    {
        test.group.put_counter(index, "stock", ahead + (index == 0 ? 100 : 0));
    }
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    for (const std::size_t index : {1U, 2U})
    {
        test.sim.master(index).refuse("raise", "-ERR no\r\n");
    }
    test.sim.master(3).network.back = 700us;
    const outcome_ptr got = test.sim.acquire(locks, "stock", {.ttl = 5s, .wait = 10s});
    REQUIRE(test.sim.finish(got));
    CHECK(got->report.rounds > 1);
    CHECK(test.sim.count("raise") == 2);
    CHECK(test.sim.master(3).count("raise") == 0);
}

TEST_CASE("guarded: the floor counts for slots that were used before, too", "[guarded][scenario-68]")
{
    guarded_simulation test{3};
    const std::uint64_t floor = test.shown(0) + 1'000'000'000;
    test.group.arm_all(floor);
    for (std::size_t index = 0; index < 3; ++index)
    {
        test.group.put_counter(index, "stock", 7);
    }
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr got = test.acquire(locks);
    CHECK(got->lease.fencing_token().value_or(0) == floor + 1);
}

TEST_CASE("guarded: a master without its counters grants nothing until it was in quarantine", "[guarded]")
{
    guarded_simulation test{3};
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(0).remove(fence_key);
    const outcome_ptr got = test.acquire(locks);
    CHECK(!got->error);
    CHECK(got->report.masters()[0].vote == vote::failed);
    CHECK(got->report.masters()[0].reason == master_errc::incarnation_changed);
    CHECK(!test.sim.master(0).value("lock:stock"));
    CHECK(!test.sim.master(0).field(fence_key, "floor"));
    REQUIRE(test.sim.run_until([&] { return test.group.is(0, core::marker_state::quarantine); }, 5s));
    CHECK(test.group.present(0)->why == core::incarnation_end::emptied);
    REQUIRE(test.sim.run_until(
        [&] { return test.group.is(0, core::marker_state::armed); }, guarded_group::max_ttl + 5s));
    CHECK(
        std::stoull(test.sim.master(0).field(fence_key, "floor").value()) >=
        got->lease.fencing_token().value_or(0));
}

TEST_CASE("guarded: a master whose marker has changed since the look grants nothing", "[guarded][scenario-6]")
{
    guarded_simulation test{3};
    config with = test.group.options();
    with.order = GENERATE(order::waiting, order::strict);
    lock_manager locks = test.sim.make_connected_manager(with);
    const bool is_removed = GENERATE(false, true);
    CAPTURE(is_removed);
    for (const auto& each : test.sim.masters())
    {
        each->remove(guard_key);
    }
    if (!is_removed)
    {
        for (std::size_t index = 0; index < 3; ++index)
        {
            test.group.put_marker(index, core::marker_state::quarantine, core::incarnation_end::clock);
        }
    }
    const outcome_ptr got = test.acquire(locks);
    CHECK(got->error == errc::no_quorum);
    test.sim.run_until_idle();
    for (std::size_t index = 0; index < 3; ++index)
    {
        CHECK(!test.sim.master(index).value("lock:stock"));
    }
}

TEST_CASE("guarded: a hint a year ahead of a master's clock is ignored", "[guarded][scenario-72]")
{
    guarded_simulation test{3};
    for (const std::size_t index : {0U, 1U}) // The median is theirs.
    {
        test.sim.master(index).clock_of_its_own().jump(test.sim.now(), std::chrono::hours{24 * 365});
    }
    test.sim.master(2).network.back = 20ms;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr got = test.acquire(locks);
    REQUIRE(!got->error);
    test.sim.run_until_idle();
    CHECK(got->lease.fencing_token().value_or(0) > test.shown(2) + 3'600'000'000);
    CHECK(test.sim.master(2).count("acquire") == 1);
    CHECK(test.sim.master(2).value("lock:stock"));
    CHECK(test.group.counter(2, "stock") < test.shown(2));
}

TEST_CASE("guarded: a queue master whose clock has jumped ahead grants nothing", "[guarded][scenario-4]")
{
    guarded_simulation test{GENERATE(1U, 3U)};
    config with = test.group.options();
    with.order = order::strict;
    lock_manager locks = test.sim.make_connected_manager(with);
    for (const auto& each : test.sim.masters())
    {
        each->clock_of_its_own().jump(test.sim.now(), 10s);
    }
    const outcome_ptr got = test.acquire(locks);
    CHECK(got->error == errc::no_quorum);
    test.sim.run_until_idle();
    CHECK(test.sim.count("ask") == 1);
    for (std::size_t index = 0; index < test.sim.masters().size(); ++index)
    {
        CHECK(got->report.masters()[index].vote != vote::granted);
        CHECK(!test.sim.master(index).value("lock:stock"));
    }
}

TEST_CASE("guarded: the validity that must remain does so after the raises", "[guarded][scenario-71]")
{
    guarded_simulation test{3};
    const std::uint64_t ahead = test.shown(0) + 1'000'000'000;
    for (std::size_t index = 0; index < 3; ++index)
    {
        test.group.put_counter(index, "stock", ahead + 10 * index);
        test.sim.master(index).network.back = 30ms;
    }
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr got = test.acquire(locks, {.ttl = 1s, .wait = 0ms, .min_validity = 940ms});
    CHECK(got->error == errc::validity_exhausted);
    CHECK(test.sim.count("raise") > 0);
    test.sim.run_for(1s);
    CHECK(!test.sim.master(0).value("lock:stock"));
    CHECK(!test.acquire(locks, {.ttl = 1s, .wait = 0ms, .min_validity = 910ms})->error);
}

TEST_CASE("guarded: the queue master is one of the armed masters", "[guarded]")
{
    guarded_simulation test{3};
    config with = test.group.options();
    with.order = order::strict;
    test.group.put_marker(GENERATE(0U, 1U, 2U), core::marker_state::quarantine, core::incarnation_end::stale);
    lock_manager locks = test.sim.make_connected_manager(with);
    CHECK(!test.acquire(locks)->error);
    CHECK(test.sim.count("ask") == 1);
    CHECK(test.sim.count("acquire") == 1);
}

TEST_CASE(
    "guarded: a client that waits goes to the queue master as soon as that has shown its marker", "[guarded]")
{
    guarded_simulation test{3};
    simulation& sim = test.sim;
    sim_master& queue_master = queue_master_of(sim, "stock");
    queue_master.door = entrance::refuses;
    lock_manager locks = sim.make_manager(test.group.options());
    sim.run_for(3s);
    const outcome_ptr held = test.acquire(locks);
    REQUIRE(!held->error);
    const outcome_ptr waits = sim.acquire(locks, "stock", {.ttl = 5s, .wait = no_limit});
    sim.run_for(100ms);
    REQUIRE(queue_master.count("ask") == 0);
    queue_master.door = entrance::open;
    REQUIRE(sim.run_until([&] { return queue_master.count("TIME") == 1; }, 2s));
    // Sooner than its heartbeat at the other master.
    sim.run_for(10 * trip);
    CHECK(queue_master.count("ask") > 0);
}

TEST_CASE("guarded: a master that no client asks isn't the queue master", "[guarded][scenario-112]")
{
    guarded_simulation test{3};
    simulation& sim = test.sim;
    sim_master& unasked = queue_master_of(sim, "stock");
    const bool is_suspected = GENERATE(false, true);
    if (!is_suspected)
    {
        const std::string refusal = "-NOPERM no permissions to run the 'time' command\r\n";
        // To everybody: also to the scripts, of which the trial of the handshake is one.
        if (GENERATE(false, true))
        {
            unasked.habits["TIME"] = refusal;
        }
        else
        {
            unasked.refuse("TIME", refusal);
        }
    }
    lock_manager holder = sim.make_connected_manager(test.group.options());
    lock_manager waiter = sim.make_connected_manager(test.group.options());
    if (is_suspected)
    {
        sim.run_for(3s);
        unasked.refuse("quarantine", "-BUSY Redis is busy running a script.\r\n"); // It stays armed.
        unasked.clock_of_its_own().jump(sim.now(), 1h);
        sim.run_for(4s);
    }
    const outcome_ptr held = test.acquire(holder);
    REQUIRE(!held->error);
    const outcome_ptr waits = sim.acquire(waiter, "stock", {.ttl = 5s, .wait = no_limit});
    sim.run_for(50ms);
    for (const auto& each : sim.masters())
    {
        each->forget_log();
    }
    sim.run_for(3s); // A doubt lasts a second.
    CHECK(unasked.count("ask") == 0);
    for (const auto& each : sim.masters())
    {
        const auto& log = each->log();
        CHECK(std::none_of(log.begin(), log.end(), leaves_queue));
    }
    CHECK(hand_over(sim, *held, waits) <= 3 * trip);
}

TEST_CASE(
    "guarded: a ttl that is longer than that of the group costs others nothing", "[guarded][scenario-112]")
{
    simulation sim{3};
    guarded_group group{sim};
    lock_manager locks = sim.make_connected_manager(group.options());
    const outcome_ptr too_long = sim.acquire(locks, "other", {.ttl = 10'001ms, .wait = no_limit});
    sim.run_for(1s);
    group.arm_all();
    sim.run_for(3s);
    CHECK(too_long->done);
    CHECK(too_long->error == errc::no_quorum);
    lock_manager holder = sim.make_connected_manager(group.options());
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 10s, .wait = 0ms});
    REQUIRE(sim.finish(held));
    REQUIRE(!held->error);
    const outcome_ptr waits = sim.acquire(locks, "stock", {.ttl = 5s, .wait = no_limit});
    sim.run_for(5s);
    CHECK(hand_over(sim, *held, waits) <= 3 * trip);
}

TEST_CASE("guarded: a ttl that turns out to be longer than that of the group locks nothing", "[guarded]")
{
    simulation sim{3};
    guarded_group group{sim};
    lock_manager locks = sim.make_connected_manager(group.options());
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10'001ms, .wait = 5s});
    sim.run_for(1s);
    CHECK(!got->done);
    group.arm_all();
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    for (const master_report& each : got->report.masters())
    {
        CHECK(each.vote == vote::unsent);
        CHECK(each.reason == errc::invalid_ttl);
    }
    CHECK(sim.count("acquire") + sim.count("ask") == 0);
}

TEST_CASE("guarded: a manager keeps its group, and so do its leases", "[guarded][scenario-86]")
{
    guarded_simulation test{3};
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr held = test.acquire(locks);
    REQUIRE(!held->error);
    guarded_group{test.sim, "fedcba9876543210"}.arm_all();
    test.sim.run_for(3s);
    const outcome_ptr extended = test.sim.extend(held->lease, 6s);
    REQUIRE(test.sim.finish(extended));
    CHECK(extended->error == errc::no_quorum);
    CHECK(extended->report.masters()[0].reason == master_errc::other_group);
    const outcome_ptr other = test.sim.acquire(locks, "other", one_try);
    REQUIRE(test.sim.finish(other));
    CHECK(other->error == errc::no_quorum);
    CHECK(other->report.masters()[0].reason == master_errc::other_group);
    lock_manager fresh = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr got = test.sim.acquire(fresh, "other", one_try);
    REQUIRE(test.sim.finish(got));
    CHECK(!got->error);
}

} // namespace redlock::test
