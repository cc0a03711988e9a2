// SPDX-License-Identifier: BSL-1.0
// Tests of masters that refuse releases, permanently or for a long time: what they cost, and what stays outstanding.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

/// The observer's events `master_warning`.
struct told_risks
{
    std::vector<master_warning> all;

    config options(const simulation& in)
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
};

/// Acquires and releases a number of resources, one after the other. Every release has to succeed.
void lock_and_release(simulation& sim, lock_manager& locks, int times)
{
    for (int count = 0; count < times; ++count)
    {
        const outcome_ptr got =
            sim.acquire(locks, "stock" + std::to_string(count), {.ttl = 60s, .wait = 0ms});
        REQUIRE(sim.finish(got));
        REQUIRE(!got->error);
        const outcome_ptr released = sim.release(got->lease);
        REQUIRE(sim.finish(released));
        REQUIRE(!released->error);
    }
}

} // namespace

TEST_CASE("a release that is refused permanently ends, and is reported once", "[release][scenario-87]")
{
    const std::string said = GENERATE(
        "-ERR unknown command 'EVALSHA', with args beginning with: 'ca1b'\r\n",
        "-NOPERM this user has no permissions to run the 'evalsha' command\r\n",
        "-NOREPLICAS Not enough good replicas to write.\r\n");
    CAPTURE(said);
    simulation sim{5};
    told_risks told;
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim_master& master = sim.master(0);
    master.refuse("release", said);
    lock_and_release(sim, locks, 50);
    sim.run_for(30s);
    CHECK(master.count("release") == 50);
    REQUIRE(told.all.size() == 1);
    CHECK(told.all[0].index == 0);
    CHECK(told.all[0].what == risk::release_refused);
    CHECK(told.all[0].detail.starts_with("the ttl frees the key: " + said.substr(1, 20)));
    SECTION("once for each connection")
    {
        master.break_connections();
        sim.run_for(2s);
        lock_and_release(sim, locks, 3);
        CHECK(told.all.size() == 2);
        CHECK(master.count("release") == 53);
    }
    SECTION("a shutdown doesn't wait for it")
    {
        const outcome_ptr held = sim.acquire(locks, "held", {.ttl = 60s, .wait = 0ms});
        REQUIRE(sim.finish(held));
        const clock::time_point began = sim.now();
        const outcome_ptr ended = sim.shut_down(locks);
        REQUIRE(sim.finish(ended));
        CHECK(!ended->error);
        CHECK(ended->at - began <= 1ms);
    }
}

TEST_CASE(
    "a refused release is reported although its connection breaks with the same replies",
    "[release][scenario-87]")
{
    simulation sim{5};
    told_risks told;
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim.master(0).answer("release", {"-NOPERM this user may not\r\n+a reply without a command\r\n"});
    lock_and_release(sim, locks, 1);
    REQUIRE(sim.run_until([&] { return !told.all.empty(); }, 10s));
    CHECK(told.all[0].index == 0);
    CHECK(told.all[0].what == risk::release_refused);
    CHECK(told.all[0].detail == "the ttl frees the key: NOPERM this user may not");
}

TEST_CASE("an unknown error counts as permanent after a few tries", "[release][scenario-87]")
{
    simulation sim{5};
    told_risks told;
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    sim_master& master = sim.master(0);
    master.refuse("release", "-ERR nobody has seen this error yet\r\n");
    lock_and_release(sim, locks, 50);
    sim.run_for(30s);
    CHECK(master.count("release") > 50);
    CHECK(master.count("release") <= 6 * 50);
    REQUIRE(told.all.size() == 1);
    CHECK(told.all[0].what == risk::release_refused);
    const std::size_t settled = master.count("release");
    lock_and_release(sim, locks, 50);
    sim.run_for(30s);
    CHECK(master.count("release") == settled + 50);
    CHECK(told.all.size() == 1);
    const clock::time_point began = sim.now();
    const outcome_ptr ended = sim.shut_down(locks);
    REQUIRE(sim.finish(ended));
    CHECK(ended->at - began <= 1ms);
}

TEST_CASE("an unknown error that passes several times never counts as permanent", "[release][scenario-87]")
{
    simulation sim{5};
    told_risks told;
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    for (int time = 0; time < 3; ++time)
    {
        sim.master(0).answer("release", {"-ERR nobody has seen this error yet\r\n"}, 3);
        lock_and_release(sim, locks, 1);
        sim.run_for(10s);
        CHECK(sim.master(0).key_count() == 0);
    }
    CHECK(told.all.empty());
}

TEST_CASE(
    "a refused release is repeated after its delay, without any other traffic", "[release][scenario-88]")
{
    simulation sim{3};
    config options = sim.options();
    options.probe_interval = 1h;
    options.response_timeout = 1h;
    lock_manager locks = sim.make_connected_manager(options);
    sim.master(0).answer("release", {"-BUSY Redis is busy running a script.\r\n"}, 3);
    lock_and_release(sim, locks, 1);
    CHECK(sim.run_until_no_keys(3 * options.reconnect_delay_max));
    CHECK(sim.master(0).count("release") == 4);
}

TEST_CASE("each kind of refused release is reported once, whatever came before it", "[release][scenario-87]")
{
    static constexpr std::array<std::string_view, 5> kinds{
        "WRONGTYPE Operation against a key holding the wrong kind of value", "NOPERM this user may not",
        "NOREPLICAS Not enough good replicas to write.", "MISCONF Redis is configured to save snapshots",
        "ERR unknown command 'EVALSHA'"};
    const std::size_t first = GENERATE(range(std::size_t{0}, kinds.size()));
    simulation sim{5};
    told_risks told;
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    for (std::size_t next = 0; next < 2 * kinds.size(); ++next)
    {
        const std::string_view said = kinds.at((first + next) % kinds.size());
        CAPTURE(said);
        sim.master(0).answer("release", {fmt::format("-{}\r\n", said)});
        lock_and_release(sim, locks, 1);
        sim.run_for(1s);
        REQUIRE(told.all.size() == std::min(next + 1, kinds.size()));
        const bool is_foreign = said.starts_with("WRONGTYPE");
        const std::string_view about = is_foreign ? "a key is not a lock: " : "the ttl frees the key: ";
        if (next < kinds.size())
        {
            CHECK(told.all[next].what == risk::release_refused);
            CHECK(told.all[next].detail.starts_with(fmt::format("{}{}", about, said.substr(0, 20))));
        }
    }
}

TEST_CASE("a key of another type is not ours", "[release][extend][scenario-87]")
{
    simulation sim{3};
    told_risks told;
    lock_manager locks = sim.make_connected_manager(told.options(sim));
    SECTION("a release that finds it has nothing to release")
    {
        sim.master(0).set_hash("lock:stock");
        sim.master(1).set_hash("lock:stock");
        const outcome_ptr none = sim.try_acquire(locks, "stock", {.ttl = 60s});
        REQUIRE(sim.finish(none));
        CHECK(none->error == errc::held_by_other);
        sim.run_for(30s);
        CHECK(sim.master(0).count("release") == 1);
        CHECK(sim.master(1).count("release") == 1);
        CHECK(sim.master(2).key_count() == 0);
        CHECK(told.all.size() == 2);
        CHECK(told.all[0].what == risk::release_refused);
        CHECK(told.all[0].detail.starts_with("a key is not a lock: WRONGTYPE "));
    }
    SECTION("if it replaced a lock, a release confirms that the lock no longer exists")
    {
        const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
        REQUIRE(sim.finish(got));
        sim.run_until_idle();
        for (const auto& each : sim.masters())
        {
            each->set_hash("lock:stock");
        }
        const outcome_ptr released = sim.release(got->lease);
        REQUIRE(sim.finish(released));
        CHECK(!released->error);
        CHECK(released->report.already_gone());
    }
    SECTION("if it replaced a lock, an extension loses the lease")
    {
        const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
        REQUIRE(sim.finish(got));
        sim.run_until_idle();
        sim.master(0).set_hash("lock:stock");
        sim.master(1).set_hash("lock:stock");
        const outcome_ptr extended = sim.extend(got->lease, 60s);
        REQUIRE(sim.finish(extended));
        CHECK(extended->error == errc::lease_lost);
        CHECK_FALSE(got->lease.valid());
    }
}

TEST_CASE("a master that refuses releases for long gets few of them", "[release][scenario-88]")
{
    const std::string said =
        GENERATE("-BUSY Redis is busy running a script.\r\n", "-LOADING Redis is loading\r\n");
    simulation sim{5};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    master.refuse("release", said);
    constexpr std::size_t keys = 1000;
    lock_and_release(sim, locks, keys);
    const std::size_t before = master.count("release");
    sim.run_for(60s);
    // A batch after each delay, which is a quarter of a second on the average once it has grown.
    CHECK(master.count("release") - before <= 400 * 128);
    // Other commands are not delayed meanwhile.
    lock_and_release(sim, locks, 10);
    master.answer_as_usual();
    CHECK(sim.run_until_no_keys());
}

TEST_CASE(
    "outstanding keys are released in batches that other commands don't wait for", "[release][scenario-88]")
{
    constexpr std::size_t batch = 128;
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    std::vector<outcome_ptr> held;
    for (int count = 0; count < 1000; ++count)
    {
        held.push_back(sim.acquire(locks, "stock" + std::to_string(count), {.ttl = 600s, .wait = 0ms}));
    }
    sim.run_until_idle();
    REQUIRE(master.key_count() == 1000);
    master.door = entrance::refuses;
    master.break_connections();
    sim.run_for(10ms);
    for (const outcome_ptr& each : held)
    {
        REQUIRE(sim.finish(sim.release(each->lease)));
    }
    master.forget_log();
    master.network.back = 5ms;
    master.door = entrance::open;
    REQUIRE(sim.run_until([&] { return master.count("release") > 0; }, 10s));
    const clock::time_point began = sim.now();
    const outcome_ptr other = sim.acquire(locks, "other", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.run_until([&] { return master.count("SET") > 0; }, 1s));
    CHECK(sim.now() - began == 100us);
    CHECK(master.count("release") <= batch);
    CHECK(!other->error);
    REQUIRE(sim.run_until([&] { return master.key_count() == 1; }, 1s));
    CHECK(master.count("release") == 1000);
    // At most one batch per round trip.
    std::vector<std::size_t> sizes;
    clock::time_point last{};
    for (const received& each : master.log())
    {
        if (each.what == "release")
        {
            if (each.at != last)
            {
                sizes.push_back(0);
            }
            last = each.at;
            ++sizes.back();
        }
    }
    CHECK(*std::max_element(sizes.begin(), sizes.end()) <= batch);
}

TEST_CASE("a SET that is refused doesn't hide one of the same owner id that has run", "[rejoin][scenario-87]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    // The first SET is answered when the caller no longer waits: the lease is held without this master.
    master.answer("SET", {.bytes = "-ERR upstream timed out\r\n", .runs = true});
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    REQUIRE(!got->error);
    sim.run_until_idle();
    // It misses one extension, so that it is sent the SET again, and refuses that.
    master.answer("extend", {.bytes = ":0\r\n"});
    master.answer("SET", {.bytes = "-OOM command not allowed\r\n"});
    const outcome_ptr extended = sim.extend(got->lease, 60s);
    REQUIRE(sim.finish(extended));
    REQUIRE(!extended->error);
    sim.run_until_idle();
    REQUIRE(master.count("SET") == 2);
    master.answer("release", {.bytes = "-BUSY busy\r\n"}, 2);
    const outcome_ptr released = sim.release(got->lease);
    REQUIRE(sim.finish(released));
    CHECK(sim.run_until_no_keys());
    CHECK(master.count("release") == 3);
}

TEST_CASE("a server is disconnected after 16 unsolicited pushes", "[connection][scenario-89]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& master = sim.master(0);
    const auto push = [&](std::size_t times)
    {
        std::string bytes;
        for (std::size_t count = 0; count < times; ++count)
        {
            bytes += ">2\r\n$7\r\nmessage\r\n$2\r\nhi\r\n";
        }
        master.link().reply(bytes);
        sim.run_until_idle();
    };
    push(15);
    CHECK(master.count("HELLO") == 1);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    CHECK(got->report.count(vote::granted) >= 2);
    push(1);
    CHECK(master.clients() == 0);
    const outcome_ptr without = sim.acquire(locks, "without", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(without));
    CHECK(without->report.masters()[0].reason == master_errc::protocol_error);
    CHECK(without->report.masters()[0].detail.view() == "it sent 16 unsolicited pushes");
    sim.run_for(1s);
    CHECK(master.count("HELLO") == 2);
    // Pushes are counted for each connection.
    push(15);
    sim.run_for(1s);
    CHECK(master.count("HELLO") == 2);
}

TEST_CASE("a server is disconnected after 16 unsolicited pushes in the handshake", "[handshake][scenario-89]")
{
    simulation sim{3};
    sim_master& master = sim.master(0);
    std::string bytes;
    for (int count = 0; count < 16; ++count)
    {
        bytes += ">1\r\n+hello\r\n";
    }
    master.refuse("HELLO", bytes);
    lock_manager locks = sim.make_manager();
    const outcome_ptr got = sim.try_acquire(locks, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(got));
    CHECK(!got->error);
    CHECK(got->report.masters()[0].vote == vote::unsent);
    CHECK(got->report.masters()[0].reason == master_errc::protocol_error);
    CHECK(got->report.masters()[0].detail.view() == "it sent 16 unsolicited pushes");
}

TEST_CASE("a master that announces another one's run id never replaces that one", "[handshake][scenario-90]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim_master& honest = sim.master(0);
    sim_master& liar = sim.master(2);
    liar.restart(honest.run_id, true);
    sim.run_for(2s);
    // Whenever the honest server is disconnected, the lying one is ready to connect.
    for (int times = 0; times < 3; ++times)
    {
        honest.door = entrance::refuses;
        honest.break_connections();
        sim.run_for(5s);
        honest.door = entrance::open;
        sim.run_for(1s);
        const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
        REQUIRE(sim.finish(got));
        CHECK(!got->error);
        CHECK(got->report.masters()[2].reason == master_errc::same_server);
        REQUIRE(sim.finish(sim.release(got->lease)));
        sim.run_until_idle();
    }
    CHECK(liar.count("SET") == 0);
    CHECK(honest.count("SET") == 3);
}

TEST_CASE("two masters whose addresses are exchanged are connected again", "[handshake][scenario-90]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim.put(0, 1);
    sim.put(1, 0);
    sim.master(0).break_connections();
    sim.master(1).break_connections();
    sim.run_for(5s);
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 60s, .wait = 0ms});
    REQUIRE(sim.finish(got));
    sim.run_until_idle();
    CHECK(sim.keys() == 3);
}

} // namespace redlock::test
