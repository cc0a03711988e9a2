// SPDX-License-Identifier: BSL-1.0
// Masters whose clocks run ahead: nobody who has noticed it may count on them until all locks of before have ended.
#include "wrong_clocks.hpp"

#include <catch2/generators/catch_generators.hpp>

#include <array>
#include <functional>

namespace redlock::test
{

namespace
{

constexpr clock::duration long_enough = 2 * guarded_group::max_ttl;

/// A lease that rests on the masters 0 to 2 of five, of which the second was restarted with its data.
struct extended_in_quarantine
{
    guarded_simulation test{5};
    lock_manager holder;
    std::optional<lock_manager> other;
    lease held;

    extended_in_quarantine() : holder{test.sim.make_connected_manager(patient())}
    {
        test.sim.run_for(3s);
        for (const std::size_t index : {3U, 4U})
        {
            test.sim.master(index).link().hold();
        }
        held = std::move(test.acquire(holder, {.ttl = 10s, .wait = 0ms})->lease);
        REQUIRE(held.valid());
        other.emplace(test.sim.make_connected_manager(test.group.options()));
        test.sim.run_for(1s);
        test.sim.master(1).restart("restarted", true);
    }

    /// Its connections that hang stay open.
    config patient() const
    {
        config with = test.group.options();
        with.response_timeout = 120s;
        return with;
    }

    void extend()
    {
        const outcome_ptr extended = test.sim.extend(held, 10s);
        REQUIRE(test.sim.finish(extended, 2s));
    }

    bool armed() const { return test.group.is(1, core::marker_state::armed); }
};

} // namespace

TEST_CASE("a clock that jumps in a quarantine lets no second holder in", "[guarded][scenario-4]")
{
    // The extension in the quarantine counts, so its key has to be waited for as well.
    const auto before_the_end = GENERATE(50ms, 500ms, 1100ms, 2000ms, 5000ms);
    extended_in_quarantine with;
    simulation& sim = with.test.sim;
    REQUIRE(sim.run_until([&] { return with.test.group.is(1, core::marker_state::quarantine); }, 5s));
    const clock::time_point jump = sim.now() + guarded_group::max_ttl - before_the_end;
    while (sim.now() < jump)
    {
        with.extend();
        sim.run_for(std::min<clock::duration>(500ms, std::max<clock::duration>(jump - sim.now(), 1ms)));
    }
    REQUIRE(!with.armed());
    REQUIRE(with.held.valid());
    sim.master(1).clock_of_its_own().jump(sim.now(), 30s);
    const clock::time_point valid_until = with.held.valid_until();
    while (sim.now() < valid_until)
    {
        CHECK(with.test.acquire(*with.other, {.ttl = 3s, .wait = 0ms})->error);
        sim.run_for(200ms);
    }
    REQUIRE(sim.run_until([&] { return with.armed(); }, long_enough));
}

TEST_CASE("nobody arms a master that it suspects, although no other can tell", "[guarded][scenario-4]")
{
    guarded_simulation test{3};
    simulation& sim = test.sim;
    for (const std::size_t index : {0U, 2U}) // So far away that a stop of the client could hide.
    {
        sim.master(index).network.there = sim.master(index).network.back = 100ms;
    }
    const lock_manager locks = sim.make_connected_manager(test.group.options());
    sim.run_for(10s);
    sim.master(1).restart("restarted", true);
    REQUIRE(sim.run_until([&] { return test.group.is(1, core::marker_state::quarantine); }, 5s));
    const std::string nonce = test.group.present(1)->nonce;
    sim.run_for(5s);
    sim.master(1).clock_of_its_own().jump(sim.now(), 300ms);
    const clock::time_point jumped = sim.now();
    REQUIRE(sim.run_until([&] { return !test.group.is(1, core::marker_state::quarantine); }, 15s));
    CHECK(test.group.present(1)->nonce == nonce);
    CHECK(sim.now() >= jumped + guarded_group::max_ttl);
}

TEST_CASE("a quarantine that begins anew keeps its reason", "[guarded][scenario-65]")
{
    // As if the machines set their clocks after a power cut. Masters with a wrong clock would be armed by nobody.
    guarded_simulation test{3};
    const lock_manager locks = test.sim.make_connected_manager(test.group.options());
    test.sim.run_for(3s);
    for (std::size_t index = 0; index < 3; ++index)
    {
        test.sim.master(index).restart("restarted " + std::to_string(index), true);
    }
    REQUIRE(test.sim.run_until([&] { return test.group.is(1, core::marker_state::quarantine); }, 5s));
    test.sim.run_for(3s);
    const std::string first = test.group.present(1)->nonce;
    test.sim.master(1).clock_of_its_own().jump(test.sim.now(), 30s);
    REQUIRE(test.sim.run_until([&] { return test.group.present(1)->nonce != first; }, 5s));
    CHECK(test.group.present(1)->why == core::incarnation_end::stale);
    for (std::size_t index = 0; index < 3; ++index)
    {
        INFO(index);
        CHECK(
            test.sim.run_until([&] { return test.group.is(index, core::marker_state::armed); }, long_enough));
    }
}

TEST_CASE("a clock that jumps while another member is away lets no second holder in", "[guarded][scenario-4]")
{
    guarded_simulation test{3};
    simulation& sim = test.sim;
    lock_manager holder = sim.make_connected_manager(test.group.options());
    lock_manager other = sim.make_connected_manager(test.group.options());
    sim.run_for(3s);
    sim.master(2).door = entrance::refuses;
    sim.master(2).break_connections();
    sim.run_for(2s);
    const outcome_ptr got = test.acquire(holder, {.ttl = 10s, .wait = 0ms});
    REQUIRE(!got->error);
    sim.master(1).clock_of_its_own().jump(sim.now(), 30s);
    sim.run_for(2s);
    SECTION("which stays away")
    {
        while (got->lease.valid())
        {
            const outcome_ptr second = test.acquire(other, {.ttl = 3s, .wait = 0ms});
            REQUIRE(second->error);
            CHECK(second->report.masters()[1].reason == master_errc::clock_ahead);
            sim.run_for(500ms);
        }
        // All locks of before have ended, and nobody can tell who was wrong.
        sim.run_for(3s);
        CHECK(test.group.is(1, core::marker_state::armed));
        CHECK(!test.acquire(other, {.ttl = 3s, .wait = 0ms})->error);
    }
    SECTION("which comes back")
    {
        sim.master(2).door = entrance::open;
        REQUIRE(sim.run_until([&] { return test.group.is(1, core::marker_state::quarantine); }, 5s));
        REQUIRE(got->lease.valid());
        CHECK(test.acquire(other, {.ttl = 3s, .wait = 0ms})->error);
    }
}

TEST_CASE(
    "between a jump and the quarantine, nobody who has noticed counts the master", "[guarded][scenario-4]")
{
    held_by_two with;
    with.sim.master(1).clock_of_its_own().jump(with.sim.now(), 30s);
    REQUIRE(with.sim.run_until([&] { return with.warnings[1] > 0; }, 2s));
    REQUIRE(with.test.group.is(1, core::marker_state::armed));
    const outcome_ptr second = with.test.acquire(*with.other, {.ttl = 3s, .wait = 0ms});
    CHECK(second->error);
    CHECK(second->report.masters()[1].reason == master_errc::clock_ahead);
}

TEST_CASE("a jump beside a clock that is always too fast isn't taken for a stop", "[guarded][scenario-4]")
{
    held_by_two with;
    run_fast(with.sim, 0, 5s);
    REQUIRE(with.test.group.is(0, core::marker_state::quarantine));
    with.sim.master(1).clock_of_its_own().jump(with.sim.now(), 30s);
    run_fast(with.sim, 0, 1200ms);
    REQUIRE(with.warnings[1] > 0);
    with.check_no_other_holder([&] { run_fast(with.sim, 0, 200ms); });
}

TEST_CASE(
    "two clocks that jump alike aren't taken for a stop while a third one agrees", "[guarded][scenario-4]")
{
    held_by_two with;
    for (const std::size_t index : {0U, 1U})
    {
        with.sim.master(index).clock_of_its_own().jump(with.sim.now(), 30s);
    }
    REQUIRE(with.sim.run_until([&] { return with.warnings[0] > 0 && with.warnings[1] > 0; }, 2s));
    with.check_no_other_holder([&] { with.sim.run_for(100ms); });
}

TEST_CASE("a client that stood still forgets no other jump", "[guarded][scenario-76]")
{
    held_by_two with;
    SECTION("of before")
    {
        send_away(with.sim.master(2));
        with.sim.run_for(1s);
        with.sim.master(1).clock_of_its_own().jump(with.sim.now(), 30s);
        with.sim.run_for(3s);
        stand_still(with.sim, 40ms);
        with.sim.run_for(1500ms);
        with.sim.master(2).door = entrance::open;
    }
    SECTION("in the same second")
    {
        with.sim.master(1).clock_of_its_own().jump(with.sim.now(), 30s);
        stand_still(with.sim, 40ms);
        REQUIRE(with.sim.run_until([&] { return with.warnings[1] > 0; }, 2s));
    }
    SECTION("of a master that was away")
    {
        send_away(with.sim.master(1));
        with.sim.run_for(500ms);
        stand_still(with.sim, 40ms);
        with.sim.run_for(2s);
        with.sim.master(1).clock_of_its_own().jump(with.sim.now(), 30s);
        with.sim.master(1).door = entrance::open;
        REQUIRE(with.sim.run_until([&] { return with.warnings[1] > 0; }, 3s));
    }
    SECTION("soon after")
    {
        const auto later = GENERATE(1100ms, 1500ms, 1900ms, 2300ms);
        stand_still(with.sim, 40ms);
        with.sim.run_for(later);
        with.warnings = {};
        with.sim.master(1).clock_of_its_own().jump(with.sim.now(), 30s);
        REQUIRE(with.sim.run_until([&] { return with.warnings[1] > 0; }, 2s));
    }
    with.check_no_other_holder([&] { with.sim.run_for(100ms); });
}

TEST_CASE(
    "a client that stood still accuses no master that it reads later or from afar", "[guarded][scenario-76]")
{
    guarded_simulation test{3};
    simulation& sim = test.sim;
    const std::size_t alone = GENERATE(0U, 1U, 2U);
    const auto others = [&](auto what)
    {
        for (std::size_t index = 0; index < 3; ++index)
        {
            index == alone ? void() : what(sim.master(index));
        }
    };
    const bool is_far = GENERATE(false, true);
    if (is_far) // The stop hides in the round trips to the others.
    {
        others([](sim_master& each) { each.network.there = each.network.back = 15ms; });
    }
    const lock_manager locks = sim.make_connected_manager(test.group.options());
    sim.run_for(3s);
    if (is_far)
    {
        stand_still(sim, GENERATE(10ms, 15ms, 20ms, 30ms, 50ms));
    }
    else
    {
        stand_still(sim, 30s);
        others(send_away);
        sim.run_for(GENERATE(500ms, 1s, 3s, 5s));
        others([](sim_master& each) { each.door = entrance::open; });
    }
    sim.run_for(5s);
    CHECK(sim.count("quarantine") == 0);
}

TEST_CASE("a short stop of a client costs neither a master nor its own locks", "[guarded][scenario-76]")
{
    guarded_simulation test{3};
    simulation& sim = test.sim;
    std::optional<lock_manager> locks;
    const auto others = [&](auto what)
    {
        what(sim.master(1));
        what(sim.master(2));
    };
    SECTION("with a master at some distance")
    {
        sim.master(2).network.there = sim.master(2).network.back = 2500us;
        locks.emplace(sim.make_connected_manager(test.group.options()));
        sim.run_for(3s);
        stand_still(sim, GENERATE(10ms, 13ms, 14ms, 15ms, 16ms, 20ms, 40ms));
    }
    SECTION("while others are away")
    {
        locks.emplace(sim.make_connected_manager(test.group.options()));
        sim.run_for(3s);
        others(send_away);
        sim.run_for(GENERATE(1s, 3s, 5s));
        stand_still(sim, 30ms);
        sim.run_for(1500ms);
        others([](sim_master& each) { each.door = entrance::open; });
    }
    SECTION("after slow readings of others")
    {
        locks.emplace(sim.make_connected_manager(test.group.options()));
        sim.run_for(8s + GENERATE(0ms, 200ms, 400ms, 600ms, 800ms));
        others([](sim_master& each) { each.network.there = 100ms; });
        sim.run_for(1s);
        others([](sim_master& each) { each.network.there = 100us; });
        sim.run_for(300ms);
        stand_still(sim, 50ms);
    }
    sim.run_for(5s);
    CHECK(sim.count("quarantine") == 0);
    CHECK(!test.acquire(*locks)->error);
}

TEST_CASE("a jump costs no quorum of armed masters", "[guarded][scenario-76]")
{
    const std::size_t masters = GENERATE(3U, 5U);
    guarded_simulation test{masters};
    simulation& sim = test.sim;
    lock_manager locks = sim.make_connected_manager(test.group.options());
    sim.run_for(3s);
    SECTION("while a minority is in quarantine after restarts")
    {
        for (std::size_t index = 0; index < (masters - 1) / 2; ++index)
        {
            sim.master(index).restart("restarted " + std::to_string(index), true);
        }
        sim.run_for(3s);
        sim.master(masters - 1).clock_of_its_own().jump(sim.now(), 30s);
    }
    SECTION("while another one restarts in its quarantine for its clock")
    {
        sim.master(1).clock_of_its_own().jump(sim.now(), 30s);
        REQUIRE(sim.run_until([&] { return test.group.is(1, core::marker_state::quarantine); }, 5s));
        sim.run_for(3s);
        sim.master(2).clock_of_its_own().jump(sim.now(), 30s);
        sim.run_for(3s);
        sim.master(1).restart("restarted", true);
    }
    SECTION("of two that are judged at once")
    {
        for (std::size_t index = 2; index == 2 || index + 1 < masters; ++index)
        {
            send_away(sim.master(index));
        }
        sim.run_for(1s);
        sim.master(1).clock_of_its_own().jump(sim.now(), 30s);
        sim.run_for(3500ms);
        sim.master(0).clock_of_its_own().jump(sim.now(), 30s);
        sim.run_for(2s);
        for (const auto& each : sim.masters())
        {
            each->door = entrance::open;
        }
    }
    const clock::time_point end = sim.now() + 1min;
    for (std::size_t before = masters; sim.now() < end;)
    {
        std::size_t armed = 0;
        std::size_t for_clock = 0;
        for (std::size_t index = 0; index < masters; ++index)
        {
            armed += test.group.is(index, core::marker_state::armed) ? 1U : 0U;
            for_clock += test.group.is(index, core::marker_state::quarantine) &&
                                 test.group.present(index)->why == core::incarnation_end::clock
                             ? 1U
                             : 0U;
        }
        REQUIRE(for_clock <= 1);
        REQUIRE((for_clock <= before || armed >= quorum_of(masters)));
        before = for_clock;
        sim.run_for(10ms);
    }
    for (std::size_t index = 0; index < masters; ++index)
    {
        CHECK(test.group.is(index, core::marker_state::armed));
    }
    CHECK(!test.acquire(locks)->error);
}

TEST_CASE("a member that is gone since its clock was wrong hides no other jump", "[guarded][scenario-4]")
{
    guarded_simulation test{5};
    simulation& sim = test.sim;
    const lock_manager locks = sim.make_connected_manager(test.group.options());
    sim.run_for(3s);
    sim.master(2).clock_of_its_own().jump(sim.now(), 30s);
    REQUIRE(sim.run_until([&] { return test.group.is(2, core::marker_state::quarantine); }, 5s));
    sim.run_for(2s);
    sim.master(2).door = entrance::refuses;
    sim.master(2).break_connections();
    sim.run_for(1min);
    sim.master(1).clock_of_its_own().jump(sim.now(), 30s);
    CHECK(sim.run_until([&] { return test.group.is(1, core::marker_state::quarantine); }, 5s));
}

TEST_CASE("of two members whose clocks jump, the second is put into quarantine after the first", "[guarded]")
{
    guarded_simulation test{5};
    simulation& sim = test.sim;
    lock_manager locks = sim.make_connected_manager(test.group.options());
    sim.run_for(3s);
    sim.master(1).clock_of_its_own().jump(sim.now(), 30s);
    REQUIRE(sim.run_until([&] { return test.group.is(1, core::marker_state::quarantine); }, 5s));
    sim.run_for(8s);
    sim.master(2).clock_of_its_own().jump(sim.now(), 30s);
    sim.run_for(1500ms);
    const outcome_ptr got = test.acquire(locks);
    CHECK(!got->error);
    CHECK(got->report.masters()[2].reason == master_errc::clock_ahead);
    CHECK(test.group.is(2, core::marker_state::armed));
    CHECK(sim.run_until([&] { return test.group.is(2, core::marker_state::quarantine); }, 8s));
    CHECK(test.group.is(1, core::marker_state::armed));
}

TEST_CASE("a master whose clock runs too fast is out for as long", "[guarded][scenario-4]")
{
    const auto faster = GENERATE(3ms, 10ms, 100ms); // In a tenth of a second.
    guarded_simulation test{3};
    simulation& sim = test.sim;
    lock_manager locks = sim.make_connected_manager(test.group.options());
    sim.run_for(3s);
    run_fast(sim, 1, 10s, faster);
    for (int turn = 0; turn < 300; ++turn)
    {
        run_fast(sim, 1, 100ms, faster);
        REQUIRE(test.group.is(1, core::marker_state::quarantine));
    }
    REQUIRE(!test.acquire(locks)->error);
    REQUIRE(sim.run_until([&] { return test.group.is(1, core::marker_state::armed); }, long_enough));
}

TEST_CASE("one jump that many clients notice costs little more than one quarantine", "[guarded]")
{
    simulation sim{3, GENERATE(1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U)};
    guarded_group group{sim};
    group.arm_all();
    std::vector<lock_manager> all;
    for (int each = 0; each < 8; ++each)
    {
        all.push_back(sim.make_connected_manager(group.options()));
        sim.run_for(std::chrono::milliseconds{37 * each});
    }
    sim.run_for(3s);
    sim.master(1).clock_of_its_own().jump(sim.now(), 30s);
    const clock::time_point jump = sim.now();
    std::string last;
    clock::time_point changed = jump;
    while (!group.is(1, core::marker_state::armed) || last.empty())
    {
        REQUIRE(sim.now() - jump < long_enough);
        sim.run_for(10ms);
        const core::marker now = *group.present(1);
        if (now.state == core::marker_state::quarantine && now.nonce != last)
        {
            last = now.nonce;
            changed = sim.now();
        }
    }
    CHECK(changed - jump < 3s);
    CHECK(group.present(1)->nonce == last);
}

TEST_CASE(
    "clients that return after a jump was judged don't put the master into quarantine again", "[guarded]")
{
    guarded_simulation test{3};
    simulation& sim = test.sim;
    config patient = test.group.options();
    patient.response_timeout = 5min;
    std::vector<lock_manager> all;
    for (int each = 0; each < 9; ++each)
    {
        all.push_back(sim.make_connected_manager(patient));
    }
    sim.run_for(3s);
    for (int each = 2; each <= 9; ++each)
    {
        sim.master(1).link(each).hold();
    }
    sim.run_for(1500ms);
    sim.master(1).clock_of_its_own().jump(sim.now(), 30s);
    REQUIRE(sim.run_until([&] { return test.group.is(1, core::marker_state::quarantine); }, 5s));
    const std::string nonce = test.group.present(1)->nonce;
    for (int each = 2; each <= 9; ++each)
    {
        sim.run_for(9s);
        sim.master(1).link(each).let_go();
    }
    sim.run_for(5s);
    CHECK(test.group.is(1, core::marker_state::armed));
    CHECK(test.group.present(1)->nonce == nonce);
}

} // namespace redlock::test
