// SPDX-License-Identifier: BSL-1.0
// Tests of what the observer is notified of, when, and how often.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <boost/asio/error.hpp>

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

/// The events of a manager.
struct record
{
    config watch(config options)
    {
        options.observer.on_event = [this](const event& what) { all.push_back(what); };
        return options;
    }
    template <class Event>
    std::vector<Event> of() const
    {
        std::vector<Event> found;
        for (const event& each : all)
        {
            if (const Event* const match = std::get_if<Event>(&each))
            {
                found.push_back(*match);
            }
        }
        return found;
    }
    std::vector<round_decided> rounds(operation which) const
    {
        std::vector<round_decided> found = of<round_decided>();
        std::erase_if(found, [which](const auto& each) { return each.report.operation != which; });
        return found;
    }

    std::vector<event> all{};
};

} // namespace

TEST_CASE("a lost round is reported once, as soon as its reason is known", "[observer]")
{
    simulation sim{5};
    sim.forbid_queues();
    record seen;
    lock_manager locks = sim.make_connected_manager(seen.watch(sim.options()));
    // Two are down and three have the key: lost with the first answer, held with the last one.
    for (const std::size_t down : {0U, 1U})
    {
        sim.master(down).door = entrance::refuses;
        sim.master(down).break_connections();
    }
    for (const std::size_t up : {2U, 3U, 4U})
    {
        sim.master(up).set("lock:stock", "another");
    }
    sim.run_until_idle();
    sim.master(4).network.there = 30ms;
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 200ms});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::held_by_other);
    sim.run_for(1s);
    const std::vector<round_decided> rounds = seen.rounds(operation::acquire);
    REQUIRE(rounds.size() == got->report.rounds);
    for (std::size_t at = 0; at < rounds.size(); ++at)
    {
        CHECK(rounds[at].report.result == errc::held_by_other);
        CHECK(rounds[at].report.rounds == at + 1);
        CHECK(rounds[at].report.count(vote::denied) == 3);
        CHECK(rounds[at].report.elapsed >= 30ms);
        CHECK(rounds[at].owner_id.size() == 32);
    }
}

TEST_CASE("a round whose reason never comes is reported at its node timeout", "[observer]")
{
    simulation sim{5};
    sim.forbid_queues();
    record seen;
    config options = sim.options();
    options.node_timeout = 20ms;
    lock_manager locks = sim.make_connected_manager(seen.watch(options));
    for (const std::size_t taken : {0U, 1U})
    {
        sim.master(taken).set("lock:stock", "another");
    }
    sim.master(2).answer("SET", {.bytes = "-ERR something\r\n"}, 1000);
    sim.master(3).hang();
    sim.master(4).hang();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s, .wait = 500ms});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    sim.run_for(1ms);
    const std::vector<round_decided> rounds = seen.rounds(operation::acquire);
    REQUIRE(rounds.size() == got->report.rounds);
    CHECK(rounds.size() > 1);
    for (const round_decided& each : rounds)
    {
        CHECK(each.report.result == errc::no_quorum);
        CHECK(each.report.count(vote::pending) == 0);
        CHECK(each.report.elapsed == 20ms);
    }
}

TEST_CASE("extensions are reported, and one that fails before the loss", "[observer][scenario-99]")
{
    simulation sim{3};
    record seen;
    lock_manager locks = sim.make_connected_manager(seen.watch(sim.options()));
    const bool kept = GENERATE(true, false);
    const outcome_ptr got = kept ? sim.acquire_kept(locks, "stock", {.ttl = 1s, .max_hold = no_limit})
                                 : sim.acquire(locks, "stock", {.ttl = 1s});
    REQUIRE(sim.finish(got));
    REQUIRE(!got->error);
    if (kept)
    {
        sim.run_for(500ms);
    }
    else
    {
        REQUIRE(sim.finish(sim.extend(got->lease, 1s)));
        sim.run_for(1ms);
    }
    REQUIRE(!seen.rounds(operation::extend).empty());
    CHECK(!seen.rounds(operation::extend).back().report.result);
    CHECK(seen.rounds(operation::extend).back().owner_id == got->lease.owner_id());
    CHECK(seen.rounds(operation::extend).back().report.validity > 0ms);
    const std::size_t before = seen.all.size();
    for (const auto& each : sim.masters())
    {
        each->refuse("extend", "-NOPERM no\r\n");
    }
    if (!kept)
    {
        REQUIRE(sim.finish(sim.extend(got->lease, 1s)));
    }
    sim.run_for(2s);
    REQUIRE(seen.of<lease_lost>().size() == 1);
    REQUIRE(std::holds_alternative<lease_lost>(seen.all.back()));
    REQUIRE(seen.all.size() > before + 1);
    const auto* const failed = std::get_if<round_decided>(&seen.all[before]);
    REQUIRE(failed != nullptr);
    CHECK(failed->report.result == errc::no_quorum);
    CHECK(failed->report.count(vote::failed) >= 2);
    CHECK(failed->report.masters()[0].reason == master_errc::no_permission);
}

TEST_CASE("a round that was won in vain is reported, with its reason", "[observer]")
{
    simulation sim{5};
    record seen;
    config options = seen.watch(sim.options());
    acquire_options with{.ttl = 1s, .wait = 200ms};
    error_code reason = errc::validity_exhausted;
    outcome_ptr held;
    outcome_ptr other;
    lock_manager holder = sim.make_connected_manager();
    SECTION("too little of its ttl is left")
    {
        for (const auto& each : sim.masters())
        {
            each->network = {.there = 5ms, .back = 5ms};
        }
        with.min_validity = 985ms;
    }
    SECTION("the queue master has refused, because others wait")
    {
        options.order = order::strict;
        reason = errc::held_by_other;
        held = sim.acquire(holder, "stock", {.ttl = 60s});
        REQUIRE(sim.finish(held));
        other = sim.acquire(holder, "stock", {.ttl = 60s, .wait = no_limit});
    }
    lock_manager locks = sim.make_connected_manager(options);
    for (const auto& each : sim.masters())
    {
        each->remove("lock:stock");
    }
    const outcome_ptr got = sim.acquire(locks, "stock", with);
    REQUIRE(sim.finish(got));
    sim.run_for(1s);
    const std::vector<round_decided> rounds = seen.rounds(operation::acquire);
    REQUIRE(!rounds.empty());
    CHECK(rounds.size() == got->report.rounds);
    CHECK(rounds[0].report.result == reason);
    CHECK(rounds[0].report.count(vote::granted) >= 3);
}

TEST_CASE("an extension reports the end of the lease, even if its own ttl is shorter", "[observer][extend]")
{
    simulation sim{3};
    record seen;
    lock_manager locks = sim.make_connected_manager(seen.watch(sim.options()));
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    for (const auto ttl : {2s, 20s})
    {
        REQUIRE(sim.finish(sim.extend(got->lease, ttl)));
        sim.run_for(1ms);
        REQUIRE(!seen.of<lease_extended>().empty());
        CHECK(seen.of<lease_extended>().back().valid_until == got->lease.valid_until());
    }
    CHECK(seen.of<lease_extended>().size() == 2);
}

TEST_CASE("an extension that finds the key gone is reported before the loss", "[observer][scenario-99]")
{
    simulation sim{3};
    record seen;
    lock_manager locks = sim.make_connected_manager(seen.watch(sim.options()));
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    for (const auto& each : sim.masters())
    {
        each->remove("lock:stock");
    }
    REQUIRE(sim.finish(sim.extend(got->lease, 10s)));
    sim.run_for(1s);
    REQUIRE(seen.of<lease_lost>().size() == 1);
    REQUIRE(seen.rounds(operation::extend).size() == 1);
    CHECK(seen.rounds(operation::extend).front().report.result == errc::lease_lost);
    CHECK(std::holds_alternative<lease_lost>(seen.all.back()));
}

TEST_CASE("an extension that is still in flight at the loss is reported before it", "[observer]")
{
    simulation sim{3};
    record seen;
    lock_manager locks = sim.make_connected_manager(seen.watch(sim.options()));
    const outcome_ptr got = sim.acquire_kept(locks, "stock", {.ttl = 1s, .max_hold = no_limit});
    REQUIRE(sim.finish(got));
    for (const auto& each : sim.masters())
    {
        each->hang();
    }
    sim.run_for(2s);
    REQUIRE(seen.of<lease_lost>().size() == 1);
    std::size_t last_round = 0;
    std::size_t loss = 0;
    for (std::size_t at = 0; at < seen.all.size(); ++at)
    {
        last_round = std::holds_alternative<round_decided>(seen.all[at]) ? at : last_round;
        loss = std::holds_alternative<lease_lost>(seen.all[at]) ? at : loss;
    }
    CHECK(last_round < loss);
    CHECK(seen.rounds(operation::extend).size() > 1);
    for (const auto& each : sim.masters())
    {
        each->resume();
    }
}

TEST_CASE(
    "the end of a lease that isn't kept is a loss, unless it is released before", "[observer][scenario-99]")
{
    simulation sim{3};
    record seen;
    lock_manager locks = sim.make_connected_manager(seen.watch(sim.options()));
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 1s});
    REQUIRE(sim.finish(got));
    SECTION("it expires")
    {
        const clock::time_point until = got->lease.valid_until();
        sim.run_until(until - 1ms);
        CHECK(seen.of<lease_lost>().empty());
        sim.run_for(2ms);
        REQUIRE(seen.of<lease_lost>().size() == 1);
        CHECK(seen.of<lease_lost>().front().owner_id == got->lease.owner_id());
        CHECK(seen.of<lease_lost>().front().reason == errc::lease_lost);
        const outcome_ptr extended = sim.extend(got->lease, 1s);
        REQUIRE(sim.finish(extended));
        CHECK(extended->error == errc::lease_lost);
    }
    SECTION("it is extended before")
    {
        sim.run_for(500ms);
        REQUIRE(sim.finish(sim.extend(got->lease, 2s)));
        sim.run_for(1500ms);
        CHECK(seen.of<lease_lost>().empty());
        sim.run_for(1s);
        CHECK(seen.of<lease_lost>().size() == 1);
    }
    SECTION("it is released")
    {
        REQUIRE(sim.finish(sim.release(got->lease)));
        sim.run_for(2s);
        CHECK(seen.of<lease_lost>().empty());
    }
    SECTION("it is dropped")
    {
        got->lease = {};
        sim.run_for(2s);
        CHECK(seen.of<lease_lost>().empty());
        CHECK(seen.of<lease_released>().size() == 1);
    }
}

TEST_CASE("a release is reported with its votes, even if no caller waits for it", "[observer]")
{
    simulation sim{3};
    record seen;
    lock_manager locks = sim.make_connected_manager(seen.watch(sim.options()));
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(got));
    const std::string owner_id{got->lease.owner_id()};
    errc expected{};
    SECTION("a quorum confirms it")
    {
        got->lease = {};
    }
    SECTION("two masters hang")
    {
        expected = errc::unconfirmed;
        sim.master(0).hang();
        sim.master(1).hang();
        got->lease = {};
    }
    SECTION("the masters disconnect")
    {
        expected = errc::unconfirmed;
        for (const auto& each : sim.masters())
        {
            each->door = entrance::refuses;
            each->break_connections();
        }
        sim.run_until_idle();
        got->lease = {};
    }
    sim.run_for(100ms);
    const std::vector<round_decided> rounds = seen.rounds(operation::release);
    REQUIRE(rounds.size() == 1);
    CHECK(rounds.front().report.result == (expected == errc{} ? error_code{} : error_code{expected}));
    CHECK(rounds.front().owner_id == owner_id);
    REQUIRE(seen.of<lease_released>().size() == 1);
    CHECK(seen.of<lease_released>().front().result == rounds.front().report.result);
}

TEST_CASE("an outage is reported once for each of its reasons, and so is the next one", "[observer]")
{
    simulation sim{3};
    record seen;
    lock_manager locks = sim.make_connected_manager(seen.watch(sim.options()));
    const std::string name = sim.options().masters[1].name();
    std::vector<error_code> reasons;
    for (int outage = 1; outage <= 2; ++outage)
    {
        sim.master(1).door = entrance::refuses;
        sim.master(1).break_connections();
        sim.run_for(5s);
        reasons.emplace_back(asio::error::connection_reset);
        reasons.emplace_back(asio::error::connection_refused);
        sim.master(1).door = entrance::silent;
        sim.run_for(10s);
        reasons.emplace_back(master_errc::connect_timed_out);
        sim.master(1).door = entrance::refuses; // For a reason that was reported.
        sim.run_for(5s);
        sim.master(1).door = entrance::open;
        sim.run_for(5s);
        CHECK(seen.of<master_up>().size() == sim.masters().size() + static_cast<std::size_t>(outage));
        std::vector<error_code> reported;
        for (const master_down& each : seen.of<master_down>())
        {
            CHECK(each.index == 1);
            CHECK(each.name == name);
            reported.push_back(each.reason);
        }
        CHECK(reported == reasons);
    }
    for (int outage = 0; outage < 2; ++outage)
    {
        sim.master(1).break_connections();
        sim.run_for(2s);
    }
    CHECK(seen.of<master_down>().size() == reasons.size() + 2);
}

TEST_CASE("an extension that is confirmed after its own ttl is none", "[observer][extend]")
{
    simulation sim{3};
    record seen;
    lock_manager locks = sim.make_connected_manager(seen.watch(sim.options()));
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    const clock::time_point until = got->lease.valid_until();
    const bool is_late = GENERATE(true, false);
    for (const auto& each : sim.masters())
    {
        each->network.back = is_late ? 200ms : 150ms;
    }
    const outcome_ptr extended = sim.extend(got->lease, 200ms);
    REQUIRE(sim.finish(extended));
    CHECK(extended->error == errc::no_quorum); // At its node timeout.
    sim.run_for(1s);
    CHECK(seen.of<lease_extended>().size() == (is_late ? 0 : 1));
    CHECK(got->lease.valid_until() == until);
}

} // namespace redlock::test
