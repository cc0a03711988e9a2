// SPDX-License-Identifier: BSL-1.0
// Tests of reports: each operation sets every field, whatever the report contained.
#include "simulation.hpp"
#include "waiting_clients.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

std::string fields_of(const report& of)
{
    return fmt::format(
        "{} '{}' rounds {} elapsed {} node timeout {} validity {} argument error '{}' queue {}",
        to_string(of.operation), of.result.message(), of.rounds, of.elapsed.count(), of.node_timeout.count(),
        of.validity.count(), of.argument_error,
        of.queue ? fmt::format("{} of {}", of.queue->ahead, of.queue->waiting) : "none");
}

std::string vote_of(const report& of, std::size_t index)
{
    const master_report& one = of.masters()[index];
    return fmt::format(
        "{} {} after {}: '{}' '{}'", of.name(index), to_string(one.vote), one.elapsed.count(),
        one.reason.message(), one.detail.view());
}

/// A manager with a lease, and a report that may have been used.
struct example
{
    explicit example(bool is_used)
    {
        config options = sim.options();
        options.observer.on_event = [this](const event& what)
        {
            if (const auto* const round = std::get_if<round_decided>(&what))
            {
                last_rounds.at(static_cast<std::size_t>(round->report.operation)) = round->report;
            }
        };
        locks = sim.make_connected_manager(options);
        for (const auto& each : sim.masters())
        {
            each->set("lock:taken", "another");
        }
        sim.master(2).refuse("SET", "-OOM no memory\r\n");
        held = sim.acquire(locks, "own", {.ttl = 10s});
        sim.finish(held);
        const outcome_ptr lost = sim.try_acquire(locks, "taken", {.ttl = 10s});
        sim.finish(lost);
        if (is_used)
        {
            out = lost->report;
            out.operation = operation::release;
            out.result = errc::invalid_ttl;
            out.rounds = 7;
            out.elapsed = 7s;
            out.node_timeout = 7s;
            out.validity = 7s;
            out.queue = queue_position{1, 7, 8, 7ms};
            out.argument_error = "an earlier one";
        }
    }

    auto completion()
    {
        return [this](const auto&...) { done = true; };
    }
    void acquire(std::string resource, acquire_options with)
    {
        locks.async_acquire(std::move(resource), with, out, completion());
    }
    void acquire_kept(keep_options with) { locks.async_acquire_kept("free", with, out, completion()); }
    void shut_down() { sim.finish(sim.shut_down(locks)); }
    void release_first() { sim.finish(sim.release(held->lease)); }

    simulation sim{3};
    lock_manager locks = sim.make_manager();
    outcome_ptr held;
    report out;
    std::array<report, 3> last_rounds; // By operation, as the observer was notified of them.
    bool done = false;
};

struct request
{
    std::string_view name;
    bool has_rounds;
    void (*begin)(example&);
};

constexpr std::array<request, 17> requests{{
    {"an acquire that wins", true, [](example& in) { in.acquire("free", {.ttl = 10s}); }},
    {"an acquire that waits in vain", true,
     [](example& in) { in.acquire("taken", {.ttl = 10s, .wait = 200ms}); }},
    {"an acquire with an invalid ttl", false, [](example& in) { in.acquire("free", {.ttl = 0ms}); }},
    {"an acquire after the shutdown", false,
     [](example& in)
     {
         in.shut_down();
         in.acquire("free", {.ttl = 10s});
     }},
    {"an attempt that loses", true,
     [](example& in)
     { in.locks.async_try_acquire("taken", try_options{.ttl = 10s}, in.out, in.completion()); }},
    {"an attempt whose reason comes after the decision", true,
     [](example& in)
     {
         in.sim.master(1).network.back = 30ms;
         in.locks.async_try_acquire("taken", try_options{.ttl = 10s}, in.out, in.completion());
     }},
    {"an attempt with an invalid name", false,
     [](example& in) { in.locks.async_try_acquire("", try_options{.ttl = 10s}, in.out, in.completion()); }},
    {"a kept acquire that wins", true,
     [](example& in) { in.acquire_kept({.ttl = 10s, .max_hold = no_limit}); }},
    {"a kept acquire with an invalid schedule", false,
     [](example& in) { in.acquire_kept({.ttl = 10s, .max_hold = no_limit, .extend_every = 9s}); }},
    {"an extension that is confirmed", true,
     [](example& in) { in.held->lease.async_extend(20s, in.out, in.completion()); }},
    {"an extension to a shorter ttl", true,
     [](example& in) { in.held->lease.async_extend(2s, in.out, in.completion()); }},
    {"an extension that finds the key gone", true,
     [](example& in)
     {
         for (const auto& each : in.sim.masters())
         {
             each->remove("lock:own");
         }
         in.held->lease.async_extend(20s, in.out, in.completion());
     }},
    {"an extension with an invalid ttl", false,
     [](example& in) { in.held->lease.async_extend(0ms, in.out, in.completion()); }},
    {"an extension after the release", false,
     [](example& in)
     {
         in.release_first();
         in.held->lease.async_extend(20s, in.out, in.completion());
     }},
    {"a release", true, [](example& in) { in.held->lease.async_release(in.out, in.completion()); }},
    {"a second release", false,
     [](example& in)
     {
         in.release_first();
         in.held->lease.async_release(in.out, in.completion());
     }},
    {"a release after the shutdown", false,
     [](example& in)
     {
         in.shut_down();
         in.held->lease.async_release(in.out, in.completion());
     }},
}};

/// Runs a request to its end, and delivers the events.
void run(example& in, const request& what)
{
    what.begin(in);
    CHECK(in.sim.run_until([&] { return in.done; }, 1min));
    in.sim.run_for(1ms);
}

const request& any_request()
{
    return requests.at(GENERATE(range(std::size_t{0}, requests.size())));
}

} // namespace

TEST_CASE("a report that is used again keeps nothing of an earlier operation", "[report]")
{
    const request& what = any_request();
    CAPTURE(what.name);
    example fresh{false};
    example used{true};
    run(fresh, what);
    run(used, what);
    CHECK((fresh.out.rounds > 0) == what.has_rounds);
    CHECK(fields_of(used.out) == fields_of(fresh.out));
    REQUIRE(used.out.masters().size() == fresh.out.masters().size());
    for (std::size_t index = 0; index < fresh.out.masters().size(); ++index)
    {
        CHECK(vote_of(used.out, index) == vote_of(fresh.out, index));
    }
}

TEST_CASE("the observer receives the report of an operation's last round", "[report][observer]")
{
    const request& what = any_request();
    CAPTURE(what.name);
    example in{false};
    run(in, what);
    if (!what.has_rounds)
    {
        return;
    }
    in.out.queue.reset(); // Of the operation, not of a round.
    const report& seen = in.last_rounds.at(static_cast<std::size_t>(in.out.operation));
    CHECK(fields_of(seen) == fields_of(in.out));
    REQUIRE(seen.masters().size() == in.out.masters().size());
    for (std::size_t index = 0; index < seen.masters().size(); ++index)
    {
        // The observer is notified as soon as the result is known.
        if (seen.masters()[index].vote != vote::pending)
        {
            CHECK(vote_of(seen, index) == vote_of(in.out, index));
        }
    }
}

TEST_CASE("a position in the queue names its queue master, and is the last one", "[report][observer][queue]")
{
    const std::string resource = GENERATE("stock", "a", "b", "c", "d");
    simulation sim{5};
    CAPTURE(resource, queue_master_index(sim, resource));
    std::vector<acquire_queued> seen;
    config observed = sim.options();
    observed.observer.on_event = [&](const event& what)
    {
        if (const auto* const queued = std::get_if<acquire_queued>(&what))
        {
            seen.push_back(*queued);
        }
    };
    lock_manager holder = sim.make_connected_manager();
    const outcome_ptr held = sim.acquire(holder, resource, {.ttl = 60s});
    REQUIRE(sim.finish(held));
    lock_manager first = sim.make_connected_manager(observed);
    lock_manager second = sim.make_connected_manager();
    const outcome_ptr waits = sim.acquire(first, resource, {.ttl = 60s, .wait = 5s});
    sim.run_for(1s);
    const outcome_ptr later = sim.acquire(second, resource, {.ttl = 60s, .wait = 10s});
    sim.run_for(1s);
    const std::size_t index = queue_master_index(sim, resource);
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].position.master == index);
    CHECK(seen[0].queue_master == observed.masters[index].name());
    CHECK(seen[0].position.waiting == 1);

    // The same position at another master is news.
    sim.master(index).door = entrance::refuses;
    sim.master(index).break_connections();
    REQUIRE(sim.finish(waits));
    CHECK(waits->error == errc::held_by_other);
    REQUIRE(seen.size() == 2);
    const std::size_t next = seen[1].position.master;
    CHECK(next != index);
    CHECK(seen[1].queue_master == observed.masters[next].name());
    CHECK(seen[1].position.ahead == 0);
    REQUIRE(waits->report.queue);
    CHECK(waits->report.queue->master == next);
    CHECK(waits->report.queue->waiting == 2);
    CHECK(waits->report.queue->key_expires_in < seen[1].position.key_expires_in);
}

TEST_CASE("a release gives each master the node timeout of the lease's present ttl", "[report][release]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 200ms});
    REQUIRE(sim.finish(got));
    CHECK(got->report.node_timeout == 20ms);
    auto expected = 20ms;
    SECTION("as acquired") {}
    SECTION("as extended")
    {
        const outcome_ptr extended = sim.extend(got->lease, 400ms);
        REQUIRE(sim.finish(extended));
        expected = 40ms;
        CHECK(extended->report.node_timeout == expected);
    }
    sim.master(0).hang();
    sim.master(1).hang();
    const clock::time_point began = sim.now();
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(released->report.node_timeout == expected);
    CHECK(released->at - began == expected);
}

} // namespace redlock::test
