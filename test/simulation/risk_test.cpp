// SPDX-License-Identifier: BSL-1.0
// Configuration and clock problems of a master that weaken locking: the observer is notified once.
#include "simulation.hpp"
#include "waiting_clients.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

/// The warnings that were reported to the observer.
struct risk_counts
{
    std::vector<master_warning> all;

    config options(simulation& in)
    {
        config with = in.options();
        with.observer.on_event = [this](const event& what)
        {
            if (const auto* one = std::get_if<master_warning>(&what))
            {
                all.push_back(*one);
            }
        };
        return with;
    }
    std::size_t count(std::size_t master, risk what) const
    {
        return static_cast<std::size_t>(std::count_if(
            all.begin(), all.end(),
            [&](const master_warning& each) { return each.index == master && each.what == what; }));
    }
};

} // namespace

TEST_CASE("well-configured masters cause no warning")
{
    simulation sim{3};
    risk_counts told;
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_for(5min);
    CHECK(told.all.empty());
    CHECK(sim.master(0).count("TIME") >= 290);
}

TEST_CASE("an eviction policy that may evict locks is reported, and the master still votes", "[scenario-11]")
{
    simulation sim{3};
    risk_counts told;
    sim.master(1).maxmemory_policy = "volatile-lru";
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_until_idle();
    REQUIRE(told.all.size() == 1);
    CHECK(told.all[0].index == 1);
    CHECK(told.all[0].what == risk::eviction);
    CHECK(told.all[0].detail == "maxmemory-policy is volatile-lru");
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    sim.run_until_idle();
    CHECK(sim.keys() == 3);
}

TEST_CASE(
    "a master's clock that is set is reported, each time, with the size of the step",
    "[scenario-4][scenario-5]")
{
    simulation sim{3};
    risk_counts told;
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_for(3s);
    sim.master(2).clock_of_its_own().jump(sim.now(), 1h);
    sim.run_for(3s);
    REQUIRE(told.all.size() == 1);
    CHECK(told.all[0].what == risk::clock);
    CHECK(told.all[0].detail == "it went ahead by 3599999 ms");
    sim.master(2).clock_of_its_own().jump(sim.now(), -1h);
    sim.run_for(3s);
    REQUIRE(told.all.size() == 2);
    CHECK(told.all[1].detail == "it fell behind by 3599999 ms");
    sim.run_for(5min);
    CHECK(told.all.size() == 2);
}

TEST_CASE("the clocks of different servers aren't compared", "[scenario-4]")
{
    simulation sim{3};
    risk_counts told;
    sim.master(1).tells_run_id = false;
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_for(3s);
    for (const auto& each : sim.masters())
    {
        each->clock_of_its_own().jump(sim.now(), 1h);
    }
    sim.master(0).restart("another server");
    sim.master(1).break_connections(); // It may be another one.
    sim.master(2).break_connections();
    sim.run_for(10s);
    CHECK(sim.master(0).clients() == 1);
    CHECK(told.count(0, risk::clock) == 0);
    CHECK(told.count(1, risk::clock) == 0);
    CHECK(told.count(2, risk::clock) == 1);
}

TEST_CASE("a forbidden command disables only its protection, and is reported")
{
    simulation sim{3};
    risk_counts told;
    sim.master(0).refuse(
        "may kill?", "-NOPERM this user has no permissions to run the 'client|kill' command\r\n");
    sim.master(1).refuse("INFO", "-NOPERM this user has no permissions to run the 'info' command\r\n");
    sim.master(2).refuse("TIME", "-NOPERM this user has no permissions to run the 'time' command\r\n");
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_for(10s);
    CHECK(told.all.size() == 3);
    CHECK(told.count(0, risk::cannot_kill_stale_connections) == 1);
    CHECK(told.count(2, risk::clock) == 1);
    CHECK(told.count(1, risk::no_identity) == 1);
    // A refusal also shows that the server responds.
    CHECK(sim.master(2).count("HELLO") == 1);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 10s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
}

TEST_CASE("a risk is reported again for each connection")
{
    simulation sim{3};
    risk_counts told;
    sim.master(0).refuse("INFO", "-NOPERM this user has no permissions to run the 'info' command\r\n");
    sim.master(1).maxmemory_policy = "allkeys-lru";
    sim.master(2).refuse("TIME", "-NOPERM this user has no permissions to run the 'time' command\r\n");
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_for(10s);
    for (const auto& each : sim.masters())
    {
        each->break_connections();
    }
    sim.run_for(10s);
    CHECK(told.all.size() == 6);
    CHECK(told.count(0, risk::no_identity) == 2);
    CHECK(told.count(1, risk::eviction) == 2);
    CHECK(told.count(2, risk::clock) == 2);
}

TEST_CASE("a risk that all masters share is reported of each of them")
{
    simulation sim{3};
    risk_counts told;
    const std::array shared{
        risk::clock, risk::eviction, risk::cannot_kill_stale_connections, risk::limited_queue};
    for (const auto& each : sim.masters())
    {
        each->maxmemory_policy = "allkeys-lru";
        each->refuse("TIME", "-NOPERM this user has no permissions to run the 'time' command\r\n");
        each->refuse(
            "may kill?", "-NOPERM this user has no permissions to run the 'client|kill' command\r\n");
        each->refuse("SUBSCRIBE", "-NOPERM this user has no permissions to run the 'subscribe' command\r\n");
    }
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    for (std::size_t connections = 1; connections <= 2; ++connections)
    {
        sim.run_for(10s);
        CHECK(told.all.size() == 3 * shared.size() * connections);
        for (std::size_t master = 0; master < 3; ++master)
        {
            for (const risk each : shared)
            {
                CAPTURE(master, each);
                CHECK(told.count(master, each) == connections);
            }
            sim.master(master).break_connections();
        }
    }
}

TEST_CASE("what an earlier connection found isn't taken for what this one finds")
{
    simulation sim{1};
    risk_counts told;
    sim.master(0).maxmemory_policy = "allkeys-lru";
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_until_idle();
    CHECK(told.all.size() == 1);
    sim.master(0).refuse("INFO", "-NOPERM this user has no permissions to run the 'info' command\r\n");
    sim.master(0).break_connections();
    sim.run_for(10s);
    REQUIRE(told.all.size() == 2);
    CHECK(told.all[1].what == risk::no_identity);
}

TEST_CASE("full memory doesn't limit the queue, but what follows it may", "[queue]")
{
    const std::string then = GENERATE(
        "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n", "");
    simulation sim{3};
    risk_counts told;
    sim.master(1).habits["SUBSCRIBE"] = full_memory;
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_for(3s);
    CHECK(told.all.empty());
    sim.master(1).habits["SUBSCRIBE"] = then; // Or no answer.
    sim.run_for(10s);
    REQUIRE(told.all.size() == 1);
    CHECK(told.all[0].index == 1);
    CHECK(told.all[0].what == risk::limited_queue);
    CHECK(told.all[0].detail == "it refuses SUBSCRIBE, PUBLISH or HELLO, so waiting clients poll");
    const std::size_t requests = sim.master(1).count("SUBSCRIBE");
    sim.run_for(10s);
    CHECK(sim.master(1).count("SUBSCRIBE") == requests);
    CHECK(sim.master(1).count("HELLO") == 1);
}

TEST_CASE("no reply to a request of the subscription is taken for a vote", "[queue]")
{
    const bool again = GENERATE(false, true); // With a probe, and not in the handshake.
    const std::string refused = "-NOPERM this user has no permissions to run the 'time' command\r\n";
    const std::string busy = "-BUSY Redis is busy running a script.\r\n";
    simulation sim{3};
    sim_master& liar = sim.master(1);
    liar.habits["SUBSCRIBE"] = full_memory;
    lock_manager locks = sim.make_connected_manager();
    sim.run_for(3s);
    const std::string channel = liar.last("SUBSCRIBE").words[1];
    const std::string confirmation =
        ">3\r\n$9\r\nsubscribe\r\n$" + std::to_string(channel.size()) + "\r\n" + channel + "\r\n:1\r\n";
    const std::string hello = "%1\r\n+proto\r\n:3\r\n";
    struct sent
    {
        std::string subscribe;
        std::string publish;
        std::string hello;
        std::string time;
    };
    const sent lies = GENERATE_COPY(
        sent{"", ":0\r\n", hello, refused}, sent{"", busy, hello, ":1\r\n"}, sent{"", refused, hello, busy},
        sent{confirmation + full_memory, ":1\r\n", hello, refused},
        sent{"", refused, hello, refused + confirmation},
        sent{full_memory + full_memory, ":0\r\n", hello, refused},
        sent{full_memory + full_memory, busy, hello, refused}, sent{full_memory, "", hello, refused},
        sent{"", "", hello, busy}, sent{"", "", "", busy}, sent{"", busy, busy, busy},
        sent{"", "", busy, busy}, sent{full_memory + confirmation, ":1\r\n", hello, busy},
        sent{":1\r\n", ":1\r\n", hello, busy}, sent{"+OK\r\n", ":1\r\n", hello, refused},
        sent{full_memory, refused, hello + hello, refused},
        sent{full_memory, refused, hello + busy, refused});
    INFO(lies.subscribe << lies.publish << lies.hello << lies.time);
    liar.habits["SUBSCRIBE"] = lies.subscribe;
    liar.habits["PUBLISH"] = lies.publish;
    liar.habits["HELLO again"] = lies.hello;
    liar.habits["TIME"] = lies.time;
    if (!again)
    {
        liar.break_connections();
    }
    const std::size_t before = liar.count("TIME");
    const std::size_t requests = liar.count("SUBSCRIBE");
    // A SET is in flight when the request is sent.
    for (int turn = 0; liar.count("TIME") == before && turn < 10'000; ++turn)
    {
        const outcome_ptr got = sim.try_acquire(locks, "early" + std::to_string(turn), {.ttl = 60s});
        sim.run_for(500us);
    }
    REQUIRE(liar.count("SUBSCRIBE") > requests);
    liar.habits.clear();
    for (int number = 0; number < 100; ++number)
    {
        const std::string name = std::to_string(number);
        sim.master(0).set("lock:taken" + name, "other", 60s);
        liar.answer("SET", {.bytes = "-NOREPLICAS Not enough good replicas to write.\r\n"});
        const outcome_ptr taken = sim.try_acquire(locks, "taken" + name, {.ttl = 60s});
        sim.run_for(1ms);
        const outcome_ptr free = sim.try_acquire(locks, "free" + name, {.ttl = 60s});
        REQUIRE(sim.finish(taken));
        REQUIRE(sim.finish(free));
        REQUIRE(taken->error); // One master granted it, and two refused.
        sim.run_for(1ms);
    }
}

TEST_CASE("a slow script doesn't end the connection whose subscription was put off", "[queue]")
{
    simulation sim{3};
    risk_counts told;
    sim_master& busy = sim.master(1);
    busy.habits["SUBSCRIBE"] = full_memory;
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_for(3s);
    for (const char* each : {"SUBSCRIBE", "PUBLISH", "TIME", "SET", "ask", "release", "extend"})
    {
        busy.habits[each] = "-BUSY Redis is busy running a script.\r\n";
    }
    sim.run_for(10s);
    busy.habits.clear();
    sim.run_for(3s);
    CHECK(busy.count("HELLO") == 1);
    CHECK(told.all.empty());
    const std::size_t requests = busy.count("SUBSCRIBE");
    sim.run_for(3s);
    CHECK(busy.count("SUBSCRIBE") == requests);
}

TEST_CASE("a server that confirmed a subscription may refuse to confirm it again", "[queue]")
{
    // Its message arrives with each request, unasked.
    simulation sim{3};
    risk_counts told;
    sim.master(1).answer("PUBLISH", {.bytes = "-BUSY Redis is busy running a script.\r\n"});
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.master(1).habits["SUBSCRIBE"] = full_memory;
    sim.run_for(60s);
    CHECK(sim.master(1).count("HELLO") == 1);
    CHECK(sim.master(1).count("SUBSCRIBE") == 2);
    CHECK(told.all.empty());
}

TEST_CASE("a passing refusal of CLIENT ID costs no protection", "[queue]")
{
    simulation sim{1};
    risk_counts told;
    sim.master(0).knows_hello = false;
    sim.master(0).answer("CLIENT ID", {.bytes = "-BUSY Redis is busy running a script.\r\n"});
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_for(3s);
    CHECK(told.count(0, risk::cannot_kill_stale_connections) == 0);
}

TEST_CASE("a user who may not use HELLO again only polls, as before Redis 6.2.2", "[queue]")
{
    simulation sim{3};
    risk_counts told;
    for (const auto& each : sim.masters())
    {
        each->habits["may greet?"] = each->habits["HELLO again"] =
            "-NOPERM this user has no permissions to run the 'hello' command or its subcommand\r\n";
    }
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_for(60s);
    CHECK(sim.count("SUBSCRIBE") == 0);
    CHECK(sim.master(1).count("HELLO") == 1);
    REQUIRE(told.all.size() == 3);
    CHECK(told.all[1].what == risk::limited_queue);
    CHECK(told.all[1].detail == "it refuses SUBSCRIBE, PUBLISH or HELLO, so waiting clients poll");
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
}

TEST_CASE("a refused PUBLISH without any answer to SUBSCRIBE only limits the queue", "[queue]")
{
    simulation sim{3};
    risk_counts told;
    sim.master(1).habits["SUBSCRIBE"] = "";
    sim.master(1).habits["PUBLISH"] = "-NOPERM this user has no permissions to run the 'publish' command\r\n";
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_for(60s);
    CHECK(sim.master(1).count("HELLO") == 1);
    REQUIRE(told.all.size() == 1);
    CHECK(told.all[0].what == risk::limited_queue);
}

TEST_CASE("a passing refusal during the handshake costs no protection", "[queue]")
{
    const std::string busy =
        "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";
    const auto refused = GENERATE(
        std::vector<std::string>{"SUBSCRIBE"}, std::vector<std::string>{"PUBLISH"},
        std::vector<std::string>{"SUBSCRIBE", "PUBLISH"}, std::vector<std::string>{"may kill?"},
        std::vector<std::string>{"INFO"}, std::vector<std::string>{"TIME"},
        std::vector<std::string>{"SUBSCRIBE", "PUBLISH", "TIME"});
    simulation sim{3};
    risk_counts told;
    sim_master& queue_master = queue_master_of(sim, "stock");
    queue_master.maxmemory_policy = "allkeys-lru";
    for (const std::string& each : refused)
    {
        if (each == "INFO")
        {
            queue_master.answer(each, {.runs = true}); // The first one asks for other facts.
        }
        queue_master.answer(each, {.bytes = busy});
    }
    lock_manager patient = sim.make_connected_manager(told.options(sim));
    sim.run_for(3s);
    lock_manager holder = sim.make_connected_manager();
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(held));
    const outcome_ptr waits = sim.acquire(patient, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(30s);
    REQUIRE(told.all.size() == 1);
    CHECK(told.all[0].what == risk::eviction);
    const outcome_ptr released = sim.release(held->lease);
    REQUIRE(sim.finish(waits, 5 * trip));
    CHECK(!waits->error);
}

TEST_CASE("an error reply to another command isn't taken for the refusal of SUBSCRIBE", "[queue]")
{
    simulation sim{3};
    sim.master(1).habits["SUBSCRIBE"] = full_memory;
    sim.master(1).habits["SET"] = "-NOPERM this user has no permissions to run the 'set' command\r\n";
    lock_manager locks = sim.make_connected_manager();
    // Some SET is in flight when a probe is sent.
    std::size_t turns = 0;
    while (sim.master(1).count("SUBSCRIBE") < 5)
    {
        REQUIRE(++turns < 50'000);
        const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 60s});
        REQUIRE(sim.finish(got));
        REQUIRE(!got->error);
        REQUIRE(got->report.masters()[1].vote == vote::failed);
        REQUIRE(got->report.masters()[1].reason == master_errc::no_permission);
        REQUIRE(sim.finish(sim.release(got->lease)));
    }
    CHECK(sim.master(1).count("HELLO") == 1);
}

TEST_CASE("a subscription whose messages don't arrive is reported, even if it was put off", "[queue]")
{
    simulation sim{3};
    risk_counts told;
    sim.master(1).habits["SUBSCRIBE"] = full_memory;
    sim.master(1).habits["PUBLISH"] = ":0\r\n";
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_for(3s);
    CHECK(told.all.empty());
    sim.master(1).habits.erase("SUBSCRIBE");
    sim.run_for(5s);
    REQUIRE(told.all.size() == 1);
    CHECK(told.all[0].what == risk::limited_queue);
}

TEST_CASE("a client that may not publish polls, even if its subscription was put off", "[queue]")
{
    simulation sim{3};
    risk_counts told;
    sim.master(1).habits["SUBSCRIBE"] = full_memory;
    sim.master(1).habits["PUBLISH"] = "-NOPERM this user has no permissions to run the 'publish' command\r\n";
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_for(10s);
    REQUIRE(told.all.size() == 1);
    CHECK(told.all[0].what == risk::limited_queue);
    CHECK(sim.master(1).count("SUBSCRIBE") == 1);
}

TEST_CASE("a command of the queue that a master refuses is reported once, when it is connected", "[queue]")
{
    const std::string refusal = "-NOPERM this user has no permissions to run the command\r\n";
    const std::string words = " (ERR The user executing the script can't run this command or subcommand)";
    simulation sim{3};
    risk_counts told;
    const std::size_t first = queue_master_index(sim, "stock");
    const std::size_t second = (first + 1) % 3;
    sim.master(first).habits["ZREM"] = refusal;
    sim.master(second).habits["DEL"] = refusal;
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_until_idle();
    REQUIRE(told.all.size() == 2);
    const master_warning& of_first = told.all[told.all[0].index == first ? 0 : 1];
    const master_warning& of_second = told.all[told.all[0].index == first ? 1 : 0];
    CHECK(of_first.what == risk::limited_queue);
    CHECK(of_first.detail == "it refuses ZREM" + words);
    CHECK(of_second.index == second);
    CHECK(of_second.what == risk::release_refused);
    CHECK(of_second.detail == "it refuses DEL" + words);
    const outcome_ptr own = sim.acquire(locks, "own", {.ttl = 60s});
    REQUIRE(sim.finish(own));
    own->lease = {}; // Its release is refused as well.
    waiting_clients others{sim, 2, sim.options()};
    const outcome_ptr waits = sim.acquire(locks, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(1s);
    others.held = {};
    for (const outcome_ptr& each : others.waits)
    {
        REQUIRE(sim.finish(each));
        each->lease = {};
    }
    REQUIRE(sim.finish(waits));
    waits->lease = {};
    sim.run_for(10s);
    CHECK(told.all.size() == 2);
    CHECK(sim.master(first).count("ask") == 0);
    CHECK(sim.master(second).count("ask") == 0);
}

TEST_CASE("a command of the queue that is allowed later is used by clients that are connected", "[queue]")
{
    const char* const refused = GENERATE("ZREM", "DEL");
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    queue_master.habits[refused] = "-NOPERM this user has no permissions to run the command\r\n";
    waiting_clients all{sim, 1, sim.options()};
    REQUIRE(queue_master.queue_key_count() == 0);
    REQUIRE(next_queue_master_of(sim, "stock").queue_key_count() > 0);
    queue_master.habits.clear();
    sim.run_for(3s);
    CHECK(queue_master.queue_key_count() > 0);
    const std::size_t trials = queue_master.count("queue trial");
    sim.run_for(10s);
    CHECK(queue_master.count("queue trial") == trials);
}

TEST_CASE("what a repeated trial finds refused is reported, and moves the clients that wait", "[queue]")
{
    const std::string refusal = "-NOPERM this user has no permissions to run the command\r\n";
    const std::string words = " (ERR The user executing the script can't run this command or subcommand)";
    simulation sim{1};
    sim_master& master = sim.master(0);
    risk_counts told;
    master.habits["DEL"] = refusal; // It stays the queue master: there is no other.
    waiting_clients all{sim, 1, told.options(sim)};
    REQUIRE(master.count("ask") > 0);
    REQUIRE(told.count(0, risk::release_refused) == 2); // Of two managers.
    SECTION("another command, for the clients too")
    {
        master.habits["ZREM"] = refusal;
        sim.run_for(1100ms);
        CHECK(told.count(0, risk::release_refused) == 2);
        CHECK(told.count(0, risk::limited_queue) == 2);
        CHECK(told.all.back().detail == "it refuses ZREM" + words);
        const std::size_t asked = master.count("ask");
        sim.run_for(5s);
        CHECK(master.count("ask") == asked);
        CHECK(told.all.size() == 4);
    }
    SECTION("DEL instead of another one, and again after it was allowed")
    {
        master.habits = {{"ZREM", refusal}};
        sim.run_for(1100ms);
        CHECK(told.count(0, risk::limited_queue) == 2);
        master.habits = {{"DEL", refusal}};
        sim.run_for(1100ms);
        CHECK(told.count(0, risk::release_refused) == 4);
        CHECK(told.all.back().detail == "it refuses DEL" + words);
        CHECK(told.all.size() == 6);
    }
}

TEST_CASE("a question that was refused is reported once, however often DEL is tried", "[queue]")
{
    simulation sim{1};
    risk_counts told;
    sim.master(0).habits["DEL"] = "-NOPERM this user has no permissions to run the command\r\n";
    sim.master(0).habits["ask"] = "-NOPERM this user has no permissions to run the 'evalsha' command\r\n";
    waiting_clients all{sim, 1, told.options(sim)};
    sim.run_for(10s);
    std::size_t refused = 0;
    for (const master_warning& each : told.all)
    {
        refused += each.what == risk::limited_queue ? 1 : 0;
    }
    CHECK(refused == 1); // The holder has asked nothing.
    CHECK(sim.master(0).count("ask") == 1);
}

TEST_CASE("a reply that can't be one to a trial ends the connection", "[queue]")
{
    simulation sim{3};
    sim_master& master = sim.master(1);
    master.habits["ZREM"] = "-NOPERM this user has no permissions to run the command\r\n";
    lock_manager locks = sim.make_connected_manager();
    master.habits.clear();
    const auto [reply, fits] = GENERATE(
        std::pair{"+OK\r\n", false}, std::pair{":1\r\n", false}, std::pair{"*0\r\n", true},
        std::pair{"*2\r\n:1\r\n:2\r\n", false}, // As the reply to TIME would be, or a message:
        std::pair{"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n", false},
        std::pair{"-BUSY Redis is busy running a script.\r\n", true});
    CAPTURE(reply);
    master.answer("queue trial", {.bytes = reply, .nonsense = !fits});
    const std::size_t before = master.count("HELLO");
    sim.run_for(1500ms);
    CHECK((master.count("HELLO") == before) == fits);
}

TEST_CASE("a trial changes nothing at a key that somebody has", "[queue]")
{
    simulation sim{1};
    sim_master& master = sim.master(0);
    config options = sim.options();
    options.key_prefix = "lock";
    lock_manager owner = sim.make_connected_manager(options);
    const outcome_ptr held = sim.acquire(owner, ":", {.ttl = 60s}); // Its queue has the key of the trial.
    REQUIRE(sim.finish(held));
    const outcome_ptr waits = sim.acquire(owner, ":", {.ttl = 60s, .wait = no_limit});
    sim.run_for(10ms);
    REQUIRE(master.queue_key_count() > 0);
    const std::size_t before = master.count("ask");
    lock_manager other = sim.make_connected_manager();
    REQUIRE(master.count("queue trial") == 2);
    CHECK(master.count("ask") == before);
    const outcome_ptr released = sim.release(held->lease);
    CHECK(sim.finish(waits, 2ms)); // It is woken.
}

TEST_CASE("a master that refuses EVAL is a queue master", "[queue]")
{
    simulation sim{3};
    risk_counts told;
    for (const auto& each : sim.masters())
    {
        each->refuse("queue trial", "-NOPERM this user has no permissions to run the 'eval' command\r\n");
    }
    waiting_clients all{sim, 1, told.options(sim)};
    CHECK(queue_master_of(sim, "stock").queue_key_count() > 0);
    CHECK(told.all.empty());
}

TEST_CASE("a master whose queue is limited is reported once per connection, and locks work", "[queue]")
{
    simulation sim{3};
    risk_counts told;
    sim.master(0).knows_hello = false;
    sim.master(1).habits["PUBLISH"] =
        "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n";
    sim.master(2).habits["ask"] =
        "-ERR ACL failure in script: this user has no permissions to access one of the keys\r\n";
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_until_idle();
    REQUIRE(told.all.size() == 2);
    CHECK(told.all[0].index == 0);
    CHECK(told.all[0].what == risk::limited_queue);
    CHECK(told.all[0].detail == "it doesn't speak RESP3, so waiting clients poll");
    CHECK(told.all[1].index == 1);
    CHECK(told.all[1].what == risk::limited_queue);
    CHECK(told.all[1].detail == "it refuses SUBSCRIBE, PUBLISH or HELLO, so waiting clients poll");
    // Enough resources for each master to be the queue master of some.
    std::vector<outcome_ptr> held;
    std::vector<outcome_ptr> waits;
    lock_manager other = sim.make_connected_manager();
    for (int number = 0; number < 20; ++number)
    {
        held.push_back(sim.acquire(other, "stock" + std::to_string(number), {.ttl = 60s}));
        REQUIRE(sim.finish(held.back()));
    }
    for (int number = 0; number < 20; ++number)
    {
        waits.push_back(sim.acquire(locks, "stock" + std::to_string(number), {.ttl = 60s, .wait = no_limit}));
    }
    sim.run_for(5s);
    REQUIRE(told.all.size() == 3);
    CHECK(told.all[2].index == 2);
    CHECK(told.all[2].what == risk::limited_queue);
    CHECK(
        told.all[2].detail ==
        "ERR ACL failure in script: this user has no permissions to access one of the keys");
    // Asked in vain once for each resource whose queue master it would be, and never again.
    CHECK(sim.master(2).count("ask") <= 20);
    for (std::size_t number = 0; number < held.size(); ++number)
    {
        const outcome_ptr released = sim.release(held[number]->lease);
        REQUIRE(sim.finish(waits[number], 500ms));
        CHECK(!waits[number]->error);
    }
}

TEST_CASE("a server of an unsupported version is reported")
{
    simulation sim{1};
    risk_counts told;
    sim.master(0).version = "5.0.14";
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.run_until_idle();
    REQUIRE(told.all.size() == 1);
    CHECK(told.all[0].what == risk::outdated);
    CHECK(told.all[0].detail == "it is redis 5.0.14");
}

} // namespace redlock::test
