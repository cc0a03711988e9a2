// SPDX-License-Identifier: BSL-1.0
// Tests of the loss of a kept lease: when it is declared, which parties are notified, and the effect on its body.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace redlock::test
{

namespace
{

constexpr clock::duration margin = 1s; // A tenth of the ttl.

/// A body that runs under the lock, and a caller that waits for the loss.
struct watched_job
{
    watched_job(simulation& sim, lock_manager& locks, job& what, keep_options with) : body{what}
    {
        work = sim.with_lock(locks, "stock", with, body);
        REQUIRE(sim.run_until([&] { return body.held != nullptr; }, 1s));
        watch = sim.wait_lost(*body.held);
        sim.run_until_idle();
    }

    job& body;
    outcome_ptr work;
    outcome_ptr watch;
};

/// The faults of some masters.
enum class fault : std::uint8_t
{
    three_hang,
    all_hang,
    answers_stay_away, // The commands run.
    connections_cut,   // No master can be reached any more.
    three_cut
};

void inject(simulation& sim, fault what)
{
    const bool three = what == fault::three_hang || what == fault::three_cut;
    for (std::size_t index = three ? 2 : 0; index < sim.masters().size(); ++index)
    {
        sim_master& master = sim.master(index);
        switch (what)
        {
        case fault::three_hang:
        case fault::all_hang:
            master.hang();
            break;
        case fault::answers_stay_away:
            master.link().hold_replies();
            break;
        case fault::connections_cut:
        case fault::three_cut:
            master.door = entrance::refuses;
            master.break_connections();
            break;
        }
    }
}

} // namespace

TEST_CASE("a body is cancelled exactly the stop margin before the end, whatever hangs", "[scenario-30]")
{
    const fault what = GENERATE(
        fault::three_hang, fault::all_hang, fault::answers_stay_away, fault::connections_cut,
        fault::three_cut);
    const std::size_t extensions = GENERATE(0U, 1U, 4U);
    const auto stop_margin = GENERATE(clock::duration{margin}, clock::duration{2345ms});
    CAPTURE(static_cast<int>(what), extensions);
    simulation sim{5, extensions + 1};
    lock_manager locks = sim.make_connected_manager(sim.patient_options());
    job body{.stops_in = 100ms};
    keep_options with{.ttl = 10s, .max_hold = no_limit};
    with.stop_margin = std::chrono::duration_cast<std::chrono::milliseconds>(stop_margin);
    const watched_job running{sim, locks, body, with};
    // While an extension is in flight: the first master has received it, none has answered.
    const auto in_flight = [&] { return sim.master(0).count("extend") == extensions; };
    REQUIRE(sim.run_until(in_flight, 1min));
    const clock::time_point until = body.held->valid_until();
    inject(sim, what);

    REQUIRE(sim.run_until([&] { return body.cancelled_at != clock::time_point{}; }, 10s));
    CHECK(body.cancelled_at == until - stop_margin);
    sim.run_for(0ms);
    REQUIRE(running.watch->done);
    CHECK(running.watch->at == until - stop_margin);
    CHECK(!running.watch->error);
    CHECK(running.watch->why == errc::lease_lost);
    CHECK_FALSE(body.held->valid());
    CHECK(body.held->remaining() == 0ns);
    CHECK(body.held->valid_until() == until);
    REQUIRE(sim.finish(running.work));
    CHECK(running.work->error == errc::lease_lost);
    CHECK(body.ended_at == until - stop_margin + 100ms);
}

TEST_CASE("a loss is final, even if the extension in flight succeeds after it", "[scenario-30]")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager(sim.patient_options());
    job body{.stops_in = 900ms};
    const watched_job running{sim, locks, body, {.ttl = 10s, .max_hold = no_limit}};
    const clock::time_point until = body.held->valid_until();
    for (const auto& each : sim.masters())
    {
        each->link().hold_replies();
    }
    REQUIRE(sim.run_until([&] { return body.cancelled_at != clock::time_point{}; }, 10s));
    const std::size_t sent = sim.count("extend");
    CHECK(sent > 0);
    for (const auto& each : sim.masters())
    {
        each->link().let_go_of_replies();
    }
    sim.run_for(500ms);
    REQUIRE(body.held != nullptr);
    CHECK_FALSE(body.held->valid());
    CHECK(body.held->valid_until() == until);
    CHECK(sim.count("SET") == 5);
    REQUIRE(sim.finish(running.work));
    CHECK(running.work->error == errc::lease_lost);
    CHECK(sim.run_until_no_keys());
}

TEST_CASE("the report of an extension that the loss overtakes has no validity", "[extend]")
{
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager(sim.patient_options());
    const outcome_ptr got = sim.acquire_kept(locks, "stock", {.ttl = 10s, .max_hold = no_limit});
    REQUIRE(sim.finish(got));
    inject(sim, fault::three_hang);
    sim.run_until(got->lease.valid_until() - margin - 1ms);
    REQUIRE(got->lease.valid());
    const outcome_ptr extended = sim.extend(got->lease, 10s);
    REQUIRE(sim.finish(extended));
    CHECK(extended->error == errc::lease_lost);
    CHECK(extended->at == got->lease.valid_until() - margin);
    CHECK(extended->report.rounds == 1);
    CHECK(extended->report.validity == 0ns);
}

TEST_CASE("a kept lease is lost with the denial that makes a quorum impossible", "[scenario-26]")
{
    const bool taken = GENERATE(false, true);
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    job body{.stops_in = 100ms};
    const watched_job running{sim, locks, body, {.ttl = 10s, .max_hold = no_limit}};
    for (const std::size_t index : {0U, 2U, 4U})
    {
        sim.master(index).remove("lock:stock");
        if (taken)
        {
            sim.master(index).set("lock:stock", "another");
        }
    }
    sim.master(0).network.back = 3ms;
    sim.master(1).network.back = 5ms;
    sim.master(4).network.back = 2ms;
    REQUIRE(sim.run_until([&] { return body.cancelled_at != clock::time_point{}; }, 4s));
    CHECK(body.cancelled_at == sim.master(0).last("extend").at + 3ms);
    sim.run_for(0ms);
    REQUIRE(running.watch->done);
    CHECK(running.watch->at == body.cancelled_at);
    CHECK(!running.watch->error);
    CHECK(running.watch->why == errc::lease_lost);
    CHECK_FALSE(body.held->valid());
    CHECK(body.held->valid_until() == clock::time_point{});
    CHECK(sim.count("release") == 0);
    REQUIRE(sim.finish(running.work));
    CHECK(running.work->error == errc::lease_lost);
    sim.run_until_idle();
    CHECK(sim.count("extend") == 5);
    CHECK(sim.count("SET") == 5);
    CHECK(sim.keys() == (taken ? 3 : 0));
}

TEST_CASE("another client acquires the lock only after the body has ended", "[scenario-58]")
{
    const bool by_limit = GENERATE(true, false);
    simulation sim{5, 7};
    lock_manager locks = sim.make_connected_manager();
    lock_manager others = sim.make_connected_manager();
    job body{.stops_in = 800ms};
    keep_options with{.ttl = 10s, .max_hold = no_limit};
    if (by_limit)
    {
        with.max_hold = 5s;
    }
    const watched_job running{sim, locks, body, with};
    const outcome_ptr rival = sim.acquire(others, "stock", {.ttl = 10s, .wait = no_limit});
    if (!by_limit)
    {
        // Only their answers to the holder are lost.
        for (const auto& each : sim.masters())
        {
            each->refuse("extend", "-LOADING\r\n");
        }
    }
    REQUIRE(sim.run_until([&] { return body.cancelled_at != clock::time_point{}; }, 20s));
    const std::string key{body.held->owner_id()};
    while (!body.ended)
    {
        CHECK_FALSE(rival->done);
        REQUIRE(sim.step());
        REQUIRE(sim.master(0).value("lock:stock") == key);
    }
    const clock::time_point ended = body.ended_at;
    REQUIRE(sim.finish(running.work));
    CHECK(running.work->error == (by_limit ? errc::hold_limit_reached : errc::lease_lost));
    REQUIRE(sim.finish(rival));
    CHECK(!rival->error);
    CHECK(rival->at > ended);
    CHECK(rival->at < ended + 2s);
}

TEST_CASE(
    "if a body doesn't stop in time, another client acquires the lock after the ttl, and its key is kept",
    "[scenario-58]")
{
    simulation sim{5, 7};
    lock_manager locks = sim.make_connected_manager();
    lock_manager others = sim.make_connected_manager();
    job body{.stops_in = 30s};
    const watched_job running{sim, locks, body, {.ttl = 10s, .max_hold = 5s}};
    const outcome_ptr rival = sim.acquire(others, "stock", {.ttl = 60s, .wait = no_limit});
    REQUIRE(sim.run_until([&] { return body.cancelled_at != clock::time_point{}; }, 5s));
    const clock::time_point until = body.held->valid_until();
    const std::string loser{body.held->owner_id()};
    REQUIRE(sim.finish(rival));
    CHECK(!rival->error);
    CHECK(rival->at > until);
    CHECK_FALSE(body.ended);
    const auto is_of_the_loser = [&](const received& each)
    { return each.what == "release" && each.words.at(4) == loser; };
    for (const auto& each : sim.masters())
    {
        CHECK(std::none_of(each->log().begin(), each->log().end(), is_of_the_loser));
    }
    REQUIRE(sim.finish(running.work));
    CHECK(running.work->error == errc::hold_limit_reached);
    sim.run_until_idle();
    for (const auto& each : sim.masters())
    {
        CHECK(std::any_of(each->log().begin(), each->log().end(), is_of_the_loser));
        CHECK(each->value("lock:stock") == rival->lease.owner_id());
    }
}

TEST_CASE("a shutdown cancels the bodies, and releases their leases when they have ended", "[scenario-58]")
{
    const auto stops_in = GENERATE(clock::duration{0}, clock::duration{1s}, clock::duration{30s});
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    job body{.stops_in = stops_in};
    const watched_job running{sim, locks, body, {.ttl = 10s, .max_hold = no_limit}};
    sim.run_for(4s);
    const outcome_ptr plain = sim.acquire(locks, "plain", {.ttl = 60s});
    REQUIRE(sim.finish(plain));
    const outcome_ptr watch = sim.wait_lost(plain->lease);
    sim.run_until_idle();
    const clock::time_point until = body.held->valid_until();
    const clock::time_point began = sim.now();
    const outcome_ptr down = sim.shut_down(locks);
    REQUIRE(sim.run_until([&] { return body.cancelled_at != clock::time_point{}; }, 1s));
    CHECK(body.cancelled_at == began);
    sim.run_for(0ms);
    REQUIRE(running.watch->done);
    CHECK(!running.watch->error);
    CHECK(running.watch->why == errc::closed);
    REQUIRE(watch->done);
    CHECK(watch->error == errc::closed);
    if (stops_in > 0ms)
    {
        const outcome_ptr late = sim.wait_lost(plain->lease);
        sim.run_for(0ms);
        CHECK(late->done);
        CHECK(late->error == errc::closed);
    }
    const std::size_t extensions = sim.count("extend");

    REQUIRE(sim.finish(down));
    CHECK(!down->error);
    const clock::time_point given_back = std::min(began + stops_in, until);
    CHECK(down->at >= given_back);
    CHECK(down->at < given_back + 10ms);
    REQUIRE(sim.finish(running.work));
    CHECK(running.work->error == errc::closed);
    CHECK(running.work->at >= began + stops_in);
    for (const auto& each : sim.masters())
    {
        CHECK(each->count("release") == 2);
        for (const received& one : each->log())
        {
            CHECK((one.what != "release" || one.at >= given_back));
        }
        CHECK(each->key_count() == 0);
    }
    CHECK(sim.count("extend") == extensions);
}

TEST_CASE("the loss of a released lease can't be awaited, also during a shutdown")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    job body{.stops_in = 5s};
    const watched_job running{sim, locks, body, {.ttl = 10s, .max_hold = no_limit}};
    const outcome_ptr got = sim.acquire(locks, "plain", {.ttl = 60s});
    REQUIRE(sim.finish(got));
    const outcome_ptr down = sim.shut_down(locks);
    sim.run_for(1s);
    const outcome_ptr released = sim.release(got->lease);
    const outcome_ptr none = sim.wait_lost(got->lease);
    sim.run_for(0ms);
    REQUIRE(none->done);
    CHECK(none->error == errc::not_held);
    REQUIRE(sim.finish(down));
    CHECK(!down->error);
    REQUIRE(sim.finish(running.work));
}

} // namespace redlock::test
