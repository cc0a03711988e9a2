// SPDX-License-Identifier: BSL-1.0
// Tests of guarded mode: which masters vote, and how a round gets its fencing token.
#include "guarded_group.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace redlock::test
{

namespace
{

constexpr acquire_options without_wait{.ttl = 5s, .wait = 0ms};
constexpr acquire_options with_wait{.ttl = 5s, .wait = 1min};

std::uint64_t token_of(const outcome_ptr& got)
{
    REQUIRE(!got->error);
    REQUIRE(got->lease.fencing_token());
    CHECK(got->report.fencing_token == got->lease.fencing_token());
    return *got->lease.fencing_token();
}

} // namespace

TEST_CASE("guarded: an acquire without rivals is one command to each master, and no raise", "[guarded]")
{
    guarded_simulation test{GENERATE(1U, 2U, 3U, 5U)};
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    std::uint64_t last = 0;
    for (int time = 0; time < 20; ++time)
    {
        const outcome_ptr got = test.acquire(locks);
        CHECK(token_of(got) > last);
        last = token_of(got);
        test.sim.run_until_idle();
        for (std::size_t index = 0; index < test.sim.masters().size(); ++index)
        {
            CHECK(test.group.counter(index, "stock") == last);
        }
        REQUIRE(test.sim.finish(test.sim.release(got->lease)));
        CHECK(got->lease.fencing_token() == last); // Still readable.
    }
    CHECK(test.sim.count("acquire") == 20 * test.sim.masters().size());
    CHECK(test.sim.count("raise") == 0);
    CHECK(test.sim.count("SET") == 0);
}

TEST_CASE(
    "guarded: an acquire waits for the first look at a master, unless its first attempt has failed",
    "[guarded]")
{
    guarded_simulation test{5};
    config options = test.group.options();
    const bool fails_first = GENERATE(false, true);
    const auto set_door = [&](entrance door)
    {
        for (const std::size_t index : {0U, 1U, 2U})
        {
            test.sim.master(index).door = door;
        }
    };
    set_door(fails_first ? entrance::refuses : entrance::open);
    lock_manager locks = test.sim.make_manager(options);
    test.sim.run_for(500us);
    set_door(entrance::open);
    for (const std::size_t index : {0U, 1U, 2U})
    {
        // The last command of the handshake. The look isn't answered.
        sim_master& master = test.sim.master(index);
        REQUIRE(test.sim.run_until([&] { return master.count("PUBLISH") > 0; }, 1s));
        master.hang();
    }
    test.sim.run_for(1ms);
    const clock::time_point began = test.sim.now();
    const outcome_ptr got = test.sim.try_acquire(locks, "stock", {.ttl = 5s});
    REQUIRE(test.sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    const clock::duration took = got->at - began;
    CHECK((took >= options.response_timeout - 1ms) != fails_first);
    CHECK(took <= (fails_first ? 50ms : options.response_timeout + 1ms)); // The node timeout of the round.
}

TEST_CASE("guarded: a plain manager sends no command of the guarded mode, and has no token", "[guarded]")
{
    guarded_simulation test{5};
    lock_manager locks = test.sim.make_connected_manager();
    const outcome_ptr got = test.acquire(locks);
    CHECK(!got->error);
    CHECK(!got->lease.fencing_token());
    CHECK(!got->report.fencing_token);
    CHECK(test.sim.count("SET") == 5);
    CHECK(test.sim.count("GET") + test.sim.count("HGET") + test.sim.count("acquire") == 0);
}

TEST_CASE("guarded: counters that differ are raised, and the token is exactly what a quorum has", "[guarded]")
{
    guarded_simulation test{5};
    // Ahead of every hint, by less than 2^20.
    const std::uint64_t now = test.shown(0);
    const std::uint64_t ahead = now + 1'000'000'000;
    for (std::size_t index = 0; index < 5; ++index)
    {
        test.group.put_counter(index, "stock", ahead + index);
    }
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr got = test.acquire(locks);
    const std::uint64_t token = token_of(got);
    test.sim.run_until_idle();
    std::size_t exact = 0;
    for (std::size_t index = 0; index < 5; ++index)
    {
        CHECK(test.group.counter(index, "stock") >= ahead + index + 1);
        exact += test.group.counter(index, "stock") == token ? 1U : 0U;
    }
    CHECK(exact >= 3);
    CHECK(test.sim.count("raise") >= 2);
    REQUIRE(test.sim.finish(test.sim.release(got->lease)));
    CHECK(token_of(test.acquire(locks)) > token);
}

TEST_CASE("guarded: without acknowledged raises there is no lease, and nothing stays locked", "[guarded]")
{
    guarded_simulation test{3};
    const std::uint64_t largest = test.put_counters_apart(3);
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const bool refuses = GENERATE(false, true);
    CAPTURE(refuses);
    for (const auto& each : test.sim.masters())
    {
        each->refuse("raise", refuses ? "-ERR no\r\n" : "");
    }
    const outcome_ptr got = test.acquire(locks);
    CHECK(got->error == errc::no_quorum);
    CHECK(!got->report.fencing_token);
    CHECK(!got->lease.fencing_token());
    const auto said = got->report.masters();
    CHECK(std::any_of(
        said.begin(), said.end(),
        [&](const master_report& each)
        {
            return refuses ? each.vote == vote::failed && each.reason == master_errc::command_failed
                           : each.vote == vote::timed_out && each.reason == master_errc::timed_out;
        }));
    for (const auto& each : test.sim.masters())
    {
        each->answer_as_usual();
    }
    CHECK(test.sim.run_until(
        [&]
        {
            return test.sim.master(0).value("lock:stock") == std::nullopt &&
                   test.sim.master(1).value("lock:stock") == std::nullopt &&
                   test.sim.master(2).value("lock:stock") == std::nullopt;
        },
        10s));
    CHECK(token_of(test.acquire(locks)) > largest);
}

TEST_CASE("guarded: a validity that ends while counters are raised gives no lease", "[guarded][scenario-71]")
{
    guarded_simulation test{3};
    test.put_counters_apart(3);
    config options = test.group.options();
    options.node_timeout = 30ms;
    lock_manager locks = test.sim.make_connected_manager(options);
    for (const auto& each : test.sim.masters())
    {
        each->network.back = 20ms; // Less than the validity, but not twice.
    }
    const outcome_ptr got = test.acquire(locks, {.ttl = 42ms, .wait = 0ms});
    CHECK(got->error == errc::validity_exhausted);
    CHECK(!got->lease);
    CHECK(!got->lease.fencing_token());
    CHECK(test.sim.count("raise") >= 1);
    CHECK(test.sim.run_until(
        [&]
        {
            return std::none_of(
                test.sim.masters().begin(), test.sim.masters().end(),
                [](const auto& each) { return each->value("lock:stock").has_value(); });
        },
        60ms));
    token_of(test.acquire(locks));
}

TEST_CASE("guarded: with a failed raise and a key of another owner, the resource is held", "[guarded]")
{
    guarded_simulation test{3};
    test.put_counters_apart(2);
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(2).set("lock:stock", "another owner", 10s);
    test.sim.master(0).refuse("raise", "-ERR no\r\n");
    const outcome_ptr got = test.sim.acquire(locks, "stock", without_wait);
    REQUIRE(test.sim.finish(got));
    CHECK(got->report.masters()[0].vote == vote::failed);
    CHECK(got->report.masters()[1].vote == vote::granted);
    CHECK(got->report.masters()[2].vote == vote::denied);
    CHECK(got->error == errc::held_by_other);
    // The next acquire uses the same objects.
    test.sim.master(2).remove("lock:stock");
    test.sim.master(0).answer_as_usual();
    test.sim.run_until_idle();
    const outcome_ptr next = test.acquire(locks);
    INFO(next->report);
    CHECK(!next->error);
    CHECK(next->report.count(vote::failed) == 0);
}

TEST_CASE(
    "guarded: a grant whose raise failed is no answer of a quorum that would say who holds", "[guarded]")
{
    guarded_simulation test{5};
    test.put_counters_apart(3);
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(3).set("lock:stock", "another owner", 10s);
    test.sim.master(4).hang();
    for (const std::size_t raised : {0U, 1U})
    {
        test.sim.master(raised).refuse("raise", "-ERR no\r\n");
    }
    const outcome_ptr got = test.sim.acquire(locks, "stock", without_wait);
    REQUIRE(test.sim.finish(got));
    CHECK(got->report.masters()[0].vote == vote::failed);
    CHECK(got->report.masters()[2].vote == vote::granted);
    CHECK(got->report.masters()[3].vote == vote::denied);
    CHECK(got->error == errc::no_quorum);
}

TEST_CASE("guarded: a grant whose raise can't be sent is reported as failed, with the reason", "[guarded]")
{
    guarded_simulation test{3};
    test.put_counters_apart(3);
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(1).hang();
    test.sim.master(2).network.back = 10ms;
    const outcome_ptr got = test.sim.acquire(locks, "stock", without_wait);
    test.sim.run_for(5ms);
    REQUIRE(test.sim.master(0).value("lock:stock"));
    error_code expected;
    SECTION("its connection is gone")
    {
        test.sim.master(0).door = entrance::refuses;
        test.sim.master(0).break_connections();
        expected = asio::error::connection_reset;
    }
    SECTION("it is in quarantine")
    {
        test.group.put_marker(0, core::marker_state::quarantine, core::incarnation_end::stale);
        const outcome_ptr other = test.sim.acquire(locks, "other", without_wait);
        test.sim.run_for(2ms);
        CHECK_FALSE(other->done);
        expected = master_errc::quarantined;
    }
    REQUIRE(test.sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    CHECK(test.sim.count("raise") == 0);
    CHECK(got->report.masters()[0].vote == vote::failed);
    CHECK(got->report.masters()[0].reason == expected);
    CHECK(got->report.masters()[2].vote == vote::granted);
}

TEST_CASE("guarded: a master that was restarted with its data grants nothing", "[guarded][scenario-7]")
{
    guarded_simulation test{3};
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const bool reconnected = GENERATE(false, true);
    CAPTURE(reconnected);
    if (reconnected)
    {
        test.sim.master(0).restart("another run", true);
        test.sim.run_for(2s);
    }
    else
    {
        test.sim.master(0).lose_writes_of(0ms); // Promoted, on the same connection.
    }
    const outcome_ptr got = test.acquire(locks);
    CHECK(token_of(got) > 0);
    const master_report& said = got->report.masters()[0];
    CHECK(said.vote == (reconnected ? vote::unsent : vote::failed));
    CHECK((said.reason == master_errc::incarnation_changed || said.reason == master_errc::quarantined));
    CHECK(!test.sim.master(0).value("lock:stock"));
}

TEST_CASE("guarded: a master in quarantine, retired or without a marker isn't asked", "[guarded]")
{
    guarded_simulation test{3};
    error_code expected;
    SECTION("in quarantine")
    {
        test.group.put_marker(1, core::marker_state::quarantine, core::incarnation_end::stale);
        expected = master_errc::quarantined;
    }
    SECTION("retired")
    {
        test.group.put_marker(1, core::marker_state::retired);
        expected = master_errc::other_group;
    }
    SECTION("of another group")
    {
        guarded_group{test.sim, "fedcba9876543210"}.arm(1);
        expected = master_errc::other_group;
    }
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr got = test.acquire(locks);
    CHECK(token_of(got) > 0);
    CHECK(got->report.masters()[1].vote == vote::unsent);
    CHECK(got->report.masters()[1].reason == expected);
    CHECK(test.sim.master(1).count("acquire") == 0);
}

TEST_CASE("guarded: masters that have all left their group say so at once", "[guarded]")
{
    simulation sim{3};
    guarded_group group{sim};
    for (std::size_t master = 0; master < 3; ++master)
    {
        group.put_marker(master, core::marker_state::retired);
    }
    lock_manager locks = sim.make_connected_manager(group.options());
    const clock::time_point began = sim.now();
    const outcome_ptr got = sim.acquire(locks, "stock", {.ttl = 500ms, .wait = 10s});
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    CHECK(got->at - began < 1s);
    for (const master_report& each : got->report.masters())
    {
        CHECK(each.reason == master_errc::other_group);
        CHECK(each.detail.view() == "it has left its group");
    }
}

TEST_CASE("guarded: masters without a group give no lock", "[guarded]")
{
    simulation sim{3};
    guarded_group group{sim};
    lock_manager locks = sim.make_connected_manager(group.options());
    const outcome_ptr got = sim.acquire(locks, "stock", without_wait);
    REQUIRE(sim.finish(got));
    CHECK(got->error == errc::no_quorum);
    for (const master_report& each : got->report.masters())
    {
        CHECK(each.vote == vote::unsent);
        CHECK(each.reason == master_errc::not_provisioned);
    }
    CHECK(sim.keys() == 0);
}

TEST_CASE("guarded: the configured group counts, and no other", "[guarded]")
{
    guarded_simulation test{3};
    config with = test.group.options();
    with.guarded->group = "fedcba9876543210";
    lock_manager locks = test.sim.make_connected_manager(with);
    CHECK(test.acquire(locks)->error == errc::no_quorum);
    with.guarded->group = group_name;
    lock_manager others = test.sim.make_connected_manager(with);
    CHECK(!test.acquire(others)->error);
}

TEST_CASE("guarded: the first round waits for the looks", "[guarded]")
{
    guarded_simulation test{5};
    lock_manager locks = test.sim.make_manager(test.group.options());
    const outcome_ptr got = test.acquire(locks, with_wait);
    CHECK(token_of(got) > 0);
    CHECK(got->report.count(vote::unsent) == 0);
    CHECK(got->report.rounds == 1);
}

TEST_CASE("guarded: masters are looked at however few keys may be outstanding", "[guarded]")
{
    guarded_simulation test{5};
    config with = test.group.options();
    with.max_outstanding_keys = 1;
    lock_manager locks = test.sim.make_connected_manager(with);
    CHECK(token_of(test.acquire(locks)) > 0);
    test.sim.run_for(5s);
    CHECK(test.sim.count("HELLO") == test.sim.masters().size()); // No connection was replaced.
}

TEST_CASE("guarded: no limit of outstanding keys is too large for extensions", "[guarded]")
{
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    guarded_simulation test{3};
    config with = test.group.options();
    with.max_outstanding_keys = GENERATE_COPY(most, most / 2, most / 2 + 1, most / 4 + 1);
    lock_manager locks = test.sim.make_connected_manager(with);
    std::vector<outcome_ptr> held;
    std::vector<outcome_ptr> extended;
    for (int count = 0; count < 20; ++count)
    {
        held.push_back(test.sim.acquire(locks, std::to_string(count), with_wait));
        REQUIRE(test.sim.finish(held.back()));
        REQUIRE(!held.back()->error);
    }
    for (const outcome_ptr& each : held)
    {
        extended.push_back(test.sim.extend(each->lease, with_wait.ttl));
    }
    for (const outcome_ptr& each : extended)
    {
        REQUIRE(test.sim.finish(each));
        CHECK(!each->error);
    }
}

TEST_CASE("guarded: clients that wait in the queue get rising tokens", "[guarded]")
{
    guarded_simulation test{5};
    config with = test.group.options();
    with.order = GENERATE(order::waiting, order::strict);
    lock_manager one = test.sim.make_connected_manager(with);
    lock_manager other = test.sim.make_connected_manager(with);
    outcome_ptr held = test.acquire(one, with_wait);
    std::uint64_t last = token_of(held);
    for (int time = 0; time < 10; ++time)
    {
        const outcome_ptr next = test.sim.acquire(time % 2 == 0 ? other : one, "stock", with_wait);
        test.sim.run_for(50ms);
        CHECK(!next->done);
        REQUIRE(test.sim.finish(test.sim.release(held->lease)));
        REQUIRE(test.sim.finish(next));
        CHECK(token_of(next) > last);
        last = token_of(next);
        CHECK(next->at - held->at < 1s);
        held = next;
    }
    CHECK(test.sim.count("ask") > 0);
    CHECK(test.sim.count("SET") == 0);
}

TEST_CASE("guarded: a script that the server doesn't know is sent in full, once", "[guarded]")
{
    guarded_simulation test{3};
    const std::uint64_t now = test.shown(0);
    for (std::size_t index = 0; index < 3; ++index)
    {
        test.group.put_counter(index, "stock", now + 1'000'000'000 + index);
    }
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    for (const auto& each : test.sim.masters())
    {
        each->flush_scripts();
    }
    const outcome_ptr got = test.acquire(locks, acquire_options{.ttl = 5s, .wait = 1s});
    CHECK(token_of(got) > now);
    CHECK(test.sim.count("acquire") == 6);
    const outcome_ptr extended = test.sim.extend(got->lease, 6s);
    REQUIRE(test.sim.finish(extended));
    CHECK(!extended->error);
    CHECK(test.sim.count("extend") == 6);
}

TEST_CASE("guarded: an extension counts in the group of the lease only", "[guarded]")
{
    guarded_simulation test{3};
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr got = test.acquire(locks);
    const std::uint64_t token = token_of(got);
    SECTION("in quarantine")
    {
        for (std::size_t index = 0; index < 3; ++index)
        {
            test.group.put_marker(index, core::marker_state::quarantine, core::incarnation_end::stale);
        }
        const outcome_ptr extended = test.sim.extend(got->lease, 6s);
        REQUIRE(test.sim.finish(extended));
        CHECK(!extended->error);
        CHECK(got->lease.fencing_token() == token);
    }
    SECTION("in another group")
    {
        guarded_group other{test.sim, "fedcba9876543210"};
        other.arm(0);
        other.arm(1);
        const outcome_ptr extended = test.sim.extend(got->lease, 6s);
        REQUIRE(test.sim.finish(extended));
        CHECK(extended->error == errc::no_quorum);
        CHECK(extended->report.masters()[0].vote == vote::failed);
        CHECK(extended->report.masters()[0].reason == master_errc::other_group);
        CHECK(got->lease.valid());
    }
}

TEST_CASE("guarded: a ttl above that of the group is refused", "[guarded]")
{
    guarded_simulation test{3};
    lock_manager locks = test.sim.make_manager(test.group.options());
    const outcome_ptr refused = test.acquire(locks, {.ttl = 10'001ms, .wait = 1s});
    CHECK(refused->error == errc::invalid_ttl);
    CHECK(refused->report.argument_error.find("10000 ms at most") != std::string::npos);
    CHECK(test.sim.count("acquire") == 0);
    const outcome_ptr got = test.acquire(locks, {.ttl = 10'000ms, .wait = 1s});
    CHECK(!got->error);
    const outcome_ptr extended = test.sim.extend(got->lease, 10'001ms);
    REQUIRE(test.sim.finish(extended));
    CHECK(extended->error == errc::invalid_ttl);
}

TEST_CASE(
    "guarded: a master whose clock has jumped ahead grants nothing to those who knew it",
    "[guarded][scenario-4]")
{
    guarded_simulation test{2};
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(1).clock_of_its_own().jump(test.sim.now(), 10s);
    const outcome_ptr got = test.acquire(locks);
    CHECK(got->error == errc::no_quorum);
    CHECK(got->report.masters()[1].vote == vote::failed);
    CHECK(got->report.masters()[1].reason == master_errc::clock_ahead);
    CHECK(!test.sim.master(1).value("lock:stock"));
}

TEST_CASE("guarded: a master that refuses INFO or TIME is named, and others are not disturbed", "[guarded]")
{
    guarded_simulation test{3};
    const std::string what = GENERATE("INFO", "TIME", "GET", "HGET");
    CAPTURE(what);
    test.sim.master(1).habits[what] = "-NOPERM User default has no permissions to run the command\r\n";
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr got = test.acquire(locks);
    CHECK(token_of(got) > 0);
    CHECK(got->report.masters()[1].vote == vote::unsent);
    CHECK(got->report.masters()[1].reason == master_errc::no_permission);
}

TEST_CASE("guarded: what an earlier connection was refused isn't told of the next one", "[guarded]")
{
    guarded_simulation test{3};
    test.sim.master(1).habits["GET"] = "-NOPERM User default has no permissions to run the command\r\n";
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    CHECK(!test.acquire(locks)->report.masters()[1].detail.view().empty());
    // It is connected again, and hasn't shown its marker yet.
    const std::size_t looks = test.sim.master(1).count("GET");
    test.sim.master(1).break_connections();
    REQUIRE(test.sim.run_until([&] { return test.sim.master(1).count("GET") > looks; }, 5s));
    const outcome_ptr got = test.sim.try_acquire(locks, "another", {.ttl = 5s});
    REQUIRE(test.sim.finish(got));
    CHECK(got->report.masters()[1].vote == vote::unsent);
    CHECK(got->report.masters()[1].reason == master_errc::not_connected);
    CHECK(got->report.masters()[1].detail.view().empty());
}

TEST_CASE(
    "guarded: an execution context is destroyed while a master is looked at, or put into quarantine",
    "[guarded]")
{
    guarded_simulation test{3};
    {
        lock_manager locks = test.sim.make_connected_manager(test.group.options());
        const bool is_quarantine = GENERATE(false, true);
        CAPTURE(is_quarantine);
        if (is_quarantine)
        {
            test.sim.master(0).remove(guard_key);
        }
        const char* const sent = is_quarantine ? "quarantine" : "HGET";
        const std::size_t before = test.sim.count(sent);
        // The master has received the command, and its reply is on the way.
        REQUIRE(test.sim.run_until([&] { return test.sim.count(sent) > before; }, 5s));
    }
    test.sim.destroy_context();
    CHECK(test.sim.count("HGET") > 0);
}

TEST_CASE("guarded: every manager refuses resources in the place of the library's keys", "[guarded]")
{
    guarded_simulation test{3};
    config with = GENERATE(true, false) ? test.group.options() : test.sim.options();
    const auto [prefix, resource] = GENERATE(table<std::string, std::string>(
        {{"lock:", ":redlock-guard"},
         {"lock:", "redlock-fence"},
         {"lock:", "a:redlock-members:b"},
         {"lock::redlock-", "guard"},
         {"lock::red", "lock-members"}}));
    with.key_prefix = prefix;
    lock_manager locks = test.sim.make_manager(with);
    const outcome_ptr got = test.sim.acquire(locks, resource, without_wait);
    REQUIRE(test.sim.finish(got));
    CHECK(got->error == errc::invalid_resource);
    const outcome_ptr similar = test.sim.acquire(locks, "redlock-other", without_wait);
    REQUIRE(test.sim.finish(similar));
    CHECK(similar->error != errc::invalid_resource);
}

} // namespace redlock::test
