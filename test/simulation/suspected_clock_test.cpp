// SPDX-License-Identifier: BSL-1.0
// Masters whose clocks run ahead: nobody who has noticed it may count on them until all locks of before have ended.
#include "guarded_group.hpp"

#include <catch2/generators/catch_generators.hpp>

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
    guarded_simulation test{3};
    simulation& sim = test.sim;
    lock_manager holder = sim.make_connected_manager(test.group.options());
    std::size_t warnings = 0;
    config with = test.group.options();
    with.observer.on_event = [&](const event& what)
    {
        const auto* const found = std::get_if<master_warning>(&what);
        warnings += found != nullptr && found->what == risk::clock ? 1U : 0U;
    };
    lock_manager other = sim.make_connected_manager(with);
    sim.run_for(3s);
    sim.master(2).link(1).hold(); // To the holder.
    const outcome_ptr got = test.acquire(holder, {.ttl = 10s, .wait = 0ms});
    REQUIRE(!got->error);
    sim.master(1).clock_of_its_own().jump(sim.now(), 30s);
    REQUIRE(sim.run_until([&] { return warnings > 0; }, 2s));
    REQUIRE(test.group.is(1, core::marker_state::armed));
    const outcome_ptr second = test.acquire(other, {.ttl = 3s, .wait = 0ms});
    CHECK(second->error);
    CHECK(second->report.masters()[1].reason == master_errc::clock_ahead);
    CHECK(got->lease.valid());
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
    const auto run_fast = [&](clock::duration length)
    {
        for (clock::duration run{0}; run < length; run += 100ms)
        {
            sim.run_for(100ms);
            sim.master(1).clock_of_its_own().jump(sim.now(), faster);
        }
    };
    run_fast(10s);
    for (int turn = 0; turn < 300; ++turn)
    {
        run_fast(100ms);
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

} // namespace redlock::test
