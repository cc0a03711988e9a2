// SPDX-License-Identifier: BSL-1.0
// Tests of clients that wait in the queue of a resource.
#include "simulation.hpp"
#include "waiting_clients.hpp"

#include "core/queue_timing.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

std::size_t queue_keys(const simulation& sim)
{
    std::size_t count = 0;
    for (const auto& each : sim.masters())
    {
        count += each->queue_key_count();
    }
    return count;
}

/// Sends a message of the queue to the client that has connected last.
void send_to_newest(sim_master& queue_master, std::string_view message)
{
    const std::string channel = queue_master.last("SUBSCRIBE").words[1];
    queue_master.link().reply(fmt::format(
        ">3\r\n$7\r\nmessage\r\n${}\r\n{}\r\n${}\r\n{}\r\n", channel.size(), channel, message.size(),
        message));
}

config in_strict_order(const simulation& sim)
{
    config options = sim.options();
    options.order = order::strict;
    return options;
}

} // namespace

TEST_CASE("waiting clients are served in their order, each woken by the release before it")
{
    simulation sim{5};
    const clock::time_point start = sim.now();
    waiting_clients with{sim, 4, sim.options()};
    sim.run_for(1s);
    const std::size_t sets = sim.count("SET");
    lease held = std::move(with.held);
    for (std::size_t next = 0; next < with.waits.size(); ++next)
    {
        const clock::time_point began = sim.now();
        const outcome_ptr released = sim.release(held);
        REQUIRE(sim.finish(with.waits[next], 1s));
        CHECK(!with.waits[next]->error);
        // The release, the message, the round.
        CHECK(with.waits[next]->at - began == 2 * trip);
        // The first client also tries all masters at each heartbeat.
        const auto heartbeats = static_cast<std::uint32_t>((sim.now() - start) / 200ms);
        CHECK(with.waits[next]->report.rounds <= 2 + heartbeats);
        for (std::size_t later = next + 1; later < with.waits.size(); ++later)
        {
            CHECK_FALSE(with.waits[later]->done);
        }
        held = std::move(with.waits[next]->lease);
    }
    // Nobody but the woken one has tried: a question and the other four.
    CHECK(sim.count("SET") - sets == with.waits.size() * 4);
    const outcome_ptr released = sim.release(held);
    REQUIRE(sim.finish(released));
    CHECK(queue_keys(sim) == 0);
}

TEST_CASE("a thousand waiting clients are served in their order, each with one round", "[queue]")
{
    constexpr std::size_t many = 1000;
    simulation sim{5};
    std::vector<lock_manager> managers;
    for (std::size_t count = 0; count < 10; ++count)
    {
        managers.push_back(sim.make_connected_manager());
    }
    const outcome_ptr first = sim.acquire(managers[0], "stock", {.ttl = 60s});
    REQUIRE(sim.finish(first));
    std::vector<outcome_ptr> waits;
    for (std::size_t index = 0; index < many; ++index)
    {
        waits.push_back(
            sim.acquire(managers[index % managers.size()], "stock", {.ttl = 60s, .wait = no_limit}));
        sim.run_for(2ms); // Arrivals are counted in milliseconds.
    }
    const std::size_t sets = sim.count("SET");
    const clock::time_point began = sim.now();
    lease held = std::move(first->lease);
    for (const outcome_ptr& next : waits)
    {
        const outcome_ptr released = sim.release(held);
        REQUIRE(sim.finish(next, 1s));
        REQUIRE(!next->error);
        held = std::move(next->lease);
    }
    // The message of each release takes one round trip, and so does the round: a question, and four SETs.
    CHECK(sim.now() - began <= many * 2 * trip * 11 / 10);
    CHECK(sim.count("SET") - sets == many * 4);
    const outcome_ptr released = sim.release(held);
    REQUIRE(sim.finish(released));
    sim.run_until_idle();
    CHECK(queue_keys(sim) == 0);
}

TEST_CASE("a waiting client without messages polls")
{
    simulation sim{3};
    for (const auto& each : sim.masters())
    {
        const int kind = GENERATE(0, 1, 2);
        each->knows_hello = kind != 0;
        if (kind != 0)
        {
            each->habits[kind == 1 ? "SUBSCRIBE" : "PUBLISH"] =
                "-NOPERM this user has no permissions to access one of the channels\r\n";
        }
    }
    waiting_clients with{sim, 1, sim.options()};
    sim.run_for(100ms);
    const outcome_ptr released = sim.release(with.held);
    REQUIRE(sim.finish(with.waits[0], 300ms));
    CHECK(!with.waits[0]->error);
}

TEST_CASE("a client that connected while a master's memory was full gets messages once it isn't")
{
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    queue_master.habits["SUBSCRIBE"] = full_memory;
    waiting_clients with{sim, 1, sim.options()};
    sim.run_for(5s);
    const std::size_t refused = queue_master.count("SUBSCRIBE");
    CHECK(refused > 5); // By two clients, with each probe.
    queue_master.habits.erase("SUBSCRIBE");
    sim.run_for(3s);
    CHECK(queue_master.count("SUBSCRIBE") == refused + 2);
    const std::size_t polls = queue_master.count("ask");
    sim.run_for(3 * core::max_first_poll);
    CHECK(queue_master.count("ask") - polls <= 2);
    const outcome_ptr released = sim.release(with.held);
    REQUIRE(sim.finish(with.waits[0], 5 * trip));
    CHECK(!with.waits[0]->error);
    sim.run_for(30s);
    CHECK(queue_master.count("SUBSCRIBE") == refused + 2);
    CHECK(sim.count("HELLO") == 2 * 3); // No connection was lost.
}

TEST_CASE("a waiting client has one entry, also after its subscription was put off", "[queue]")
{
    // Until then its name said that it polls.
    const auto how = GENERATE(0, 1, 2);
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    queue_master.habits["SUBSCRIBE"] = how == 2 ? std::string{} : full_memory;
    std::vector<queue_position> seen;
    config options = sim.options();
    options.observer.on_event = [&](const event& what)
    {
        if (const auto* queued = std::get_if<acquire_queued>(&what))
        {
            seen.push_back(queued->position);
        }
    };
    waiting_clients with{sim, 1, options, 1h};
    sim.run_for(3s);
    queue_master.habits.erase("SUBSCRIBE");
    if (how > 0)
    {
        queue_master.break_connections();
        sim.run_for(300ms); // Without a connection, it couldn't leave.
    }
    sim.run_for(GENERATE(0ms, 150ms, 600ms, 1100ms, 5s));
    SECTION("it is woken by a release")
    {
        const outcome_ptr released = sim.release(with.held);
        REQUIRE(sim.finish(with.waits[0], core::queue_heartbeat));
        CHECK(!with.waits[0]->error);
        sim.run_for(1s);
    }
    SECTION("it asks all masters as the first one")
    {
        sim.run_for(2s);
        for (const auto& each : sim.masters())
        {
            if (each.get() != &queue_master)
            {
                each->remove("lock:stock");
            }
        }
        REQUIRE(sim.finish(with.waits[0], 2 * core::queue_heartbeat));
        CHECK(!with.waits[0]->error);
        sim.run_for(1s);
    }
    SECTION("it leaves")
    {
        with.waits[0]->cancel.emit(asio::cancellation_type::terminal);
        sim.run_for(100ms);
    }
    CHECK(queue_keys(sim) == 0);
    for (const queue_position& each : seen)
    {
        CHECK(each.ahead == 0U);
        CHECK(each.waiting == 1);
    }
}

TEST_CASE("a client keeps its turn when its subscription is proven", "[queue]")
{
    const bool strict = GENERATE(false, true);
    const int phase = GENERATE(range(0, 25));
    const int early = GENERATE(range(0, 10));
    simulation sim{3};
    const config options = strict ? in_strict_order(sim) : sim.options();
    lock_manager holder = sim.make_connected_manager(options);
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(held));
    sim_master& queue_master = queue_master_of(sim, "stock");
    queue_master.habits["SUBSCRIBE"] = full_memory;
    lock_manager first = sim.make_connected_manager(options);
    const clock::time_point connected = sim.now();
    queue_master.habits.erase("SUBSCRIBE");
    lock_manager second = sim.make_connected_manager(options);
    sim.run_for(phase * 5ms);
    const outcome_ptr one = sim.acquire(first, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(5ms);
    const outcome_ptr two = sim.acquire(second, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_until(connected + 1s - early * 2ms); // The next probe requests the subscription.
    const outcome_ptr released = sim.release(held->lease);
    REQUIRE(sim.run_until([&] { return one->done || two->done; }, 5s));
    CHECK(!two->done);
}

TEST_CASE("a client has one entry if its subscription is proven while it rests after a lost round", "[queue]")
{
    const int early = GENERATE(range(0, 50));
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    for (const auto& each : sim.masters())
    {
        if (each.get() != &queue_master)
        {
            each->set("lock:stock", "other", 60s);
            each->network = {.there = 20ms, .back = 20ms};
        }
    }
    queue_master.habits["SUBSCRIBE"] = full_memory;
    lock_manager locks = sim.make_connected_manager();
    sim.run_for(1500ms);
    const std::size_t requests = queue_master.count("SUBSCRIBE");
    REQUIRE(sim.run_until([&] { return queue_master.count("SUBSCRIBE") > requests; }, 2s));
    const clock::time_point last = sim.now();
    queue_master.habits.erase("SUBSCRIBE");
    sim.run_until(last + 1s - early * 2ms);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(48ms);
    if (!queue_master.value("lock:stock"))
    {
        queue_master.set("lock:stock", "other", 1h);
    }
    sim.run_for(3s);
    for (const auto& each : sim.masters())
    {
        if (each.get() != &queue_master)
        {
            each->remove("lock:stock");
        }
    }
    REQUIRE(sim.finish(got, 1s)); // The first client asks all masters at its heartbeat.
    CHECK(!got->error);
}

TEST_CASE(
    "neither a clock that jumps ahead nor a server that stands still changes the order of the queue",
    "[queue]")
{
    // All deadlines in the queue pass at once.
    const bool jumps = GENERATE(false, true);
    simulation sim{3, static_cast<std::uint64_t>(GENERATE(range(1, 11)))};
    config options = in_strict_order(sim);
    options.node_timeout = 3s;
    waiting_clients with{sim, 6, options, 60s};
    sim.run_for(777ms);
    sim_master& queue_master = queue_master_of(sim, "stock");
    if (jumps)
    {
        queue_master.clock_of_its_own().jump(sim.now(), 2s);
    }
    else
    {
        queue_master.hang();
        sim.run_for(1500ms);
        queue_master.resume();
    }
    sim.run_for(3s);
    outcome_ptr released = sim.release(with.held);
    for (const outcome_ptr& each : with.waits)
    {
        REQUIRE(sim.finish(each, 10s));
        REQUIRE(!each->error);
        released = sim.release(each->lease);
        REQUIRE(sim.finish(released));
    }
}

TEST_CASE("a client that died as the first in the queue doesn't hold it up", "[queue]")
{
    // Only the first one asks all masters, and the queue master alone has a key.
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    waiting_clients with{sim, 2, sim.options(), 1h};
    sim.run_for(1s);
    for (const auto& each : sim.masters())
    {
        each->door = entrance::refuses;
        each->link(2).cut();
        if (each.get() != &queue_master)
        {
            each->remove("lock:stock");
        }
    }
    REQUIRE(sim.finish(with.waits[1], 5s));
    CHECK(!with.waits[1]->error);
}

TEST_CASE("clients that died in the queue don't hold it up, however many they are", "[queue]")
{
    // Nobody drops them while the queue master has a key, whoever owns it.
    const bool is_ghost = GENERATE(false, true);
    const std::size_t dead = GENERATE(1U, 7U, 101U, 600U);
    simulation sim{3};
    config patient = sim.options();
    patient.response_timeout = 10min;
    lock_manager holds = sim.make_connected_manager(patient);
    const outcome_ptr held = sim.acquire(holds, "stock", {.ttl = 1h});
    REQUIRE(sim.finish(held));
    lock_manager dies = sim.make_connected_manager(patient);
    std::vector<outcome_ptr> waits;
    for (std::size_t each = 0; each < dead; ++each)
    {
        waits.push_back(sim.acquire(dies, "stock", {.ttl = 1h, .wait = no_limit}));
        sim.run_for(1ms);
    }
    for (const auto& each : sim.masters())
    {
        each->link().hold();
    }
    lock_manager lives = sim.make_connected_manager();
    const outcome_ptr got = sim.acquire(lives, "stock", {.ttl = 1h, .wait = no_limit});
    sim.run_for(30s); // They are late.
    REQUIRE(!got->done);
    if (is_ghost)
    {
        for (const auto& each : sim.masters())
        {
            if (each.get() != &queue_master_of(sim, "stock"))
            {
                each->remove("lock:stock");
            }
        }
    }
    else
    {
        sim.release(held->lease);
    }
    REQUIRE(sim.finish(got, 3s));
    CHECK(!got->error);
}

TEST_CASE("a waiting client without messages polls faster again once it is nearer")
{
    simulation sim{3};
    for (const auto& each : sim.masters())
    {
        each->knows_hello = false;
    }
    waiting_clients with{sim, 2, sim.options()};
    sim.run_for(20s); // Its questions have become rare.
    const outcome_ptr released = sim.release(with.held);
    REQUIRE(sim.finish(with.waits[0], 300ms));
    sim_master& queue_master = queue_master_of(sim, "stock");
    const std::size_t before = queue_master.count("ask");
    REQUIRE(sim.run_until([&] { return queue_master.count("ask") > before; }, 1s));
    const std::size_t first = queue_master.count("ask");
    sim.run_for(2 * core::max_first_poll);
    CHECK(queue_master.count("ask") - first > 8);
}

TEST_CASE("a master that refused questions is asked again after a reconnect")
{
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    queue_master.habits["ask"] = "-NOPERM this user has no permissions to run this command\r\n";
    waiting_clients with{sim, 1, sim.options()};
    sim.run_for(3s);
    const std::size_t refused = queue_master.count("ask");
    REQUIRE(refused > 0);
    sim.run_for(3s);
    REQUIRE(queue_master.count("ask") == refused);
    queue_master.habits.clear();
    queue_master.break_connections();
    sim.run_for(3s);
    CHECK(queue_master.count("ask") > refused);
    CHECK(queue_master.queue_key_count() > 0);
}

TEST_CASE("a resource that the user may not lock doesn't end the queues of others", "[queue][scenario-110]")
{
    const std::string answer = GENERATE(
        "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n",
        "-NOPERM No permissions to access a key\r\n");
    simulation sim{3};
    waiting_clients with{sim, 1, in_strict_order(sim)};
    lock_manager locks = sim.make_connected_manager(in_strict_order(sim));
    for (const auto& each : sim.masters())
    {
        for (const char* const what : {"ask", "SET"})
        {
            each->habits[what] = answer;
        }
    }
    for (int number = 0; number < 10; ++number)
    {
        const outcome_ptr forbidden =
            sim.try_acquire(locks, "forbidden " + std::to_string(number), {.ttl = 60s});
        REQUIRE(sim.finish(forbidden));
        CHECK(forbidden->error == errc::no_quorum);
    }
    for (const auto& each : sim.masters())
    {
        each->habits.clear();
    }
    const outcome_ptr released = sim.release(with.held);
    REQUIRE(sim.run_until([&] { return !queue_master_of(sim, "stock").value("lock:stock"); }, 1s));
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::held_by_other);
    REQUIRE(sim.finish(with.waits[0]));
    CHECK(!with.waits[0]->error);
}

TEST_CASE("a waiting client reports its position in the queue", "[report][observer]")
{
    simulation sim{5};
    waiting_clients with{sim, 2, sim.options()};
    std::vector<acquire_queued> told;
    config observed = sim.options();
    observed.observer.on_event = [&](const event& what)
    {
        if (const auto* queued = std::get_if<acquire_queued>(&what))
        {
            told.push_back(*queued);
        }
    };
    lock_manager third = sim.make_connected_manager(observed);
    const outcome_ptr waits = sim.acquire(third, "stock", {.ttl = 60s, .wait = 2s});
    sim.run_for(1s);
    const std::size_t index = queue_master_index(sim, "stock");
    // Heartbeats that show the same position are no news.
    REQUIRE(told.size() == 1);
    CHECK(told[0].resource == "stock");
    const std::string queue_master = observed.masters[index].name();
    CHECK(told[0].queue_master == queue_master);
    CHECK(told[0].position.master == index);
    CHECK(told[0].position.ahead == 2);
    CHECK(told[0].position.waiting == 3);
    REQUIRE(told[0].position.key_expires_in);
    CHECK(*told[0].position.key_expires_in > 59s);
    CHECK(*told[0].position.key_expires_in <= 60s);

    with.waits[0]->cancel.emit(asio::cancellation_type::terminal);
    REQUIRE(sim.finish(waits, 5s));
    CHECK(waits->error == errc::held_by_other);
    REQUIRE(told.size() == 2);
    CHECK(told[1].position.ahead == 1);
    CHECK(told[1].position.waiting == 2);
    REQUIRE(waits->report.queue);
    CHECK(waits->report.queue->master == index);
    CHECK(waits->report.queue->ahead == 1);
    CHECK(waits->report.queue->waiting == 2);
    const std::string text = waits->report.to_string();
    CHECK(text.find("; position 2 of 2 in the queue at " + queue_master) != std::string::npos);
}

TEST_CASE("a lost message costs a heartbeat")
{
    simulation sim{5};
    waiting_clients with{sim, 1, sim.options()};
    sim.run_for(1s);
    // The key is deleted by somebody who doesn't know the queue.
    for (const auto& each : sim.masters())
    {
        each->remove("lock:stock");
    }
    REQUIRE(sim.finish(with.waits[0], 300ms + 2 * trip));
    CHECK(!with.waits[0]->error);
}

TEST_CASE("a client that stops waiting leaves the queue")
{
    simulation sim{5};
    waiting_clients with{sim, 2, sim.options()};
    REQUIRE(queue_keys(sim) == 2);
    SECTION("cancelled")
    {
        for (const outcome_ptr& each : with.waits)
        {
            each->cancel.emit(asio::cancellation_type::terminal);
            REQUIRE(sim.finish(each));
        }
    }
    SECTION("shut down")
    {
        for (lock_manager& each : with.managers)
        {
            const outcome_ptr ended = sim.shut_down(each);
            REQUIRE(sim.finish(ended));
        }
    }
    sim.run_until_idle();
    CHECK(queue_keys(sim) == 0);
    const outcome_ptr late = sim.acquire(with.holder, "stock", {.ttl = 10s, .wait = 700ms});
    REQUIRE(sim.finish(late));
    CHECK(late->error == errc::held_by_other);
    sim.run_until_idle();
    CHECK(queue_keys(sim) == 0);
}

TEST_CASE("a client that moves to another queue master leaves the queue of the former one")
{
    simulation sim{3};
    sim_master& first = queue_master_of(sim, "stock");
    waiting_clients with{sim, 1, sim.options()};
    const auto queued_at = [&](bool at_first)
    {
        return std::all_of(
            sim.masters().begin(), sim.masters().end(),
            [&](const auto& each)
            { return (each.get() == &first) == at_first || each->queue_key_count() == 0; });
    };
    REQUIRE(queued_at(true));
    first.door = entrance::refuses;
    first.break_connections();
    const auto elsewhere = [&] { return queue_keys(sim) > first.queue_key_count(); };
    REQUIRE(sim.run_until(elsewhere, 5s));
    const std::size_t asked = first.count("ask");
    first.door = entrance::open;
    REQUIRE(sim.run_until([&] { return first.count("ask") > asked; }, 5s));
    sim.run_for(2 * trip);
    CHECK(queued_at(true));
}

TEST_CASE(
    "a client whose queue master changes during its round leaves the queue of the former one", "[queue]")
{
    simulation sim{5};
    sim_master& former = queue_master_of(sim, "stock");
    sim_master& next = next_queue_master_of(sim, "stock");
    waiting_clients with{sim, 0, sim.options()};
    next.remove("lock:stock");
    former.network = {.there = 2ms, .back = 2ms};
    // In this order each round has a question to the queue master.
    lock_manager locks = sim.make_connected_manager(in_strict_order(sim));
    const outcome_ptr patient = sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit});
    // The answer comes too late for another one, whose node timeout is short: it passes the queue master over.
    const outcome_ptr hasty = sim.acquire(locks, "stock", {.ttl = 20ms, .wait = no_limit});
    REQUIRE(sim.run_until([&] { return next.queue_key_count() > 0; }, 1s));
    sim.run_for(10ms);
    CHECK_FALSE(patient->done);
    CHECK(former.queue_key_count() == 0);
}

TEST_CASE("a client whose former queue master granted its round wakes the next client there", "[queue]")
{
    simulation sim{5};
    sim_master& former = queue_master_of(sim, "stock");
    sim_master& next = next_queue_master_of(sim, "stock");
    waiting_clients with{sim, 0, sim.options()};
    next.remove("lock:stock");
    former.remove("lock:stock");
    former.network = {.there = 2ms, .back = 2ms};
    lock_manager locks = sim.make_connected_manager(in_strict_order(sim));
    lock_manager others = sim.make_connected_manager(in_strict_order(sim));
    const outcome_ptr patient = sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(trip);
    // It enters the queue of the former queue master, which has granted the round before.
    const outcome_ptr other = sim.acquire(others, "stock", {.ttl = 60s, .wait = no_limit});
    const outcome_ptr hasty = sim.acquire(locks, "stock", {.ttl = 20ms, .wait = no_limit});
    REQUIRE(sim.run_until([&] { return former.count("release") > 0; }, 1s));
    const std::size_t asked = former.count("ask");
    // Sooner than its heartbeat.
    sim.run_for(10ms);
    CHECK(former.count("ask") > asked);
}

TEST_CASE("a client whose round is won after the queue master timed out leaves the queue", "[queue]")
{
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    waiting_clients with{sim, 0, in_strict_order(sim)};
    lock_manager locks = sim.make_connected_manager(in_strict_order(sim));
    for (const auto& each : sim.masters())
    {
        // Just in time; the queue master is not.
        each->network.back = each.get() == &queue_master ? 60ms : 40ms;
        if (each.get() != &queue_master)
        {
            each->remove("lock:stock");
        }
    }
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit});
    REQUIRE(sim.finish(got, 1s));
    CHECK(!got->error);
    sim.run_for(10 * trip);
    CHECK(queue_keys(sim) == 0);
}

TEST_CASE("a client whose last round asks a queue master that is trusted again is in one queue", "[queue]")
{
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    waiting_clients with{sim, 0, in_strict_order(sim)};
    lock_manager locks = sim.make_connected_manager(in_strict_order(sim));
    // The first client at the next queue master. It can't reach this one.
    queue_master.door = entrance::refuses;
    lock_manager cut_off = sim.make_manager(in_strict_order(sim));
    const outcome_ptr first = sim.acquire(cut_off, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(1s);
    // This one gives no answer in time, and is passed over for a second. The other client is seen at the next one.
    queue_master.network.back = 60ms;
    const outcome_ptr earlier = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 200ms});
    REQUIRE(sim.finish(earlier, 1s));
    queue_master.network.back = 100us;
    // Its only round begins a node timeout before the end, when this one has just been trusted again.
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 905ms});
    REQUIRE(sim.run_until([&] { return queue_master.queue_key_count() > 0; }, 1s));
    REQUIRE(sim.finish(got, 1s));
    REQUIRE(got->report.rounds == 1);
    sim.run_for(trip);
    CHECK(queue_master.queue_key_count() == 0);
    first->cancel.emit(asio::cancellation_type::terminal);
    REQUIRE(sim.finish(first));
    sim.run_for(trip);
    CHECK(queue_keys(sim) == 0);
}

TEST_CASE("an acquire with a short ttl doesn't end the queues of other resources", "[queue][scenario-110]")
{
    simulation sim{3};
    waiting_clients with{sim, 1, in_strict_order(sim)};
    lock_manager locks = sim.make_connected_manager(in_strict_order(sim));
    for (const auto& each : sim.masters())
    {
        each->network.back = 3ms;
    }
    const outcome_ptr hasty = sim.acquire(locks, "other", {.ttl = 20ms, .wait = 60ms});
    REQUIRE(sim.finish(hasty));
    CHECK(hasty->error == errc::no_quorum);
    for (const auto& each : sim.masters())
    {
        each->network.back = 100us;
    }
    const outcome_ptr released = sim.release(with.held);
    REQUIRE(sim.run_until([&] { return sim.keys() == 0; }, 1s));
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::held_by_other);
    REQUIRE(sim.finish(with.waits[0]));
    CHECK(!with.waits[0]->error);
}

TEST_CASE("a client whose first round asks nobody leaves the queue of the former queue master", "[queue]")
{
    simulation sim{3};
    sim_master& former = queue_master_of(sim, "stock");
    sim_master& next = next_queue_master_of(sim, "stock");
    waiting_clients with{sim, 1, sim.options()};
    lock_manager locks = sim.make_connected_manager();
    // It sees that others wait. So the next acquire begins in the queue.
    const outcome_ptr earlier = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 1ms});
    REQUIRE(sim.finish(earlier));
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 200ms});
    sim.run_for(20ms);
    // The queue master is passed over because of another acquire. The first round has plain SETs, a node timeout
    // before the end, and the new queue master grants it.
    former.network.back = 30ms;
    const outcome_ptr hasty = sim.acquire(locks, "stock", {.ttl = 20ms, .wait = 60ms});
    REQUIRE(sim.finish(hasty));
    former.network.back = 100us;
    next.remove("lock:stock");
    REQUIRE(sim.finish(got));
    with.waits[0]->cancel.emit(asio::cancellation_type::terminal);
    REQUIRE(sim.finish(with.waits[0]));
    sim.run_for(trip);
    CHECK(queue_keys(sim) == 0);
}

TEST_CASE("a client that has the lock leaves the queue of a queue master that failed", "[queue]")
{
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    waiting_clients with{sim, 1, sim.options()};
    for (const auto& each : sim.masters())
    {
        if (each.get() != &queue_master)
        {
            each->remove("lock:stock");
        }
    }
    queue_master.answer("ask", {.bytes = "-OOM command not allowed\r\n"});
    SECTION("before the quorum")
    {
        for (const auto& each : sim.masters())
        {
            each->network.back = each.get() == &queue_master ? 100us : 5ms;
        }
    }
    SECTION("after the quorum")
    {
        queue_master.network.back = 5ms;
    }
    // At its heartbeat.
    REQUIRE(sim.finish(with.waits[0], 1s));
    REQUIRE(!with.waits[0]->error);
    sim.run_for(20ms);
    CHECK(queue_keys(sim) == 0);
}

TEST_CASE("an acquire of one round leaves no queue, which it never enters, if its question fails", "[queue]")
{
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    lock_manager locks = sim.make_connected_manager(in_strict_order(sim));
    queue_master.answer("ask", {.bytes = "-OOM command not allowed\r\n"});
    for (const auto& each : sim.masters())
    {
        each->network.back = each.get() == &queue_master ? 100us : 5ms;
    }
    SECTION("before the quorum") {}
    SECTION("after the quorum")
    {
        queue_master.network.back = 20ms;
    }
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(got, 1s));
    REQUIRE(!got->error);
    sim.run_for(50ms);
    CHECK(queue_master.count("ask") == 1);
    CHECK(queue_master.count("release") == 0);
}

TEST_CASE("a client leaves the queue with the grace of its question", "[queue]")
{
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    waiting_clients with{sim, 1, sim.options()};
    with.waits[0]->cancel.emit(asio::cancellation_type::terminal);
    REQUIRE(sim.finish(with.waits[0]));
    sim.run_for(trip);
    const std::vector<std::string>& left = queue_master.last("release").words;
    REQUIRE(left.at(6) == "left");
    CHECK(left.at(5) == queue_master.last("ask").words.back());
}

TEST_CASE("a client whose question fails leaves that queue once", "[queue]")
{
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    waiting_clients with{sim, 1, sim.options()};
    queue_master.answer("ask", {.bytes = "-OOM command not allowed\r\n"});
    const std::size_t released = queue_master.count("release");
    // At its heartbeat.
    REQUIRE(sim.run_until([&] { return queue_keys(sim) > queue_master.queue_key_count(); }, 1s));
    sim.run_for(10ms);
    CHECK(queue_master.count("release") == released + 1);
    CHECK(queue_master.queue_key_count() == 0);
}

TEST_CASE("a queue master that connects during a round isn't passed over", "[queue]")
{
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    waiting_clients with{sim, 0, sim.options()};
    lock_manager locks = sim.make_connected_manager();
    sim.run_for(10s);
    for (const auto& each : sim.masters())
    {
        each->network.back = each.get() == &queue_master ? 100us : 20ms;
    }
    queue_master.break_connections();
    sim.run_for(trip);
    const outcome_ptr waits = sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(100ms);
    CHECK(queue_master.queue_key_count() > 0);
    CHECK(sim.count("ask") == queue_master.count("ask"));
}

TEST_CASE("waiting clients that are killed cost the others nothing")
{
    simulation sim{5};
    waiting_clients with{sim, 4, sim.options()};
    for (std::size_t killed = 0; killed < 3; ++killed)
    {
        with.managers.erase(with.managers.begin());
    }
    sim.run_for(10ms);
    const clock::time_point began = sim.now();
    const outcome_ptr released = sim.release(with.held);
    REQUIRE(sim.finish(with.waits[3], 1s));
    CHECK(!with.waits[3]->error);
    CHECK(with.waits[3]->at - began == 2 * trip);
}

TEST_CASE("messages to a client that has stopped waiting are answered, and don't end the connection")
{
    simulation sim{5};
    waiting_clients with{sim, 1, sim.options()};
    sim_master& queue_master = queue_master_of(sim, "stock");
    with.waits[0]->cancel.emit(asio::cancellation_type::terminal);
    REQUIRE(sim.finish(with.waits[0]));
    sim.run_until_idle();
    const auto commands = [&] { return queue_master.log().size(); };
    const std::size_t before = commands();
    const auto send = [&](std::string_view message, int times)
    {
        for (int count = 0; count < times; ++count)
        {
            send_to_newest(queue_master, message);
        }
        sim.run_until_idle();
    };
    send("r0", 1);
    CHECK(commands() == before);
    send("r1", 100);
    CHECK(commands() == before + 1); // It leaves again.
    sim.run_for(1s);                 // That may have been lost, if it is still called after a grace.
    const std::size_t left = commands();
    send("r1", 100);
    CHECK(commands() == left + 1);
    CHECK(queue_master.clients() == 2);
    // No client of this manager has had this number.
    send("r2", 16);
    CHECK(queue_master.clients() == 1);
}

TEST_CASE("late messages to a client that has acquired the lock don't end the connection", "[queue]")
{
    simulation sim{3};
    waiting_clients with{sim, 1, sim.options()};
    sim_master& queue_master = queue_master_of(sim, "stock");
    const outcome_ptr released = sim.release(with.held);
    REQUIRE(sim.finish(with.waits[0]));
    REQUIRE(!with.waits[0]->error);
    for (const std::string_view message : {"r1", "k1"})
    {
        for (int count = 0; count < 20; ++count)
        {
            send_to_newest(queue_master, message);
        }
        sim.run_until_idle();
        CHECK(queue_master.clients() == 2);
    }
}

TEST_CASE("a queue master that is overruled again and again is passed over", "[queue]")
{
    simulation sim{3};
    sim_master& wrong = queue_master_of(sim, "stock");
    waiting_clients with{sim, 1, sim.options()};
    const auto asked_elsewhere = [&]
    {
        return std::any_of(
            sim.masters().begin(), sim.masters().end(),
            [&](const auto& each) { return each.get() != &wrong && each->count("ask") > 0; });
    };
    REQUIRE_FALSE(asked_elsewhere());
    wrong.remove("lock:stock");
    CHECK(sim.run_until(asked_elsewhere, 2s));
    const outcome_ptr released = sim.release(with.held);
    REQUIRE(sim.finish(with.waits[0], 1s));
    CHECK(!with.waits[0]->error);
}

TEST_CASE("the pause after a lost round is ended by a release, and by no other message", "[queue]")
{
    simulation sim{3};
    sim_master& wrong = queue_master_of(sim, "stock");
    waiting_clients with{sim, 1, sim.options()};
    wrong.remove("lock:stock");
    // Its pauses double. Now one lasts for 4 ms at least.
    REQUIRE(sim.run_until([&] { return wrong.count("release") == 5; }, 2s));
    const std::size_t asked = wrong.count("ask");
    send_to_newest(wrong, "k1");
    sim.run_for(3ms);
    CHECK(wrong.count("ask") == asked);
    send_to_newest(wrong, "r1");
    sim.run_for(trip);
    CHECK(wrong.count("ask") == asked + 1);
}

TEST_CASE("a client whose connection was lost during its pause asks before it begins a round", "[queue]")
{
    simulation sim{3};
    sim_master& wrong = queue_master_of(sim, "stock");
    waiting_clients with{sim, 1, sim.options()};
    wrong.remove("lock:stock");
    // Its pauses double. Now one lasts for 16 ms at least, and it has connected again before that.
    REQUIRE(sim.run_until([&] { return wrong.count("release") == 7; }, 2s));
    const std::size_t asked = wrong.count("ask");
    const std::size_t sets = sim.count("SET");
    wrong.link().break_off();
    REQUIRE(sim.run_until([&] { return wrong.count("ask") > asked; }, 1s));
    sim.run_for(trip / 4);
    CHECK(sim.count("SET") == sets);
}

TEST_CASE("messages of a master that isn't the queue master begin no round", "[queue][scenario-89]")
{
    simulation sim{3};
    waiting_clients with{sim, 1, sim.options()};
    sim_master& other = next_queue_master_of(sim, "stock");
    const std::size_t sets = sim.count("SET");
    const std::size_t asked = sim.count("ask");
    for (const std::string_view message : {"r1", "k1"})
    {
        send_to_newest(other, message);
        sim.run_for(10 * trip);
    }
    CHECK(sim.count("SET") == sets);
    CHECK(sim.count("ask") == asked);
}

TEST_CASE("a client that moved to another queue master leaves the one that still calls it", "[queue]")
{
    simulation sim{3};
    waiting_clients with{sim, 1, sim.options()};
    sim_master& former = queue_master_of(sim, "stock");
    former.door = entrance::refuses;
    former.break_connections();
    sim.run_for(1s);
    former.door = entrance::open;
    sim_master& present = next_queue_master_of(sim, "stock");
    // It is connected again, and can't be the queue master.
    former.refuse("ask", "-ERR refused\r\n");
    REQUIRE(sim.run_until([&] { return former.clients() == 2; }, 5s));
    sim.run_for(100ms);
    const std::size_t left = former.count("leave") + former.count("release");
    const std::size_t asked = present.count("ask");
    const std::size_t sets = sim.count("SET");
    send_to_newest(former, "k1");
    sim.run_for(10 * trip);
    CHECK(former.count("leave") + former.count("release") == left + 1);
    CHECK(sim.count("SET") == sets);
    CHECK(present.count("ask") == asked);
}

TEST_CASE("a client that gives up in its pause after a reconnect holds up nobody", "[queue]")
{
    simulation sim{3};
    sim_master& wrong = queue_master_of(sim, "stock");
    waiting_clients with{sim, 1, sim.options()};
    wrong.remove("lock:stock");
    // Its pauses double. Now one lasts for 16 ms at least, and it has connected again before that.
    REQUIRE(sim.run_until([&] { return wrong.count("release") == 7; }, 2s));
    const std::size_t subscribed = wrong.count("SUBSCRIBE");
    const std::size_t asked = wrong.count("ask");
    wrong.link().break_off();
    REQUIRE(sim.run_until([&] { return wrong.count("SUBSCRIBE") > subscribed; }, 1s));
    sim.run_for(2 * trip);
    REQUIRE(wrong.count("ask") == asked);
    with.waits[0]->cancel.emit(asio::cancellation_type::terminal);
    REQUIRE(sim.finish(with.waits[0]));
    lock_manager second = sim.make_connected_manager(sim.options());
    wrong.set("lock:stock", "another", 1h);
    const outcome_ptr next = sim.acquire(second, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(50ms);
    REQUIRE(!next->done);
    wrong.remove("lock:stock");
    const clock::time_point released = sim.now();
    REQUIRE(sim.finish(sim.release(with.held)));
    REQUIRE(sim.finish(next));
    CHECK(next->at - released < 50ms); // A grace is 100 ms.
}

TEST_CASE("a client that waits goes to the queue master as soon as that is connected", "[queue]")
{
    simulation sim{3};
    waiting_clients with{sim, 0, sim.options()};
    const outcome_ptr waits = sim.acquire(with.holder, "stock", {.ttl = 60s, .wait = no_limit});
    sim_master& queue_master = queue_master_of(sim, "stock");
    sim.run_for(1s);
    queue_master.door = entrance::refuses;
    queue_master.break_connections();
    sim.run_for(1s);
    queue_master.door = entrance::open;
    const std::size_t asked = queue_master.count("ask");
    const std::size_t greeted = queue_master.count("HELLO");
    REQUIRE(sim.run_until([&] { return queue_master.count("HELLO") > greeted; }, 20s));
    // Sooner than its heartbeat at the other master.
    sim.run_for(10 * trip);
    CHECK(queue_master.count("ask") > asked);
}

TEST_CASE("a queue master that gave no answer is asked again when it is trusted again", "[queue]")
{
    simulation sim{3};
    waiting_clients with{sim, 1, sim.options()};
    sim_master& queue_master = queue_master_of(sim, "stock");
    const auto asked_elsewhere = [&] { return sim.count("ask") - queue_master.count("ask"); };
    REQUIRE(asked_elsewhere() == 0);
    queue_master.hang();
    REQUIRE(sim.run_until([&] { return asked_elsewhere() > 0; }, 2s));
    queue_master.resume();
    sim.run_for(100ms);
    const std::size_t asked = queue_master.count("ask");
    CHECK(sim.run_until([&] { return queue_master.count("ask") > asked; }, 5s));
}

TEST_CASE("in strict order, a release wakes a client that can't reach the queue master", "[queue]")
{
    simulation sim{5};
    waiting_clients with{sim, 0, in_strict_order(sim)};
    queue_master_of(sim, "stock").door = entrance::refuses;
    lock_manager cut_off = sim.make_manager(in_strict_order(sim));
    const outcome_ptr waits = sim.acquire(cut_off, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(1s);
    REQUIRE_FALSE(waits->done);
    const clock::time_point began = sim.now();
    const outcome_ptr released = sim.release(with.held);
    REQUIRE(sim.finish(waits, 1s));
    CHECK(!waits->error);
    // Sooner than its heartbeat.
    CHECK(waits->at - began <= 10 * trip);
}

TEST_CASE("a release that is due after a reconnect wakes nobody unless it deletes the key")
{
    simulation sim{5};
    waiting_clients with{sim, 1, sim.options()};
    sim_master& queue_master = queue_master_of(sim, "stock");
    lock_manager third = sim.make_connected_manager();
    std::vector<outcome_ptr> lost;
    for (int count = 0; count < 20; ++count)
    {
        lost.push_back(sim.try_acquire(third, "stock", {.ttl = 60s}));
    }
    sim.run_for(trip / 4);
    queue_master.door = entrance::refuses;
    queue_master.link().break_off();
    for (const outcome_ptr& each : lost)
    {
        REQUIRE(sim.finish(each));
        CHECK(each->error == errc::held_by_other);
    }
    queue_master.door = entrance::open;
    queue_master.forget_log();
    REQUIRE(sim.run_until([&] { return queue_master.count("release") == 20; }, 10s));
    // Woken, it would ask at once.
    const std::size_t questions = queue_master.count("ask");
    sim.run_for(2ms);
    CHECK(queue_master.count("ask") == questions);
}

TEST_CASE("a release that is due after a reconnect wakes the next client if it deletes the key")
{
    simulation sim{5};
    waiting_clients with{sim, 1, sim.options()};
    sim_master& queue_master = queue_master_of(sim, "stock");
    // The connection of the holder, which came first.
    const auto all = queue_master.links();
    const auto holders = std::min_element(
        all.begin(), all.end(),
        [](const auto& one, const auto& other) { return one->at_master().id < other->at_master().id; });
    (*holders)->break_off();
    sim.run_for(trip);
    const outcome_ptr released = sim.release(with.held);
    // Sooner than its heartbeat.
    REQUIRE(sim.finish(with.waits[0], 100ms));
    CHECK(!with.waits[0]->error);
    CHECK(with.waits[0]->report.count(vote::granted) >= 3);
    REQUIRE(sim.finish(released));
}

TEST_CASE("a lost queue keeps nobody from the resource")
{
    simulation sim{5};
    waiting_clients with{sim, 3, sim.options()};
    sim_master& queue_master = queue_master_of(sim, "stock");
    SECTION("by a restart without keys")
    {
        queue_master.restart("another run", false);
    }
    SECTION("by FLUSHALL")
    {
        queue_master.flush_all();
    }
    SECTION("by a master that hangs")
    {
        queue_master.hang();
    }
    sim.run_for(2s);
    lease held = std::move(with.held);
    while (!with.waits.empty())
    {
        const outcome_ptr released = sim.release(held);
        const auto served = [&] {
            return std::find_if(
                with.waits.begin(), with.waits.end(), [](const auto& each) { return each->done; });
        };
        REQUIRE(sim.run_until([&] { return served() != with.waits.end(); }, 1s));
        CHECK(!(*served())->error);
        held = std::move((*served())->lease);
        with.waits.erase(served());
    }
    queue_master.resume();
}

TEST_CASE("in strict order a newcomer doesn't overtake a client that waits")
{
    simulation sim{5};
    waiting_clients with{sim, 1, in_strict_order(sim)};
    lock_manager newcomer = sim.make_connected_manager(in_strict_order(sim));
    sim_master& queue_master = queue_master_of(sim, "stock");
    // The message to the waiting client is slow.
    queue_master.network.back = 2ms;
    const outcome_ptr released = sim.release(with.held);
    sim.run_for(trip);
    queue_master.network.back = 100us;
    const outcome_ptr overtakes = sim.try_acquire(newcomer, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(overtakes));
    CHECK(overtakes->error == errc::held_by_other);
    REQUIRE(sim.finish(with.waits[0], 1s));
    CHECK(!with.waits[0]->error);
}

TEST_CASE("a question to the queue master is no round")
{
    simulation sim{5};
    waiting_clients with{sim, 0, sim.options()};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit, .max_rounds = 2U});
    sim.run_for(5s);
    REQUIRE_FALSE(got->done);
    const outcome_ptr released = sim.release(with.held);
    REQUIRE(sim.finish(got, 1s));
    CHECK(!got->error);
    CHECK(got->report.rounds == 2);
}

TEST_CASE("an acquire of one round has it at once, also where other clients wait")
{
    simulation sim{5};
    waiting_clients with{sim, 1, sim.options()};
    lock_manager locks = sim.make_connected_manager();
    // It has seen that others wait.
    const outcome_ptr earlier = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 100ms});
    REQUIRE(sim.finish(earlier, 1s));
    REQUIRE(earlier->report.queue);
    REQUIRE(earlier->report.queue->waiting == 2);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit, .max_rounds = 1U});
    REQUIRE(sim.finish(got, 100ms));
    CHECK(got->error == errc::held_by_other);
    CHECK(got->report.rounds == 1);
}

TEST_CASE("a resource whose key is in the place of a queue is refused")
{
    simulation sim{3};
    config options = sim.options();
    options.key_prefix = GENERATE("", "redlock-q");
    const std::string resource = std::string{"redlock-queue:order:a"}.substr(options.key_prefix.size());
    lock_manager locks = sim.make_connected_manager(options);
    const outcome_ptr got = sim.try_acquire(locks, resource, {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::invalid_resource);
    CHECK(got->report.argument_error.find("redlock-queue:") != std::string::npos);
}

TEST_CASE("managers from before and after a restart of the queue master choose the same one", "[queue]")
{
    simulation sim{5};
    lock_manager older = sim.make_connected_manager();
    sim_master& former = queue_master_of(sim, "stock");
    for (int run = 0; &queue_master_of(sim, "stock") == &former; ++run)
    {
        former.restart(fmt::format("run {} after the restart", run));
    }
    sim.run_for(1s);
    waiting_clients younger{sim, 1, sim.options()};
    const outcome_ptr wait = sim.acquire(older, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(1s);
    CHECK(queue_master_of(sim, "stock").queue_key_count() == 2);
    CHECK(queue_keys(sim) == 2);
    younger.held = {};
    REQUIRE(sim.finish(younger.waits[0]));
    CHECK(!wait->done);
}

TEST_CASE("a shutdown ends as soon as the queues have been left", "[queue]")
{
    simulation sim{3};
    waiting_clients with{sim, 1, sim.options()};
    sim.run_for(1s);
    const clock::time_point began = sim.now();
    const outcome_ptr ended = sim.shut_down(with.managers[0]);
    REQUIRE(sim.finish(ended));
    CHECK(!ended->error);
    CHECK(with.waits[0]->error == errc::closed);
    CHECK(ended->at - began <= 2 * trip);
    CHECK(queue_keys(sim) == 0);
}

} // namespace redlock::test
