// SPDX-License-Identifier: BSL-1.0
// Tests of when a round is decided and how, to the microsecond.
#include "simulation.hpp"
#include "waiting_clients.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstddef>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

/// The answers of the first master come after one millisecond, those of the second after two, and so on.
void answer_one_after_the_other(simulation& sim)
{
    std::chrono::milliseconds delay{0};
    for (const auto& each : sim.masters())
    {
        each->network = {.there = ++delay, .back = 0ms};
    }
}

/// The owner ids that came with the SETs, in their order.
std::vector<std::string> owner_ids(const sim_master& at)
{
    std::vector<std::string> ids;
    for (const received& each : at.log())
    {
        if (each.what == "SET")
        {
            ids.push_back(each.words.at(2));
        }
    }
    return ids;
}

} // namespace

TEST_CASE("a lease is acquired with the third of five grants")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    answer_one_after_the_other(sim);
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.acquire(locks, "invoice:42", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    CHECK(got->at - began == 3ms);
    CHECK(got->report.rounds == 1);
    CHECK(got->report.count(vote::granted) == 3);
    CHECK(got->report.count(vote::pending) == 2);
    CHECK(got->report.masters()[1].elapsed == 2ms);
    CHECK(got->report.validity == 10s - 3ms - 102ms);
    CHECK(got->lease.resource() == "invoice:42");
    CHECK(sim.master(0).value("lock:invoice:42") == got->lease.owner_id());
    // Late grants belong to the lease.
    sim.run_until_idle();
    CHECK(sim.keys() == 5);
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(!released->error);
    CHECK(released->at - began == 5ms + 3ms);
    sim.run_until_idle();
    CHECK(sim.keys() == 0);
    // An alarm for a time that has passed costs a system call and a step for nothing.
    CHECK(sim.environment().late_alarms() == 0);
}

TEST_CASE("a master that hangs costs no alarm for each round that was decided without it", "[scenario-36]")
{
    simulation sim{5};
    config options = sim.options();
    options.node_timeout = 10ms;
    lock_manager locks = sim.make_connected_manager(options);
    sim.master(0).hang();
    const std::size_t before = sim.environment().alarms_set();
    const clock::time_point began = sim.now();
    std::size_t rounds = 0;
    while (sim.now() - began < 300ms)
    {
        const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
        REQUIRE(sim.finish(got));
        REQUIRE(!got->error);
        REQUIRE(sim.finish(sim.release(got->lease)));
        rounds += 2;
    }
    // One for each node timeout that has passed, and for signs of life: not for each round.
    CHECK(rounds > 500);
    CHECK(sim.environment().alarms_set() - before < 100);
}

TEST_CASE("a minority of masters that hang doesn't delay a lease", "[scenario-36]")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    sim.master(1).hang();
    sim.master(4).hang();
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    CHECK(got->at - began == trip);
}

TEST_CASE(
    "no_quorum is returned at the node timeout exactly when three of five masters hang", "[scenario-36]")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    for (const std::size_t hung : {0U, 2U, 3U})
    {
        sim.master(hung).hang();
    }
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    CHECK(!got->lease);
    CHECK(got->at - began == 50ms);
    CHECK(got->report.count(vote::granted) == 2);
    CHECK(got->report.count(vote::timed_out) == 3);
    CHECK(got->report.masters()[2].elapsed == 50ms);
    CHECK(got->report.masters()[2].reason == master_errc::timed_out);
    // Granted keys are released at once, possibly granted ones as soon as the masters resume.
    sim.run_until_idle();
    CHECK(sim.keys() == 0);
    const auto pause = GENERATE(100ms, 5s, 100s);
    sim.run_for(pause);
    for (const std::size_t hung : {0U, 2U, 3U})
    {
        CHECK(sim.master(hung).count("SET") == 0);
        sim.master(hung).resume();
    }
    CHECK(sim.run_until_no_keys(1s));
    CHECK(sim.master(0).count("SET") == 1);
    CHECK(sim.master(0).count("release") >= 1);
}

TEST_CASE("a round is decided against as soon as the quorum is impossible")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    answer_one_after_the_other(sim);
    for (const std::size_t taken : {0U, 2U, 3U})
    {
        sim.master(taken).set("lock:stock", "another");
    }
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::held_by_other);
    CHECK(got->at - began == 4ms);
    CHECK(got->report.count(vote::denied) == 3);
    CHECK(got->report.count(vote::granted) == 1);
    sim.run_until_idle();
    CHECK(sim.keys() == 3);
}

TEST_CASE("after the last round is lost, the answers that decide the error are awaited")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    answer_one_after_the_other(sim);
    sim.master(0).answer("SET", {.bytes = "-ERR something\r\n"});
    sim.master(1).answer("SET", {.bytes = "-ERR something\r\n"});
    sim.master(2).set("lock:stock", "another");
    const clock::time_point began = sim.now();
    SECTION("a quorum answers that it is held")
    {
        const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
        REQUIRE(sim.finish(got));
        CHECK(got->error == errc::held_by_other);
        CHECK(got->at - began == 5ms);
    }
    SECTION("fewer than a quorum answer")
    {
        sim.master(4).hang();
        const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
        REQUIRE(sim.finish(got));
        CHECK(got->error == errc::no_quorum);
        CHECK(got->at - began == 50ms);
        CHECK(got->report.masters()[0].reason == master_errc::command_failed);
        CHECK(got->report.masters()[0].detail.view() == "ERR something");
        sim.master(4).resume();
    }
    SECTION("another round doesn't wait for them")
    {
        sim.master(2).remove("lock:stock");
        sim.master(2).answer("SET", {.bytes = "-ERR something\r\n"});
        sim.master(4).hang();
        const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
        REQUIRE(sim.finish(got));
        CHECK(!got->error);
        CHECK(got->report.rounds == 2);
        // Decided after three milliseconds; a back-off is at most eight times as long here.
        CHECK(got->at - began <= 3ms + 24ms + 4ms);
        sim.master(4).resume();
        const outcome_ptr released = sim.release(got->lease);
        REQUIRE(sim.finish(released));
    }
    sim.run_until_idle();
    CHECK(sim.run_until([&] { return sim.keys() == (sim.master(2).value("lock:stock") ? 1U : 0U); }, 5s));
}

TEST_CASE("with two masters, one grant and one denial decide the round at once", "[scenario-35]")
{
    simulation sim{2};
    lock_manager locks = sim.make_connected_manager();
    answer_one_after_the_other(sim);
    sim.master(1).set("lock:stock", "another");
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::held_by_other);
    CHECK(got->at - began == 2ms);
    sim.run_until_idle();
    CHECK(sim.master(0).key_count() == 0);
}

TEST_CASE("the quorum is one of the configured masters, not of the connected ones", "[scenario-37]")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    for (const std::size_t down : {0U, 1U, 2U})
    {
        sim.master(down).door = entrance::refuses;
        sim.master(down).break_connections();
    }
    sim.run_until_idle();
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    CHECK(got->at == began);
    CHECK(got->report.count(vote::unsent) == 3);
    CHECK(got->report.masters()[0].reason);
    CHECK(sim.run_until_no_keys());
    CHECK(sim.master(3).count("release") == 1);
}

TEST_CASE("every attempt has another owner id", "[scenario-19]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim.forbid_queues();
    sim.master(0).set("lock:stock", "another", 300ms);
    sim.master(1).set("lock:stock", "another", 300ms);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    sim.run_until_idle();
    const std::vector<std::string> ids = owner_ids(sim.master(0));
    CHECK(ids.size() == got->report.rounds);
    CHECK(ids.size() > 2);
    CHECK(std::set<std::string>{ids.begin(), ids.end()}.size() == ids.size());
    CHECK(ids.back() == got->lease.owner_id());
    CHECK(ids == owner_ids(sim.master(2)));
    CHECK(ids.back().size() == 32);
}

TEST_CASE("the keys of a lost round don't block the next round of the same acquire", "[scenario-34]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim.master(0).set("lock:stock", "another", 100ms);
    sim.master(1).set("lock:stock", "another", 100ms);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    CHECK(got->report.rounds > 1);
    sim.run_until_idle();
    // On the master that granted each time: SET and release alternately.
    std::vector<std::string> verbs;
    for (const received& each : sim.master(2).log())
    {
        if (each.what == "SET" || each.what == "release")
        {
            verbs.push_back(each.what);
        }
    }
    REQUIRE(verbs.size() == 2 * got->report.rounds - 1);
    for (std::size_t at = 0; at < verbs.size(); ++at)
    {
        CHECK(verbs[at] == (at % 2 == 0 ? "SET" : "release"));
    }
    CHECK(sim.keys() == 3);
}

TEST_CASE(
    "a lost round is released on every master to which it was sent, by its owner id",
    "[scenario-23][scenario-25]")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    sim.master(0).set("lock:stock", "another");
    sim.master(1).answer("SET", {.bytes = "-ERR something\r\n", .runs = true});
    sim.master(2).hang();
    sim.master(3).answer("SET", {.bytes = "-OOM command not allowed\r\n"});
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    sim.run_for(100ms);
    sim.master(2).resume();
    sim.run_until_idle();
    // A SET that can't have run leaves nothing to release.
    CHECK(sim.master(3).count("SET") == 1);
    CHECK(sim.master(3).count("release") == 0);
    for (const std::size_t master : {0U, 1U, 2U, 4U})
    {
        const auto& each = sim.masters()[master];
        REQUIRE(each->count("SET") == 1);
        REQUIRE(each->count("release") == 1);
        const command& set = each->last("SET").words;
        const command& release = each->last("release").words;
        CHECK(set == command{"SET", "lock:stock", set.at(2), "NX", "PX", "60000"});
        CHECK(release == command{"EVALSHA", release.at(1), "1", "lock:stock", set.at(2)});
    }
    CHECK(sim.keys() == 1);
    CHECK(sim.master(0).value("lock:stock") == "another");
}

TEST_CASE(
    "masters that are asked after the queue master have their whole node timeout",
    "[acquire][queue][observer]")
{
    simulation sim{3};
    const std::size_t leads = queue_master_index(sim, "stock");
    waiting_clients with{sim, 1, sim.options()};
    std::vector<std::pair<clock::time_point, round_decided>> rounds;
    config options = sim.options();
    options.observer.on_event = [&](const event& what)
    {
        if (const auto* decided = std::get_if<round_decided>(&what))
        {
            rounds.emplace_back(sim.now(), *decided);
        }
    };
    lock_manager locks = sim.make_connected_manager(options);
    // It has seen that others wait, so it asks the queue master first.
    REQUIRE(sim.finish(sim.acquire(locks, "stock", {.ttl = 60s, .wait = 100ms})));
    with.waits[0]->cancel.emit(asio::cancellation_type::terminal);
    REQUIRE(sim.finish(with.waits[0]));
    REQUIRE(sim.finish(sim.release(with.held)));
    sim.run_until_idle();
    rounds.clear();

    sim.master(leads).network = {.there = 10ms, .back = 30ms};
    for (const auto& each : sim.masters())
    {
        if (each.get() != &sim.master(leads))
        {
            each->hang();
        }
    }
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 200ms});
    REQUIRE(sim.finish(got));
    REQUIRE_FALSE(rounds.empty());
    const auto& [at, first] = rounds.front();
    CHECK(first.report.masters()[leads].vote == vote::granted);
    CHECK(first.report.masters()[leads].elapsed == 40ms);
    CHECK(first.report.count(vote::timed_out) == 2);
    CHECK(first.report.node_timeout == 50ms);
    // The others were asked when the queue master had granted.
    CHECK(at - began == 40ms + 50ms);
}

} // namespace redlock::test
