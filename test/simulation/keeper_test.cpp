// SPDX-License-Identifier: BSL-1.0
// Tests of automatic extension: when extensions are sent, when they end, and the effect of a pause of the process.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace redlock::test
{

namespace
{

constexpr clock::duration extend_every = 3333ms; // A third of the ttl, in whole milliseconds.
constexpr clock::duration beat = extend_every / 200;
constexpr clock::duration node_timeout = 50ms;
constexpr clock::duration there = 100us;
constexpr clock::duration round_trip = 200us;

outcome_ptr kept(simulation& sim, lock_manager& locks, keep_options with = {.ttl = 10s, .max_hold = no_limit})
{
    const outcome_ptr got = sim.acquire_kept(locks, "stock", with);
    REQUIRE(sim.finish(got));
    REQUIRE(!got->error);
    sim.run_until_idle();
    return got;
}

/// Returns the times at which the extensions that one master received were sent.
std::vector<clock::time_point> extensions(simulation& sim, std::size_t master = 0)
{
    std::vector<clock::time_point> sent;
    for (const received& each : sim.master(master).log())
    {
        if (each.what == "extend")
        {
            sent.push_back(each.at - there);
        }
    }
    return sent;
}

/// Runs step by step. False if the lease wasn't valid at one of them.
bool stays_valid(simulation& sim, const redlock::lease& held, clock::duration length)
{
    bool valid = true;
    sim.world().at(sim.now() + length, event_kind::timer, [] {});
    const clock::time_point end = sim.now() + length;
    while (sim.step(end))
    {
        valid = valid && held.valid();
    }
    return valid;
}

} // namespace

TEST_CASE("a lease is extended every third of its ttl, off by a tenth at most, for as long as it is kept")
{
    const int seed = GENERATE(range(1, 6));
    simulation sim{5, static_cast<std::uint64_t>(seed)};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = kept(sim, locks);
    const outcome_ptr watch = sim.wait_lost(got->lease);
    clock::time_point before = got->at - round_trip;
    CHECK(stays_valid(sim, got->lease, 30min));
    CHECK_FALSE(watch->done);
    const std::vector<clock::time_point> sent = extensions(sim);
    CHECK(sent.size() > 500);
    clock::duration least = 1h;
    clock::duration most{0};
    for (const clock::time_point each : sent)
    {
        const clock::duration pause = each - before;
        least = std::min(least, pause);
        most = std::max(most, pause);
        before = each;
    }
    CHECK(least >= extend_every - extend_every / 10 - beat);
    CHECK(most <= extend_every + extend_every / 10);
    // All of it is used.
    CHECK(least < extend_every * 92 / 100);
    CHECK(most > extend_every * 108 / 100);
    for (const auto& each : sim.masters())
    {
        CHECK(each->value("lock:stock") == got->lease.owner_id());
        CHECK(each->last("extend").words.back() == "10000");
    }
}

TEST_CASE(
    "an extension that fails is repeated soon, for as long as the lease isn't lost",
    "[scenario-32][scenario-38]")
{
    const int seed = GENERATE(range(1, 11));
    const bool cut = GENERATE(false, true);
    simulation sim{5, static_cast<std::uint64_t>(seed)};
    config options = sim.options();
    options.response_timeout = 1min;
    lock_manager locks = sim.make_connected_manager(options);
    const outcome_ptr got = kept(sim, locks);
    const clock::time_point lost_at = got->lease.valid_until() - 1s;
    for (std::size_t index = 2; index < 5; ++index)
    {
        if (cut)
        {
            sim.master(index).door = entrance::refuses;
            sim.master(index).break_connections();
        }
        else
        {
            sim.master(index).hang();
        }
    }
    sim.run_until(lost_at - 1ns);
    CHECK(got->lease.valid());
    const std::vector<clock::time_point> sent = extensions(sim);
    REQUIRE(sent.size() > 8);
    for (std::size_t at = 1; at < sent.size(); ++at)
    {
        CHECK(sent[at] - sent[at - 1] >= node_timeout);
        CHECK(sent[at] - sent[at - 1] <= node_timeout + options.retry_delay_max);
    }
    CHECK(lost_at - sent.back() <= node_timeout + options.retry_delay_max);
    CHECK(sent[1] - sent[0] <= node_timeout + options.retry_delay_min);
    sim.run_for(1min);
    CHECK_FALSE(got->lease.valid());
    CHECK(extensions(sim).size() == sent.size());
}

TEST_CASE("the first repetition of an extension comes as soon in an old lease as in a new one", "[ageing]")
{
    simulation sim{3};
    config options = sim.options();
    options.retry_delay_min = 10ms;
    options.retry_delay_max = 3s;
    lock_manager locks = sim.make_connected_manager(options);
    const outcome_ptr got = kept(sim, locks);
    constexpr std::size_t failures = 40;
    for (std::size_t failure = 0; failure < failures; ++failure)
    {
        for (const std::size_t master : {0U, 1U})
        {
            sim.master(master).answer("extend", {.bytes = "-ERR out of order\r\n"});
        }
        CHECK(stays_valid(sim, got->lease, 4s));
    }
    const std::vector<clock::time_point> sent = extensions(sim, 2);
    std::size_t repetitions = 0;
    for (std::size_t index = 1; index < sent.size(); ++index)
    {
        const clock::duration pause = sent[index] - sent[index - 1];
        const bool repeated = pause <= node_timeout + 10ms + 1ms;
        repetitions += repeated ? 1U : 0U;
        CAPTURE(index, pause.count());
        CHECK((repeated || pause >= extend_every - extend_every / 10 - beat));
    }
    CHECK(repetitions == failures);
}

TEST_CASE("in the tightest schedule, with slow answers, each extension can fail once", "[scenario-32]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    for (const auto& each : sim.masters())
    {
        each->network.back = 45ms;
    }
    const outcome_ptr got = kept(sim, locks, {.ttl = 10s, .max_hold = no_limit, .stop_margin = 6130ms});
    for (std::size_t time = 1; time <= 200 && got->lease.valid(); ++time)
    {
        CAPTURE(time);
        for (const auto& each : sim.masters())
        {
            each->forget_log();
            each->refuse("extend", "-BUSY Redis is busy running a script.\r\n");
        }
        REQUIRE(sim.run_until([&] { return sim.count("extend") == 3; }, 10s));
        for (const auto& each : sim.masters())
        {
            each->answer_as_usual();
        }
        const clock::time_point until = got->lease.valid_until();
        CHECK(sim.run_until([&] { return got->lease.valid_until() > until; }, 1s));
        CHECK(got->lease.valid());
    }
}

TEST_CASE("an extension that is confirmed late delays the next one no further", "[scenario-32]")
{
    simulation sim{3};
    config options = sim.options();
    options.response_timeout = 1min;
    lock_manager locks = sim.make_connected_manager(options);
    const outcome_ptr got = kept(sim, locks);
    for (const auto& each : sim.masters())
    {
        each->network.back = 5s;
    }
    REQUIRE(sim.run_until([&] { return sim.count("extend") == 3; }, 10s));
    for (const auto& each : sim.masters())
    {
        each->network.back = there;
        each->refuse("extend", "-BUSY Redis is busy running a script.\r\n");
    }
    const clock::time_point until = got->lease.valid_until();
    REQUIRE(sim.run_until([&] { return got->lease.valid_until() > until; }, 10s));
    // Its answers took longer than the interval, so the next one is due when the last attempt has had its node timeout.
    const std::size_t before = sim.count("extend");
    sim.run_for(node_timeout);
    CHECK(sim.count("extend") == before + 3);
}

TEST_CASE(
    "an extension is due at once if the answers to the last one took longer than the interval",
    "[scenario-32]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = kept(sim, locks, {.ttl = 10s, .max_hold = no_limit, .extend_every = 1ms});
    for (const auto& each : sim.masters())
    {
        each->network.back = 2ms;
    }
    sim.run_for(1s);
    for (const auto& each : sim.masters())
    {
        each->forget_log();
    }
    CHECK(stays_valid(sim, got->lease, 1s));
    const std::vector<clock::time_point> sent = extensions(sim);
    REQUIRE(sent.size() > 2);
    for (std::size_t index = 1; index < sent.size(); ++index)
    {
        CAPTURE(index);
        REQUIRE(sent[index] - sent[index - 1] == there + 2ms);
    }
}

TEST_CASE(
    "answers that take longer than the interval cause no more extensions than their node timeouts allow")
{
    simulation sim{3};
    config options = sim.options();
    options.response_timeout = 1min;
    lock_manager locks = sim.make_connected_manager(options);
    const outcome_ptr got =
        kept(sim, locks, {.ttl = 10s, .max_hold = no_limit, .extend_every = 100ms, .stop_margin = 1s});
    for (const auto& each : sim.masters())
    {
        each->network.back = 120ms;
    }
    CHECK(stays_valid(sim, got->lease, 1min));
    CHECK(extensions(sim).size() <= static_cast<std::size_t>(1min / node_timeout));
}

TEST_CASE("a quorum that returns before the loss confirms the lease in time")
{
    const int seed = GENERATE(range(1, 21));
    simulation sim{5, static_cast<std::uint64_t>(seed)};
    config options = sim.options();
    options.response_timeout = 1min;
    options.retry_delay_min = GENERATE(10ms, 60s);
    options.retry_delay_max = 60s;
    lock_manager locks = sim.make_connected_manager(options);
    const outcome_ptr got = kept(sim, locks);
    for (std::size_t index = 2; index < 5; ++index)
    {
        sim.master(index).link().hold();
    }
    sim.run_until(got->lease.valid_until() - 1s - 200ms);
    for (std::size_t index = 2; index < 5; ++index)
    {
        sim.master(index).forget_log();
        sim.master(index).break_connections();
    }
    CHECK(stays_valid(sim, got->lease, 1min));
}

TEST_CASE("nothing is extended once a lease was released, lost or abandoned", "[scenario-38][scenario-39]")
{
    simulation sim{5};
    std::optional<lock_manager> locks{sim.make_connected_manager()};
    const outcome_ptr got = kept(sim, *locks, {.ttl = 10s, .max_hold = 60s});
    sim.run_for(15s);
    std::size_t before = extensions(sim).size();
    CHECK(before >= 3);
    SECTION("released")
    {
        const outcome_ptr released = sim.release(got->lease);
        REQUIRE(sim.finish(released));
        CHECK(!released->error);
    }
    SECTION("dropped")
    {
        got->lease = {};
    }
    SECTION("kept for max_hold")
    {
        sim.run_for(45s);
        before = extensions(sim).size();
        CHECK_FALSE(got->lease.valid());
    }
    SECTION("the manager was destroyed")
    {
        locks.reset();
    }
    SECTION("the manager was shut down")
    {
        sim.shut_down(*locks);
        sim.run_for(0ms);
    }
    sim.run_for(2min);
    CHECK(extensions(sim).size() == before);
    CHECK(sim.keys() == 0);
}

TEST_CASE("a lease is kept for exactly max_hold", "[scenario-39]")
{
    const std::chrono::milliseconds limit = GENERATE(1ms, 1000ms, 3333ms, 7min);
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = sim.acquire_kept(locks, "stock", {.ttl = 10s, .max_hold = limit});
    REQUIRE(sim.finish(got));
    const outcome_ptr watch = sim.wait_lost(got->lease);
    REQUIRE(sim.finish(watch, 10min));
    CHECK(watch->at == got->at + limit);
    CHECK(!watch->error);
    CHECK(watch->why == errc::hold_limit_reached);
    CHECK_FALSE(got->lease.valid());
    CHECK(got->lease.valid_until() > sim.now() + 1s);
    // It isn't released until its holder releases it.
    sim.run_for(1s);
    CHECK(sim.keys() == 5);
    CHECK(sim.master(0).count("release") == 0);
}

TEST_CASE("an impossible schedule and a max_hold of zero are refused, and nothing is sent", "[scenario-32]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const auto refused_with = [&](keep_options with)
    {
        const outcome_ptr got = sim.acquire_kept(locks, "stock", with);
        REQUIRE(sim.finish(got, 0ms));
        CHECK(!got->lease);
        CHECK(!got->report.argument_error.empty());
        return got->error;
    };
    CHECK(refused_with({.ttl = 10s, .max_hold = 0ms}) == errc::invalid_max_hold);
    CHECK(refused_with({.ttl = 10s, .max_hold = no_limit, .extend_every = 9s}) == errc::invalid_schedule);
    CHECK(refused_with({.ttl = 10s, .max_hold = no_limit, .stop_margin = 7s}) == errc::invalid_schedule);
    // 1.1 × 3333 + 2 × 50 + 102 leave less than 6131.
    CHECK(refused_with({.ttl = 10s, .max_hold = no_limit, .stop_margin = 6131ms}) == errc::invalid_schedule);
    CHECK(sim.master(0).count("SET") == 0);
    const outcome_ptr got =
        sim.acquire_kept(locks, "stock", {.ttl = 10s, .max_hold = no_limit, .stop_margin = 6130ms});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    CHECK(stays_valid(sim, got->lease, 1min));
}

TEST_CASE("extensions by the holder don't prevent automatic ones")
{
    const auto ttl = GENERATE(200ms, 10s, 30s);
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = kept(sim, locks);
    bool valid = true;
    for (int time = 0; time < 60; ++time)
    {
        const outcome_ptr extended = sim.extend(got->lease, ttl);
        REQUIRE(sim.finish(extended));
        CHECK(!extended->error);
        valid = stays_valid(sim, got->lease, 1s) && valid;
    }
    CHECK(valid);
}

TEST_CASE("late answers to an older extension don't delay the next one")
{
    simulation sim{3};
    config options = sim.options();
    options.response_timeout = 1min;
    lock_manager locks = sim.make_connected_manager(options);
    const outcome_ptr got =
        kept(sim, locks, {.ttl = 10s, .max_hold = no_limit, .extend_every = 6s, .stop_margin = 3s});
    // The first extension: one master grants, one breaks, one hangs. The next one: two grant.
    sim.master(1).link().hold();
    sim.master(2).hang();
    REQUIRE(sim.run_until([&] { return sim.master(0).count("extend") == 1; }, 10s));
    sim.run_until_idle();
    sim.master(1).break_connections();
    REQUIRE(sim.run_until([&] { return sim.master(1).count("extend") == 1; }, 2s));
    sim.run_until_idle();
    const clock::time_point until = got->lease.valid_until();
    CHECK(until > sim.now() + 9s);
    // Then the first one has its quorum, too, just before that master loses the key.
    sim.run_until(got->at + 9900ms);
    REQUIRE(extensions(sim).size() == 2);
    sim.master(2).resume();
    sim.run_until_idle();
    CHECK(sim.master(2).count("SET") == 1);
    CHECK(stays_valid(sim, got->lease, 1min));
}

TEST_CASE(
    "a lease that expires during a pause is lost at the first look, and stays lost",
    "[scenario-1][scenario-13]")
{
    const bool timers_first = GENERATE(false, true);
    const bool beyond_the_end = GENERATE(true, false);
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    job body{};
    const outcome_ptr work = sim.with_lock(locks, "stock", {.ttl = 10s, .max_hold = 1min}, body);
    REQUIRE(sim.run_until([&] { return body.held != nullptr; }, 1s));
    const outcome_ptr watch = sim.wait_lost(*body.held);
    // The answers to an extension have arrived, and haven't been read.
    REQUIRE(sim.run_until([&] { return sim.master(4).count("extend") == 1; }, 5s));
    const clock::time_point answered = sim.now() + there;
    REQUIRE(sim.run_until([&] { return sim.now() == answered; }, there));
    const clock::time_point until = body.held->valid_until();
    const clock::duration pause = beyond_the_end ? clock::duration{1h} : until - 500ms - sim.now();
    timers_first ? sim.world().jump_with_timers_first(pause) : sim.world().jump(pause);
    CHECK(body.held->valid() == !beyond_the_end);
    const clock::time_point resumed = sim.now();
    for (const auto& each : sim.masters())
    {
        REQUIRE(each->value("lock:stock").has_value() == !beyond_the_end);
        each->set("lock:stock", "a rival", 1h);
    }
    REQUIRE(sim.finish(work));
    CHECK(work->error == errc::lease_lost);
    CHECK(body.cancelled_at == resumed);
    REQUIRE(watch->done);
    CHECK(watch->at == resumed);
    CHECK(watch->why == errc::lease_lost);
    sim.run_for(1min);
    for (const auto& each : sim.masters())
    {
        CHECK(each->count("extend") == 1);
        CHECK(each->count("SET") == 1);
        CHECK(each->count("release") == 1);
        CHECK(each->value("lock:stock") == "a rival");
    }
}

TEST_CASE("a lease that a pause has left too little of to keep it is acquired again", "[scenario-1]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const keep_options with{.ttl = 3s, .max_hold = no_limit, .wait = 30s, .stop_margin = 500ms};
    const outcome_ptr got = sim.acquire_kept(locks, "stock", with);
    REQUIRE(sim.run_until([&] { return sim.master(2).count("SET") == 1; }, 1s));
    const clock::time_point answered = sim.now() + there;
    REQUIRE(sim.run_until([&] { return sim.now() == answered; }, there));
    sim.world().jump(2600ms); // The replies are read before any deadline.
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    CHECK(got->report.rounds == 2);
    CHECK(stays_valid(sim, got->lease, 10s));
}

TEST_CASE("answers that are read after the loss don't revive a lease", "[scenario-30]")
{
    const bool timers_first = GENERATE(false, true);
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = kept(sim, locks);
    const clock::time_point until = got->lease.valid_until();
    REQUIRE(sim.run_until([&] { return sim.master(4).count("extend") == 1; }, 5s));
    const clock::time_point answered = sim.now() + there;
    REQUIRE(sim.run_until([&] { return sim.now() == answered; }, there));
    const clock::duration pause = until - 1s - sim.now();
    timers_first ? sim.world().jump_with_timers_first(pause) : sim.world().jump(pause);
    const outcome_ptr watch = sim.wait_lost(got->lease);
    REQUIRE(sim.finish(watch, 0ms));
    CHECK(watch->why == errc::lease_lost);
    sim.run_for(1s);
    CHECK_FALSE(got->lease.valid());
    CHECK(got->lease.remaining() == 0ns);
    CHECK(got->lease.valid_until() == until);
}

} // namespace redlock::test
