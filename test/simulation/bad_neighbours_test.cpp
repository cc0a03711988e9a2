// SPDX-License-Identifier: BSL-1.0
// Clients that contend for a resource again and again, while one client, one master or one key is bad: the others
// don't pay for it. Figures are compared with the same run without the bad one.
#include "simulation.hpp"
#include "waiting_clients.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

constexpr clock::duration hold = 5ms;

/// Puts a foreign key in the place of a queue at this master. Returns the name of its resource.
std::string spoil_another_queue(simulation& sim, std::size_t queue_master)
{
    std::string other = "other";
    while (queue_master_index(sim, other) != queue_master)
    {
        other += "+";
    }
    sim.master(queue_master).set("redlock-queue:order:lock:" + other, "not a queue");
    return other;
}

/// A client that acquires, holds and releases a resource again and again.
class looping_client
{
  public:
    looping_client(simulation& sim, lock_manager& locks, std::string resource = "stock")
        : sim_{&sim}, locks_{&locks}, resource_{std::move(resource)}
    {
    }

    void act()
    {
        if (!got_ && stops)
        {
            return;
        }
        if (!got_)
        {
            began_ = sim_->now();
            got_ = sim_->acquire(*locks_, resource_, {.ttl = 10s, .wait = no_limit});
        }
        if (got_->done && !holds_)
        {
            longest = std::max<clock::duration>(longest, got_->at - began_);
            if (got_->error)
            {
                got_.reset();
                return;
            }
            ++grants;
            holds_ = true;
            until_ = sim_->now() + hold;
            sim_->world().at(until_, event_kind::timer, [] {});
        }
        if (holds_ && sim_->now() >= until_)
        {
            released_ = sim_->release(got_->lease);
            got_.reset();
            holds_ = false;
        }
    }

    std::size_t grants = 0;
    clock::duration longest{};
    bool stops = false; // Acquires no more.

  private:
    simulation* sim_;
    lock_manager* locks_;
    std::string resource_;
    outcome_ptr got_;
    outcome_ptr released_;
    clock::time_point began_{};
    clock::time_point until_{};
    bool holds_ = false;
};

void run_all(simulation& sim, std::vector<looping_client>& all, clock::duration length)
{
    const clock::time_point end = sim.now() + length;
    while (sim.now() < end)
    {
        for (looping_client& each : all)
        {
            each.act();
        }
        if (!sim.step(end))
        {
            sim.run_until(end);
        }
    }
}

std::size_t total(const std::vector<looping_client>& all)
{
    return std::accumulate(
        all.begin(), all.end(), std::size_t{0},
        [](std::size_t sum, const looping_client& each) { return sum + each.grants; });
}

/// Managers with the same options, and a looping client of each.
struct crowd
{
    crowd(simulation& sim, std::size_t count, const config& options)
    {
        for (std::size_t each = 0; each < count; ++each)
        {
            managers.push_back(sim.make_connected_manager(options));
        }
        for (lock_manager& each : managers)
        {
            clients.emplace_back(sim, each);
        }
    }

    std::vector<lock_manager> managers;
    std::vector<looping_client> clients;
};

/// The grants that holds of this length, one after the other, leave room for.
std::size_t possible_grants(clock::duration length)
{
    constexpr clock::duration round_trips = 600us;
    return static_cast<std::size_t>(length / (hold + round_trips));
}

/// An environment in which a client reaches only some masters.
class partition
{
  public:
    partition(simulation& sim, const std::vector<std::size_t>& reached, entrance others)
        : sim_{sim},
          dead_{sim.world(), "dead"},
          outside_{std::make_shared<virtual_environment>(sim.environment().shared_world(), 1)}
    {
        dead_.door = others;
        for (std::size_t index = 0; index < sim.masters().size(); ++index)
        {
            const bool is_reached = std::find(reached.begin(), reached.end(), index) != reached.end();
            outside_->put(host_of(index), is_reached ? sim.master(index) : dead_);
        }
    }
    partition(const partition&) = delete;
    partition& operator=(const partition&) = delete;
    ~partition()
    {
        // Its handlers refer to the other master.
        sim_.destroy_context();
    }

    const std::shared_ptr<virtual_environment>& outside() const noexcept { return outside_; }

  private:
    simulation& sim_;
    sim_master dead_;
    std::shared_ptr<virtual_environment> outside_;
};

std::vector<std::size_t> all_but(std::size_t missing)
{
    std::vector<std::size_t> others{0, 1, 2, 3, 4};
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(missing));
    return others;
}

/// Seven clients that reach all masters, and three that don't reach the queue master, so that there are two queues.
struct divided_crowd
{
    explicit divided_crowd(simulation& sim) : divided_crowd{sim, sim.options()} {}
    divided_crowd(simulation& sim, const config& options)
        : queue_master{queue_master_index(sim, "stock")},
          without{sim, all_but(queue_master), entrance::refuses},
          all{sim, 7, options}
    {
        for (int count = 0; count < 3; ++count)
        {
            cut_off.push_back(sim.make_manager(options, without.outside()));
            sim.run_for(50ms);
        }
        for (lock_manager& each : cut_off)
        {
            all.clients.emplace_back(sim, each);
        }
    }

    std::size_t queue_master;
    partition without;
    crowd all;
    std::vector<lock_manager> cut_off;
};

/// Acquires what the clients of a crowd contend for.
outcome_ptr acquire_among(simulation& sim, std::vector<looping_client>& others, lock_manager& by)
{
    const outcome_ptr got = sim.acquire(by, "stock", {.ttl = 60s, .wait = no_limit});
    while (!got->done)
    {
        run_all(sim, others, 1ms);
    }
    REQUIRE(!got->error);
    return got;
}

/// Returns the grace in a command about a queue; empty if it has none.
std::string grace_in(const received& command)
{
    constexpr std::size_t of_a_release = 5; // After the script, the number of keys, the key and the owner id.
    if (command.what == "ask")
    {
        return command.words.back();
    }
    const bool is_about_queue = command.what == "release" && command.words.size() > of_a_release;
    return is_about_queue ? command.words[of_a_release] : "";
}

/// Returns how a command about a queue is called in its script: "ask", "released", "lost" or "left".
std::string mode_of(const received& command)
{
    constexpr std::size_t mode = 6;
    return command.what == "ask" ? "ask" : command.words.size() <= mode ? "released" : command.words[mode];
}

} // namespace

TEST_CASE("a client that reaches the queue master but no quorum blocks nobody", "[queue][contention]")
{
    simulation sim{5};
    const std::size_t queue_master = queue_master_index(sim, "stock");
    partition few{sim, {queue_master, (queue_master + 1) % 5}, GENERATE(entrance::refuses, entrance::silent)};
    lock_manager partitioned = sim.make_manager(sim.options(), few.outside());
    sim.run_for(2s);
    const outcome_ptr never = sim.acquire(partitioned, "stock", {.ttl = 10s, .wait = 1h});
    sim.run_for(1s);
    crowd others{sim, 5, sim.options()};
    run_all(sim, others.clients, 5s);
    CHECK(!never->done);
    CHECK(total(others.clients) > possible_grants(5s) * 9 / 10);
    others.clients.clear();
}

TEST_CASE("a client whose validity is always exhausted blocks nobody", "[queue][contention]")
{
    simulation sim{5};
    for (const auto& each : sim.masters())
    {
        each->network = {.there = 1ms, .back = 1ms};
    }
    lock_manager choosy = sim.make_connected_manager();
    const outcome_ptr never =
        sim.acquire(choosy, "stock", {.ttl = 1000ms, .wait = 1h, .min_validity = 987ms});
    crowd others{sim, 5, sim.options()};
    run_all(sim, others.clients, 5s);
    CHECK(!never->done);
    // A grant takes two more round trips there.
    CHECK(total(others.clients) > static_cast<std::size_t>(5s / (hold + 8ms)));
    others.clients.clear();
}

TEST_CASE("a woken client that is killed delays the others by a heartbeat at most", "[queue]")
{
    simulation sim{5};
    config options = sim.options();
    options.node_timeout = GENERATE(50ms, 1000ms, 5000ms);
    lock_manager holder = sim.make_connected_manager(options);
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(held));
    std::vector<lock_manager> managers;
    std::vector<outcome_ptr> waits;
    for (int count = 0; count < 3; ++count)
    {
        managers.push_back(sim.make_connected_manager(options));
        waits.push_back(sim.acquire(managers.back(), "stock", {.ttl = 60s, .wait = no_limit}));
        sim.run_for(5ms);
    }
    sim.run_for(1s);
    const outcome_ptr released = sim.release(held->lease);
    sim.run_for(150us); // The message to the first one is on its way.
    managers.erase(managers.begin());
    REQUIRE(sim.finish(waits[1], 310ms));
    CHECK(!waits[1]->error);
}

TEST_CASE("a client that polls gets its share among clients that are woken", "[queue][contention]")
{
    simulation sim{5};
    config options = sim.options();
    options.order = GENERATE(order::waiting, order::strict);
    lock_manager holder = sim.make_connected_manager(options);
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(held));
    for (const auto& each : sim.masters())
    {
        each->refuse("SUBSCRIBE", "-NOPERM this user has no permissions to access one of the channels\r\n");
    }
    lock_manager polls = sim.make_connected_manager(options);
    for (const auto& each : sim.masters())
    {
        each->answer_as_usual();
    }
    crowd all{sim, 10, options};
    all.clients.emplace_back(sim, polls);
    run_all(sim, all.clients, 3s);
    held->lease = {};
    run_all(sim, all.clients, 5s);
    CHECK(total(all.clients) > possible_grants(5s) * 8 / 10);
    CHECK(all.clients.back().grants > total(all.clients) / 11 / 2);
    all.clients.clear();
}

TEST_CASE("in strict order a queue master that hangs costs no rounds", "[queue]")
{
    simulation sim{5};
    const config options = [&]
    {
        config strict = sim.options();
        strict.order = order::strict;
        return strict;
    }();
    lock_manager holder = sim.make_connected_manager(options);
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(held));
    lock_manager limited = sim.make_connected_manager(options);
    sim_master& queue_master = sim.master(queue_master_index(sim, "stock"));
    queue_master.hang();
    const outcome_ptr waits = sim.acquire(limited, "stock", {.ttl = 10s, .wait = no_limit, .max_rounds = 5U});
    sim.run_for(3s);
    CHECK_FALSE(waits->done);
    const outcome_ptr released = sim.release(held->lease);
    REQUIRE(sim.finish(waits, 300ms));
    CHECK(!waits->error);
    queue_master.resume();
}

TEST_CASE("a winner that releases before the queue master's refusal leaves the queue", "[queue]")
{
    simulation sim{5};
    sim_master& queue_master = sim.master(queue_master_index(sim, "stock"));
    lock_manager holder = sim.make_connected_manager();
    lock_manager first = sim.make_connected_manager();
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(held));
    const outcome_ptr won = sim.acquire(first, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(100ms);
    const outcome_ptr released = sim.release(held->lease);
    sim.run_for(150us);
    // The queue master has the key for another client, and says so late.
    queue_master.set("lock:stock", "another", 2s);
    queue_master.network.back = 5ms;
    REQUIRE(sim.finish(won, 1s));
    REQUIRE(!won->error);
    const outcome_ptr again = sim.release(won->lease);
    sim.run_for(20ms);
    sim.run_until_idle();
    CHECK(queue_master.queue_key_count() == 0);
}

TEST_CASE("a foreign key in the place of one queue costs other resources nothing", "[queue][contention]")
{
    simulation sim{5};
    const std::size_t queue_master = queue_master_index(sim, "stock");
    const std::string other = spoil_another_queue(sim, queue_master);
    crowd all{sim, 10, sim.options()};
    for (std::size_t index = 0; index < 2; ++index)
    {
        all.clients.emplace_back(sim, all.managers[index], other);
    }
    run_all(sim, all.clients, 5s);
    const std::size_t share = possible_grants(5s) / 10;
    for (std::size_t index = 0; index < 10; ++index)
    {
        CAPTURE(index);
        CHECK(all.clients[index].grants > share / 2);
    }
    CHECK(all.clients[10].grants + all.clients[11].grants > possible_grants(5s) / 2);
    all.clients.clear();
}

TEST_CASE("many clients that meet a foreign key in the place of a queue count as one", "[queue]")
{
    simulation sim{5};
    const std::size_t queue_master = queue_master_index(sim, "stock");
    const std::string other = spoil_another_queue(sim, queue_master);
    lock_manager holder = sim.make_connected_manager();
    const outcome_ptr held = sim.acquire(holder, other, {.ttl = 60s});
    const outcome_ptr stock = sim.acquire(holder, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(held));
    REQUIRE(sim.finish(stock));
    lock_manager locks = sim.make_connected_manager();
    std::vector<outcome_ptr> waits;
    for (int count = 0; count < 200; ++count)
    {
        waits.push_back(sim.acquire(locks, other, {.ttl = 60s, .wait = no_limit}));
    }
    sim.run_for(100ms);
    sim.master(queue_master).forget_log();
    waits.push_back(sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit}));
    sim.run_for(10ms);
    CHECK(sim.master(queue_master).count("ask") == 1);
}

TEST_CASE("in strict order a queue that can't be used doesn't prevent locks", "[queue]")
{
    simulation sim{1};
    config options = sim.options();
    options.order = order::strict;
    sim.master(0).set("redlock-queue:order:lock:stock", "not a queue");
    lock_manager locks = sim.make_connected_manager(options);
    std::size_t won = 0;
    for (int count = 0; count < 20; ++count)
    {
        const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 60s});
        REQUIRE(sim.finish(got));
        won += got->error ? 0U : 1U;
        got->lease = {};
        sim.run_for(100ms);
    }
    // Once a second, the queue is tried again.
    CHECK(won >= 16);
}

TEST_CASE("a master that refuses every release is no queue master", "[queue][contention]")
{
    const char* const refusal = GENERATE(
        "-NOPERM this user has no permissions to run the 'evalsha' command\r\n",
        "-ERR unknown command 'EVALSHA', with args beginning with: \r\n",
        "-ERR Unknown Redis command called from script\r\n");
    CAPTURE(refusal);
    simulation sim{3};
    config options = sim.options();
    options.order = GENERATE(order::waiting, order::strict);
    sim_master& queue_master = sim.master(queue_master_index(sim, "stock"));
    if (GENERATE(true, false))
    {
        queue_master.refuse("release", refusal);
    }
    else
    {
        queue_master.habits["DEL"] = refusal; // A release of nothing is accepted.
    }

    SECTION("a client gets what it had before")
    {
        lock_manager locks = sim.make_connected_manager(options);
        const outcome_ptr first = sim.try_acquire(locks, "stock", {.ttl = 60s});
        REQUIRE(sim.finish(first));
        REQUIRE(!first->error);
        first->lease = {};
        sim.run_for(2s); // An unknown refusal is taken for permanent after a few.
        for (int count = 0; count < 3; ++count)
        {
            const outcome_ptr again = sim.try_acquire(locks, "stock", {.ttl = 60s});
            REQUIRE(sim.finish(again));
            CHECK_FALSE(again->error);
            again->lease = {};
            sim.run_for(10ms);
        }
    }
    SECTION("clients that wait don't depend on it")
    {
        crowd all{sim, 5, options};
        run_all(sim, all.clients, 2s);
        const std::size_t before = total(all.clients);
        run_all(sim, all.clients, 5s);
        CHECK(total(all.clients) - before > possible_grants(5s) * 7 / 10);
        all.clients.clear();
    }
}

TEST_CASE("a command that only the queue master refuses costs no client anything", "[queue][contention]")
{
    const std::string refused = GENERATE(
        "DEL", "EXISTS", "GET", "PTTL", "PEXPIRE", "ZADD", "ZREM", "ZRANGE", "ZRANK", "ZSCORE", "ZCARD",
        "HSET", "HGET", "HMGET", "HDEL", "TIME");
    const bool is_renamed = GENERATE(false, true);
    const order wanted = GENERATE(order::waiting, order::strict);
    CAPTURE(refused, is_renamed, wanted);
    simulation sim{3};
    config options = sim.options();
    options.order = wanted;
    queue_master_of(sim, "stock").habits[refused] =
        is_renamed ? "-ERR unknown command '" + refused + "', with args beginning with: \r\n"
                   : "-NOPERM this user has no permissions to run the '" + refused + "' command\r\n";
    crowd all{sim, 4, options};
    run_all(sim, all.clients, 5s);
    CHECK(total(all.clients) > possible_grants(5s) * 8 / 10);
    for (const looping_client& each : all.clients)
    {
        CHECK(each.grants > total(all.clients) / 6); // A quarter is fair.
        CHECK(each.longest < 500ms);
    }
    all.clients.clear();
}

TEST_CASE("a master that refused a release is a queue master again as soon as it deletes a key", "[queue]")
{
    const auto [refusal, lasts] = GENERATE(
        std::pair{"-NOPERM this user has no permissions to run the 'evalsha' command\r\n", true},
        std::pair{"-NOPERM No permissions to access a key\r\n", false}, // Of this key.
        std::pair{"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", false});
    CAPTURE(refusal);
    simulation sim{3};
    config options = sim.options();
    options.order = order::strict;
    sim_master& queue_master = sim.master(queue_master_index(sim, "stock"));
    lock_manager locks = sim.make_connected_manager(options);
    const auto questions = [&]
    {
        queue_master.forget_log();
        const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 50ms});
        REQUIRE(sim.finish(got));
        const outcome_ptr released = sim.release(got->lease);
        REQUIRE(sim.finish(released));
        sim.run_for(100ms); // Meanwhile a key that stayed has expired.
        return queue_master.count("ask");
    };
    queue_master.refuse("release", refusal);
    CHECK(questions() == 1);
    queue_master.answer_as_usual();
    if (GENERATE(false, true))
    {
        for (const auto& each : queue_master.links())
        {
            each->cut();
        }
        sim.run_for(1s); // Another connection may have another user.
        CHECK(questions() == 1);
        return;
    }
    CHECK(questions() == (lasts ? 0 : 1));
    CHECK(questions() == 1);
}

TEST_CASE("in strict order a key that only the queue master has refuses clients until it expires", "[queue]")
{
    simulation sim{3};
    config options = sim.options();
    options.order = order::strict;
    lock_manager locks = sim.make_connected_manager(options);
    queue_master_of(sim, "stock").set("lock:stock", "the key of a dead client", 1s);
    const outcome_ptr refused = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(refused));
    CHECK(refused->error == errc::held_by_other);
    const outcome_ptr waits = sim.acquire(locks, "stock", {.ttl = 10s, .wait = no_limit});
    REQUIRE(sim.finish(waits, 500ms)); // By its heartbeat.
    CHECK_FALSE(waits->error);
    waits->lease = {};
    sim.run_for(2s);
    const outcome_ptr granted = sim.try_acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(granted));
    CHECK_FALSE(granted->error);
}

TEST_CASE("masters that all refuse releases keep the queue", "[queue]")
{
    const std::size_t masters = GENERATE(1U, 3U);
    CAPTURE(masters);
    simulation sim{masters};
    lock_manager locks = sim.make_connected_manager();
    lock_manager holder = sim.make_connected_manager();
    for (const auto& each : sim.masters())
    {
        each->answer(
            "release", {.bytes = "-NOPERM this user has no permissions to run the 'evalsha' command\r\n"});
    }
    const outcome_ptr other = sim.try_acquire(locks, "other", {.ttl = 10s});
    REQUIRE(sim.finish(other));
    other->lease = {};
    sim.run_for(100ms);
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(held));
    const outcome_ptr waits = sim.acquire(locks, "stock", {.ttl = 10s, .wait = no_limit});
    sim.run_for(1s);
    CHECK(queue_master_of(sim, "stock").queue_key_count() > 0);
    const outcome_ptr released = sim.release(held->lease);
    CHECK(sim.finish(waits, 2ms)); // It is woken, and doesn't wait for a heartbeat.
}

TEST_CASE(
    "clients that wait move to another queue as soon as their queue master refuses a release", "[queue]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const outcome_ptr held = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(held));
    const outcome_ptr waits = sim.acquire(locks, "stock", {.ttl = 10s, .wait = no_limit});
    sim.run_for(100ms);
    queue_master_of(sim, "stock")
        .refuse("release", "-NOPERM this user has no permissions to run the 'evalsha' command\r\n");
    const outcome_ptr released = sim.release(held->lease);
    REQUIRE(sim.finish(waits, 5ms)); // Much earlier than its heartbeat.
    CHECK_FALSE(waits->error);
}

TEST_CASE("in strict order a refused question isn't taken for a refused SET", "[queue]")
{
    const std::size_t masters = GENERATE(1U, 3U);
    simulation sim{masters};
    config options = sim.options();
    options.order = order::strict;
    const std::size_t queue_master = queue_master_index(sim, "stock");
    sim.master(queue_master)
        .refuse("ask", "-NOPERM this user has no permissions to run the 'zadd' command\r\n");
    if (masters > 1)
    {
        // With the queue master, those that can't grant would be a quorum.
        sim.master((queue_master + 1) % masters)
            .refuse("SET", "-NOPERM this user has no permissions to run the 'set' command\r\n");
    }
    lock_manager locks = sim.make_connected_manager(options);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 10s});
    REQUIRE(sim.finish(got));
    CHECK_FALSE(got->error);
    CHECK(got->report.rounds == 2);
}

TEST_CASE("a key that only the queue master has does not hold up its queue", "[queue][contention]")
{
    simulation sim{5};
    config options = sim.options();
    options.order = GENERATE(order::waiting, order::strict);
    crowd all{sim, static_cast<std::size_t>(GENERATE(1, 10)), options};
    sim_master& queue_master = sim.master(queue_master_index(sim, "stock"));
    run_all(sim, all.clients, 1s);
    // Even a client alone asks first only the queue master, because others were seen to wait a moment ago.
    const outcome_ptr other = sim.acquire(all.managers[0], "stock", {.ttl = 60s, .wait = no_limit});
    run_all(sim, all.clients, 500ms);
    REQUIRE(other->done);
    other->lease = {};
    queue_master.remove("lock:stock");
    queue_master.set("lock:stock", "the key of a dead client");
    const std::size_t before = total(all.clients);
    run_all(sim, all.clients, 5s);
    // A client alone finds out once a second.
    CHECK(total(all.clients) - before > possible_grants(5s) * 7 / 10);
    all.clients.clear();
}

TEST_CASE("a client that waits finds out that only the queue master has the key", "[queue]")
{
    simulation sim{5};
    config options = sim.options();
    options.order = GENERATE(order::waiting, order::strict);
    lock_manager locks = sim.make_connected_manager(options);
    lock_manager dies = sim.make_connected_manager(options);
    const outcome_ptr held = sim.acquire(dies, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(held));
    const auto rounds = GENERATE(std::optional<std::uint32_t>{}, 3U);
    const outcome_ptr waits =
        sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit, .max_rounds = rounds});
    sim.run_for(100ms);
    const std::size_t queue_master = queue_master_index(sim, "stock");
    for (std::size_t index = 0; index < 5; ++index)
    {
        if (index != queue_master)
        {
            sim.master(index).remove("lock:stock");
        }
    }
    REQUIRE(sim.finish(waits, 600ms)); // Two heartbeats.
    CHECK(!waits->error);
}

TEST_CASE("clients that can't reach the queue master get a share", "[queue][contention]")
{
    simulation sim{5};
    // If the queue master is nearer than the others, the clients in its queue win every race after a release.
    const clock::duration further = GENERATE(0us, 200us);
    for (const auto& each : sim.masters())
    {
        each->network = {.there = 100us + further, .back = 100us + further, .jitter = 50us};
    }
    divided_crowd two{sim};
    sim.master(two.queue_master).network = {.jitter = 50us};
    std::vector<looping_client>& clients = two.all.clients;
    run_all(sim, clients, 10s);
    CHECK(total(clients) > possible_grants(10s) * 9 / 10);
    const std::size_t fair = total(clients) / clients.size();
    for (std::size_t index = 0; index < clients.size(); ++index)
    {
        CAPTURE(index, fair);
        CHECK(clients[index].grants > fair / 3);
        CHECK(clients[index].longest < 1s);
    }
    clients.clear();
}

TEST_CASE("a release waits in vain for the master of a second queue, and is sent", "[queue][release]")
{
    simulation sim{5};
    divided_crowd two{sim};
    std::vector<looping_client>& clients = two.all.clients;
    const bool hangs = GENERATE(true, false);
    for (int failure = 0; failure < 8; ++failure)
    {
        run_all(sim, clients, 300ms);
        for (const std::size_t other : all_but(two.queue_master))
        {
            hangs ? sim.master(other).hang() : sim.master(other).break_connections();
            run_all(sim, clients, 200ms); // Longer than the node timeout.
            sim.master(other).resume();
        }
    }
    for (looping_client& each : clients)
    {
        each.stops = true;
    }
    run_all(sim, clients, 5s);
    // The ttl is longer.
    CHECK(sim.run_until_no_keys(100ms));
    clients.clear();
}

TEST_CASE(
    "a release that waits for the master of a second queue isn't lost with its manager",
    "[queue][release][scenario-111]")
{
    simulation sim{5};
    divided_crowd two{sim};
    sim_master& second = next_queue_master_of(sim, "stock");
    config options = sim.options();
    if (GENERATE(false, true))
    {
        options.observer.on_event = [](const event&) {};
    }
    std::optional<lock_manager> own{sim.make_connected_manager(options)};
    std::string owner_id;
    bool held_back = false;
    for (int times = 0; times < 100 && !held_back; ++times)
    {
        const outcome_ptr got = acquire_among(sim, two.all.clients, *own);
        owner_id = got->lease.owner_id();
        second.network.back = 20ms; // The others are a quorum.
        const outcome_ptr released = sim.release(got->lease);
        REQUIRE(sim.finish(released));
        CHECK(!released->error);
        held_back = sim.master(two.queue_master).value("lock:stock") == owner_id;
        second.network.back = 100us;
    }
    REQUIRE(held_back);
    own.reset();
    sim.run_for(100ms);
    CHECK(sim.master(two.queue_master).value("lock:stock") != owner_id);
    two.all.clients.clear();
}

TEST_CASE("a release that is held back ends at the node timeout as well", "[queue][release]")
{
    simulation sim{5};
    divided_crowd two{sim};
    lock_manager own = sim.make_connected_manager();
    bool held_back = false;
    for (int times = 0; times < 100 && !held_back; ++times)
    {
        const outcome_ptr got = acquire_among(sim, two.all.clients, own);
        const std::string owner_id{got->lease.owner_id()};
        const clock::time_point began = sim.now();
        const outcome_ptr released = sim.release(got->lease);
        sim.run_for(trip * 3 / 4); // All masters that were sent it have answered.
        held_back = sim.master(two.queue_master).value("lock:stock") == owner_id;
        for (const std::size_t other : all_but(two.queue_master))
        {
            sim.master(other).network.cut_back = held_back;
        }
        REQUIRE(sim.finish(released));
        CHECK(released->error == (held_back ? error_code{errc::unconfirmed} : error_code{}));
        CHECK((!held_back || released->at - began == 50ms));
    }
    CHECK(held_back);
    two.all.clients.clear();
}

TEST_CASE("every command about a queue has the grace of the client's node timeout", "[queue][wire]")
{
    simulation sim{5};
    config options = sim.options();
    options.node_timeout = 200ms;
    divided_crowd two{sim, options};
    std::vector<looping_client>& clients = two.all.clients;
    run_all(sim, clients, 5s);
    lock_manager own = sim.make_connected_manager(options);
    const outcome_ptr cancelled = sim.acquire(own, "free", {.ttl = 10s});
    sim.step();
    cancelled->cancel.emit(asio::cancellation_type::terminal);
    REQUIRE(sim.finish(cancelled));
    clients.clear();
    sim.run_until_idle();
    std::map<std::string, std::size_t> seen;
    for (const auto& each : sim.masters())
    {
        for (const received& sent : each->log())
        {
            if (const std::string grace = grace_in(sent); !grace.empty())
            {
                const std::string mode = mode_of(sent);
                CAPTURE(mode);
                ++seen[mode];
                CHECK(grace == "400");
            }
        }
    }
    for (const char* const mode : {"ask", "released", "lost", "left"})
    {
        CAPTURE(mode);
        CHECK(seen[mode] > 0);
    }
}

} // namespace redlock::test
