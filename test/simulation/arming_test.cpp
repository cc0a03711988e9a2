// SPDX-License-Identifier: BSL-1.0
// Tests of guarded mode: masters that may have forgotten keys are put into quarantine, and armed again.
#include "guarded_group.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

constexpr acquire_options once{.ttl = 5s, .wait = 0ms};
/// Longer than a quarantine, the delay of the managers, and the looks.
constexpr clock::duration long_enough = guarded_group::max_ttl + 5s;

struct arming_simulation
{
    explicit arming_simulation(std::size_t masters = 3) : sim{masters}, group{sim} { group.arm_all(); }

    bool is(std::size_t index, core::marker_state state) const { return group.is(index, state); }
    bool all_are(core::marker_state state) const
    {
        bool all = true;
        for (std::size_t index = 0; index < sim.masters().size(); ++index)
        {
            all = all && is(index, state);
        }
        return all;
    }
    outcome_ptr acquire(lock_manager& by)
    {
        outcome_ptr got = sim.acquire(by, "stock", once);
        REQUIRE(sim.finish(got));
        return got;
    }
    config observed()
    {
        config with = group.options();
        with.observer.on_event = [this](const event& what) { events.push_back(what); };
        return with;
    }
    template <class Event>
    std::size_t count() const
    {
        return static_cast<std::size_t>(std::count_if(
            events.begin(), events.end(),
            [](const event& each) { return std::holds_alternative<Event>(each); }));
    }

    simulation sim;
    guarded_group group;
    std::vector<event> events;
};

} // namespace

TEST_CASE(
    "arming: a restarted master votes again after max_ttl, above every token",
    "[guarded][scenario-7][scenario-68]")
{
    arming_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.observed());
    const outcome_ptr first = test.acquire(locks);
    REQUIRE(!first->error);
    const bool emptied = GENERATE(false, true);
    CAPTURE(emptied);
    test.sim.master(0).restart("another run", !emptied);
    const clock::time_point lost = test.sim.now();
    REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::quarantine); }, 5s));
    CHECK(
        test.group.present(0)->why ==
        (emptied ? core::incarnation_end::emptied : core::incarnation_end::stale));
    REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::armed); }, long_enough));
    CHECK(test.sim.now() - lost >= guarded_group::max_ttl);
    CHECK(std::stoull(test.sim.master(0).field(fence_key, "floor").value()) >= *first->lease.fencing_token());
    CHECK(test.sim.master(0).value(members_key) == test.group.record());
    test.sim.run_for(2s);
    REQUIRE(test.sim.finish(test.sim.release(first->lease)));
    const outcome_ptr next = test.acquire(locks);
    REQUIRE(!next->error);
    test.sim.run_until_idle();
    CHECK(next->lease.fencing_token() > first->lease.fencing_token());
    CHECK(test.sim.master(0).value("lock:stock"));
    REQUIRE(test.count<master_quarantined>() == 1);
    REQUIRE(test.count<master_armed>() == 1);
}

TEST_CASE("arming: a master that forgets again waits again", "[guarded][scenario-63]")
{
    arming_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(0).restart("second run", true);
    REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::quarantine); }, 5s));
    test.sim.run_for(guarded_group::max_ttl - 1s);
    REQUIRE(test.is(0, core::marker_state::quarantine));
    const bool flushed = GENERATE(false, true);
    CAPTURE(flushed);
    if (flushed)
    {
        test.sim.master(0).flush_all();
    }
    else
    {
        test.sim.master(0).restart("third run", true);
    }
    const clock::time_point lost = test.sim.now();
    REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::armed); }, long_enough));
    CHECK(test.sim.now() - lost >= guarded_group::max_ttl);
}

TEST_CASE(
    "arming: counters that were read in one quarantine arm nothing in the next one", "[guarded][scenario-63]")
{
    arming_simulation test;
    config patient = test.group.options();
    patient.response_timeout = 20s;
    lock_manager first = test.sim.make_connected_manager(patient);
    lock_manager second = test.sim.make_connected_manager(patient);
    test.sim.master(0).restart("second run", true);
    REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::quarantine); }, 5s));
    test.sim.run_for(guarded_group::max_ttl - 1s);
    for (const std::size_t other : {1U, 2U})
    {
        test.sim.master(other).network.back = 4s;
    }
    // While one client reads the counters, the other one begins another quarantine.
    REQUIRE(test.sim.run_until([&] { return test.sim.count("largest counter") == 2; }, long_enough));
    test.sim.master(0).restart("third run", true);
    const clock::time_point lost = test.sim.now();
    REQUIRE(test.sim.run_until([&] { return test.sim.count("arm") > 0; }, 2 * long_enough));
    REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::armed); }, long_enough));
    CHECK(test.sim.now() - lost >= guarded_group::max_ttl);
}

TEST_CASE(
    "arming: another manager arms a master whose quarantine was begun by one that died",
    "[guarded][scenario-64]")
{
    arming_simulation test;
    {
        lock_manager dies = test.sim.make_connected_manager(test.group.options());
        test.sim.master(0).restart("another run", true);
        REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::quarantine); }, 5s));
    }
    test.sim.run_for(2 * long_enough);
    REQUIRE(test.is(0, core::marker_state::quarantine));
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    CHECK(test.sim.run_until([&] { return test.is(0, core::marker_state::armed); }, long_enough));
}

TEST_CASE(
    "arming: a client that dies between reading the counters and arming leaves the master in quarantine",
    "[guarded][scenario-64]")
{
    arming_simulation test;
    {
        lock_manager dies = test.sim.make_connected_manager(test.group.options());
        test.sim.master(0).restart("another run", true);
        const bool has_read =
            test.sim.run_until([&] { return test.sim.count("largest counter") == 2; }, 2 * long_enough);
        REQUIRE(has_read);
        REQUIRE(test.sim.count("arm") == 0);
    }
    test.sim.run_for(2 * long_enough);
    CHECK(test.sim.count("arm") == 0);
    REQUIRE(test.is(0, core::marker_state::quarantine));
    // A token that is issued after those counters were read.
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const clock::time_point connected = test.sim.now();
    const outcome_ptr issued = test.acquire(locks);
    REQUIRE(!issued->error);
    CHECK(issued->report.masters()[0].reason == master_errc::quarantined);
    REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::armed); }, long_enough));
    CHECK(test.sim.now() - connected >= guarded_group::max_ttl); // By its own clock.
    const auto floor = std::stoull(test.sim.master(0).field(fence_key, "floor").value());
    CHECK(floor >= issued->lease.fencing_token().value());
}

TEST_CASE(
    "arming: a master with a database that its user may not select isn't armed, so no old marker comes back",
    "[guarded][scenario-81]")
{
    // As a user of Valkey 9 that has permissions for database 0 only, or for all but one.
    arming_simulation test;
    sim_master& swapped = test.sim.master(1);
    lock_manager locks = test.sim.make_connected_manager(test.observed());
    const bool hides_all = GENERATE(false, true);
    CAPTURE(hides_all);
    for (std::size_t database = 1; database < master_store::databases; ++database)
    {
        if (hides_all || database == 5)
        {
            swapped.hidden_databases.insert(database);
        }
    }
    swapped.swap_databases(0, 5);
    test.sim.run_for(3 * long_enough);
    CHECK(swapped.count("quarantine") > 0);
    CHECK(!swapped.value(guard_key));
    CHECK(swapped.count("arm") == 0);
    const auto is_refusal = [](const event& each)
    {
        const auto* const warning = std::get_if<master_warning>(&each);
        return warning != nullptr && warning->index == 1 && warning->what == risk::arming_refused &&
               warning->detail == "there may be markers in databases that it doesn't let this user select";
    };
    CHECK(std::count_if(test.events.begin(), test.events.end(), is_refusal) == 1);
    const outcome_ptr without = test.acquire(locks);
    CHECK(!without->error);
    CHECK(without->report.masters()[1].vote == vote::unsent);
    REQUIRE(test.sim.finish(test.sim.release(without->lease)));

    swapped.hidden_databases.clear();
    REQUIRE(test.sim.run_until([&] { return test.is(1, core::marker_state::armed); }, 2 * long_enough));
    swapped.swap_databases(0, 5);
    CHECK(!swapped.value(guard_key)); // The marker of before is gone.
    REQUIRE(test.sim.run_until([&] { return test.is(1, core::marker_state::quarantine); }, 5s));
    CHECK(test.sim.run_until([&] { return test.is(1, core::marker_state::armed); }, long_enough));
}

TEST_CASE("arming: many managers arm a master once", "[guarded]")
{
    arming_simulation test;
    std::vector<lock_manager> all;
    for (int index = 0; index < 5; ++index)
    {
        all.push_back(test.sim.make_connected_manager(test.group.options()));
    }
    test.sim.master(0).restart("another run", true);
    REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::armed); }, 2 * long_enough));
    const std::string nonce = test.group.present(0)->nonce;
    test.sim.run_for(5s);
    CHECK(test.group.present(0)->nonce == nonce);
    CHECK(test.is(0, core::marker_state::armed));
}

TEST_CASE(
    "arming: after a restart of all masters with their data, locks can be acquired again",
    "[guarded][scenario-65]")
{
    arming_simulation test{GENERATE(1U, 2U, 3U, 5U)};
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    const outcome_ptr first = test.acquire(locks);
    REQUIRE(!first->error);
    const clock::time_point lost = test.sim.now();
    for (std::size_t index = 0; index < test.sim.masters().size(); ++index)
    {
        test.sim.master(index).restart("another run of " + std::to_string(index), true);
    }
    // Promise G6: 1.01 x max_ttl and 3 s.
    REQUIRE(test.sim.run_until(
        [&] { return test.all_are(core::marker_state::armed); }, guarded_group::max_ttl * 101 / 100 + 3s));
    CHECK(test.sim.now() - lost >= guarded_group::max_ttl);
    test.sim.run_for(2s);
    const outcome_ptr next = test.acquire(locks);
    REQUIRE(!next->error);
    CHECK(next->lease.fencing_token() > first->lease.fencing_token());
}

TEST_CASE(
    "arming: the clock arms after a restart of all masters, and not in later quarantines",
    "[guarded][scenario-79]")
{
    arming_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    for (std::size_t index = 0; index < 3; ++index)
    {
        test.sim.master(index).restart("second run of " + std::to_string(index), true);
    }
    REQUIRE(test.sim.run_until([&] { return test.all_are(core::marker_state::quarantine); }, 5s));
    REQUIRE(test.sim.run_until([&] { return test.all_are(core::marker_state::armed); }, 3 * long_enough));
    test.sim.run_for(2s);
    // Its counter is needed: a token may be above every clock.
    test.sim.master(1).hang();
    test.sim.master(0).restart("third run", true);
    REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::quarantine); }, 5s));
    test.sim.run_for(3 * long_enough);
    CHECK(test.is(0, core::marker_state::quarantine));
    test.sim.master(1).resume();
    CHECK(test.sim.run_until([&] { return test.is(0, core::marker_state::armed); }, long_enough));
}

TEST_CASE("arming: a majority that comes back empty is armed by nobody", "[guarded][scenario-66]")
{
    arming_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    for (const std::size_t index : {0U, 1U})
    {
        test.sim.master(index).restart("another run of " + std::to_string(index), false);
    }
    test.sim.run_for(5 * long_enough);
    CHECK(!test.is(0, core::marker_state::armed));
    CHECK(!test.is(1, core::marker_state::armed));
    const outcome_ptr got = test.acquire(locks);
    CHECK(got->error == errc::no_quorum);
    CHECK(got->report.masters()[0].reason == master_errc::not_provisioned);
}

TEST_CASE(
    "arming: under the policy of an operator, a restart of all masters is left to him",
    "[guarded][scenario-79]")
{
    arming_simulation test;
    for (std::size_t index = 0; index < 3; ++index)
    {
        core::marker mine = test.group.marker_of(index, core::marker_state::armed);
        mine.policy = core::arming_policy::by_hand;
        test.sim.master(index).set(guard_key, core::to_text(mine));
    }
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    for (std::size_t index = 0; index < 3; ++index)
    {
        test.sim.master(index).restart("another run of " + std::to_string(index), true);
    }
    test.sim.run_for(3 * long_enough);
    CHECK(test.all_are(core::marker_state::quarantine));
    CHECK(test.acquire(locks)->error == errc::no_quorum);
}

TEST_CASE("arming: counters are asked for only if they can lead to arming", "[guarded][scenario-79]")
{
    arming_simulation test;
    const bool is_left_to_operator = GENERATE(false, true);
    CAPTURE(is_left_to_operator);
    for (std::size_t index = 0; is_left_to_operator && index < 3; ++index)
    {
        core::marker mine = test.group.marker_of(index, core::marker_state::armed);
        mine.policy = core::arming_policy::by_hand;
        test.sim.master(index).set(guard_key, core::to_text(mine));
    }
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    for (std::size_t index = 0; index < 3; ++index)
    {
        const bool keeps_keys = is_left_to_operator || index == 0;
        test.sim.master(index).restart("another run of " + std::to_string(index), keeps_keys);
        REQUIRE(test.sim.run_until([&] { return test.is(index, core::marker_state::quarantine); }, 5s));
    }
    test.sim.run_for(3 * long_enough);
    REQUIRE(test.all_are(core::marker_state::quarantine));
    CHECK(test.sim.count("largest counter") == 0);
    // An operator arms two of them, one after the other.
    for (const std::size_t index : {1U, 2U})
    {
        CHECK(test.sim.count("largest counter") == 0);
        core::marker its = *test.group.present(index);
        its.state = core::marker_state::armed;
        test.sim.master(index).set(guard_key, core::to_text(its));
        test.sim.master(index).set_field(fence_key, "floor", "2000");
        test.sim.run_for(2s);
    }
    CHECK(test.is(0, core::marker_state::armed));
    CHECK(test.sim.count("largest counter") == 3);
}

TEST_CASE(
    "arming: a master that can't be reached isn't taken for one that was restarted", "[guarded][scenario-78]")
{
    arming_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(1).door = entrance::refuses;
    test.sim.master(1).break_connections();
    test.sim.master(2).door = entrance::refuses;
    test.sim.master(2).break_connections();
    test.sim.master(0).restart("another run", true);
    test.sim.run_for(3 * long_enough);
    CHECK(!test.is(0, core::marker_state::armed));
    test.sim.master(1).door = test.sim.master(2).door = entrance::open;
    CHECK(test.sim.run_until([&] { return test.is(0, core::marker_state::armed); }, long_enough));
}

TEST_CASE(
    "arming: a master under a name that isn't on the record is left to others", "[guarded][scenario-74]")
{
    arming_simulation test;
    for (std::size_t index = 0; index < 3; ++index)
    {
        std::string other = test.group.record();
        other.replace(other.find("1="), 2, "1=x");
        test.sim.master(index).set(members_key, other);
    }
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(0).restart("another run", GENERATE(false, true));
    test.sim.run_for(3 * long_enough);
    const std::optional<core::marker> left = test.group.present(0);
    CHECK((!left || left->state == core::marker_state::armed)); // As it was: stale, or gone.
    CHECK(test.sim.count("quarantine") == 0);
    CHECK(!test.acquire(locks)->error);
}

TEST_CASE(
    "arming: other masters that are away meanwhile don't prolong a quarantine", "[guarded][scenario-109]")
{
    arming_simulation test{5};
    lock_manager locks = test.sim.make_connected_manager(test.observed());
    test.sim.master(0).restart("another run", false);
    REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::quarantine); }, 5s));
    test.sim.run_for(2s);
    // Too few are left for their counters, and for the record of the members.
    for (const std::size_t index : {1U, 2U, 3U})
    {
        test.sim.master(index).door = entrance::refuses;
        test.sim.master(index).break_connections();
    }
    const bool beyond_its_end = GENERATE(false, true);
    test.sim.run_for(guarded_group::max_ttl + (beyond_its_end ? 10s : -5s));
    const outcome_ptr got = test.acquire(locks);
    CHECK(got->report.masters()[0].reason == master_errc::quarantined);
    CHECK(test.is(0, core::marker_state::quarantine));
    for (const std::size_t index : {1U, 2U, 3U})
    {
        test.sim.master(index).door = entrance::open;
    }
    CHECK(test.sim.run_until([&] { return test.is(0, core::marker_state::armed); }, 8s));
    CHECK(test.count<master_quarantined>() == 1);
}

TEST_CASE("arming: the present policy of eviction counts, not that of the connect", "[guarded][scenario-11]")
{
    arming_simulation test;
    const bool evicts = GENERATE(false, true);
    CAPTURE(evicts);
    test.sim.master(0).maxmemory_policy = evicts ? "noeviction" : "allkeys-lru";
    lock_manager locks = test.sim.make_connected_manager(test.observed());
    for (std::size_t time = 1; time <= 2; ++time)
    {
        test.sim.master(0).flush_all();
        REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::quarantine); }, 5s));
        test.sim.master(0).maxmemory_policy = "allkeys-lru";
        test.sim.run_for(2 * long_enough);
        CHECK(test.is(0, core::marker_state::quarantine));
        test.sim.master(0).maxmemory_policy = "noeviction";
        CHECK(test.sim.run_until([&] { return test.is(0, core::marker_state::armed); }, 3s));
        test.sim.run_for(2s); // Until it has been looked at.
        const auto is_refusal = [](const event& each)
        {
            const auto* const warning = std::get_if<master_warning>(&each);
            return warning != nullptr && warning->what == risk::arming_refused &&
                   warning->detail ==
                       "maxmemory-policy isn't noeviction, so that its markers and counters can vanish";
        };
        CHECK(std::count_if(test.events.begin(), test.events.end(), is_refusal) == static_cast<int>(time));
    }
    CHECK(!test.acquire(locks)->error);
}

TEST_CASE(
    "arming: a server that refuses the commands, or may evict keys, is reported once",
    "[guarded][scenario-11]")
{
    arming_simulation test;
    const bool evicts = GENERATE(false, true);
    CAPTURE(evicts);
    if (evicts)
    {
        test.sim.master(0).maxmemory_policy = "allkeys-lru";
    }
    else
    {
        test.sim.master(0).habits["arm"] = "-NOPERM User default has no permissions to run the command\r\n";
    }
    lock_manager locks = test.sim.make_connected_manager(test.observed());
    test.sim.master(0).restart("another run", true);
    test.sim.run_for(2 * long_enough);
    CHECK(test.is(0, core::marker_state::quarantine));
    const auto told = std::count_if(
        test.events.begin(), test.events.end(),
        [](const event& each)
        {
            const auto* const warning = std::get_if<master_warning>(&each);
            return warning != nullptr && warning->what == risk::arming_refused;
        });
    CHECK(told == 1);
    CHECK(!test.acquire(locks)->error);
}

TEST_CASE("arming: a master that can't be armed without the counter of another one is reported", "[guarded]")
{
    arming_simulation test{5};
    lock_manager locks = test.sim.make_connected_manager(test.observed());
    const std::size_t silent = GENERATE(0U, 1U, 2U);
    for (std::size_t master = 1; master <= silent; ++master)
    {
        test.sim.master(master).habits["largest counter"] = "-NOPERM this user has no permissions\r\n";
    }
    test.sim.master(0).restart("another run", true);
    test.sim.run_for(2 * long_enough);
    std::vector<std::string> told;
    for (const event& each : test.events)
    {
        const auto* const warning = std::get_if<master_warning>(&each);
        if (warning != nullptr && warning->what == risk::arming_refused)
        {
            CHECK(warning->index == 0);
            told.push_back(warning->detail);
        }
    }
    // Of five masters, three others have to show theirs.
    CHECK(test.is(0, silent == 2 ? core::marker_state::quarantine : core::marker_state::armed));
    REQUIRE(told.size() == (silent == 2 ? 1 : 0));
    if (silent == 2)
    {
        CHECK(told.front().find("doesn't show its largest counter: NOPERM") != std::string::npos);
        for (std::size_t master = 1; master <= silent; ++master)
        {
            test.sim.master(master).habits.clear();
        }
        CHECK(test.sim.run_until([&] { return test.is(0, core::marker_state::armed); }, 10s));
    }
    CHECK(!test.acquire(locks)->error);
}

TEST_CASE("arming: what a master refuses isn't repeated at once", "[guarded]")
{
    arming_simulation test;
    const std::string what = GENERATE("quarantine", "arm");
    const std::string answer =
        GENERATE("-OOM command not allowed when used memory > 'maxmemory'.\r\n", ":-2\r\n");
    CAPTURE(what, answer);
    test.sim.master(0).habits[what] = answer;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(0).restart("another run", true);
    test.sim.run_for(guarded_group::max_ttl + 3s);
    const std::size_t before = test.sim.count(what);
    REQUIRE(before > 0);
    test.sim.run_for(10s);
    CHECK(test.sim.count(what) > before);
    CHECK(test.sim.count(what) - before <= 10 * test.sim.masters().size() + 1);
    CHECK(!test.acquire(locks)->error);
}

TEST_CASE("arming: the marker of another database can't come back", "[guarded][scenario-69]")
{
    arming_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.master(0).swap_databases(0, 1);
    REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::quarantine); }, 5s));
    test.sim.master(0).show_database(1);
    CHECK(!test.sim.master(0).value(guard_key));
    test.sim.master(0).show_database(0);
    REQUIRE(test.sim.run_until([&] { return test.is(0, core::marker_state::armed); }, long_enough));
    test.sim.master(0).swap_databases(0, 1);
    const outcome_ptr got = test.acquire(locks);
    CHECK(!got->error);
    CHECK(got->report.masters()[0].vote != vote::granted);
}

TEST_CASE(
    "arming: a master whose clock has jumped ahead is put into quarantine, and votes again",
    "[guarded][scenario-4]")
{
    arming_simulation test{GENERATE(3U, 5U)};
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.run_for(3s);
    test.sim.master(1).clock_of_its_own().jump(test.sim.now(), 30s);
    REQUIRE(test.sim.run_until([&] { return test.is(1, core::marker_state::quarantine); }, 5s));
    CHECK(test.group.present(1)->why == core::incarnation_end::clock);
    const clock::time_point seen = test.sim.now();
    REQUIRE(test.sim.run_until([&] { return test.is(1, core::marker_state::armed); }, long_enough));
    CHECK(test.sim.now() - seen >= guarded_group::max_ttl);
    CHECK(!test.acquire(locks)->error);
}

TEST_CASE("arming: a jump before a quarantine causes no other one, even if it is judged later", "[guarded]")
{
    // A client that finds no group yet judges nothing.
    const bool was_unarmed = GENERATE(false, true);
    guarded_simulation test{3};
    for (const std::size_t index : {0U, 2U})
    {
        test.sim.master(index).remove(guard_key);
    }
    const lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.run_for(3s);
    test.sim.master(1).clock_of_its_own().jump(test.sim.now(), 30s);
    test.sim.run_for(5s);
    if (was_unarmed)
    {
        if (GENERATE(false, true))
        {
            test.group.put_marker(1, core::marker_state::quarantine, core::incarnation_end::stale);
        }
        else
        {
            test.sim.master(1).remove(guard_key);
        }
        test.sim.run_for(5s);
        test.group.arm(1);
        test.sim.run_for(5s);
    }
    test.group.arm(0);
    test.group.arm(2);
    test.sim.run_for(5s);
    CHECK(test.group.is(1, was_unarmed ? core::marker_state::armed : core::marker_state::quarantine));
}

TEST_CASE("arming: a marker that was away for a moment hides no jump", "[guarded]")
{
    const int how = GENERATE(0, 1, 2); // Not away, by SWAPDB, on another server.
    guarded_simulation test{3};
    config options = test.group.options();
    options.response_timeout = 20s;
    const lock_manager locks = test.sim.make_connected_manager(options);
    test.sim.run_for(5s);
    sim_master& jumps = test.sim.master(1);
    for (const std::size_t index : {0U, 2U}) // So that the clock isn't judged yet.
    {
        test.sim.master(index).link().hold();
    }
    jumps.clock_of_its_own().jump(test.sim.now(), 30s);
    test.sim.run_for(2s);
    const std::string run_id = jumps.run_id;
    const std::string marker = *jumps.value(guard_key);
    if (how == 1)
    {
        jumps.swap_databases(0, 1);
        const std::size_t looks = jumps.count("GET");
        REQUIRE(test.sim.run_until([&] { return jumps.count("GET") > looks; }, 3s));
        test.sim.run_for(150us);
        jumps.swap_databases(0, 1);
    }
    if (how == 2)
    {
        jumps.run_id = "another server";
        jumps.remove(guard_key);
        jumps.break_connections();
        test.sim.run_for(3s);
        jumps.run_id = run_id;
        jumps.set(guard_key, marker);
        jumps.break_connections();
    }
    test.sim.run_for(3s);
    REQUIRE(jumps.value(guard_key) == marker);
    for (const std::size_t index : {0U, 2U})
    {
        test.sim.master(index).link().let_go();
    }
    test.sim.run_for(5s);
    CHECK(test.group.is(1, core::marker_state::quarantine));
}

TEST_CASE("arming: a client that stood still accuses no master", "[guarded][scenario-76]")
{
    arming_simulation test;
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.run_for(3s);
    for (const auto& each : test.sim.masters())
    {
        each->clock_of_its_own().jump(test.sim.now(), 30s);
    }
    test.sim.run_for(5s);
    CHECK(test.all_are(core::marker_state::armed));
    CHECK(test.sim.count("quarantine") == 0);
    CHECK(!test.acquire(locks)->error);
}

TEST_CASE("arming: at most one member is in quarantine for its clock", "[guarded][scenario-76]")
{
    arming_simulation test{5};
    lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.run_for(3s);
    test.sim.master(1).clock_of_its_own().jump(test.sim.now(), 30s);
    REQUIRE(test.sim.run_until([&] { return test.is(1, core::marker_state::quarantine); }, 5s));
    test.sim.master(2).clock_of_its_own().jump(test.sim.now(), 30s);
    test.sim.run_for(4s);
    CHECK(test.is(2, core::marker_state::armed));
}

} // namespace redlock::test
