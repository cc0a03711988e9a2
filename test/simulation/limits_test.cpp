// SPDX-License-Identifier: BSL-1.0
// Limits on what waits: what is refused at them, and that nothing is lost.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

} // namespace

TEST_CASE("an operation more than max_operations is refused, and a release never is")
{
    simulation all{3};
    config options = all.options();
    options.max_operations = 2;
    lock_manager locks = all.make_connected_manager(options);
    const outcome_ptr held = all.acquire(locks, "r", {.ttl = 600s});
    REQUIRE(all.finish(held));
    REQUIRE(!held->error);
    const outcome_ptr first = all.acquire(locks, "a", {.ttl = 600s});
    const outcome_ptr second = all.acquire(locks, "b", {.ttl = 600s});
    const outcome_ptr third = all.acquire(locks, "c", {.ttl = 600s});
    const outcome_ptr extended = all.extend(held->lease, 700s);
    const outcome_ptr released = all.release(held->lease);
    REQUIRE(all.finish(third));
    REQUIRE(all.finish(extended));
    REQUIRE(all.finish(released));
    REQUIRE(all.finish(first));
    REQUIRE(all.finish(second));
    CHECK(third->error == errc::too_many_operations);
    CHECK(extended->error == errc::too_many_operations);
    CHECK(!released->error);
    CHECK(!first->error);
    CHECK(!second->error);
    all.run_until_idle();
    CHECK(all.master(0).count("SET") == 3);
    // There is room again.
    const outcome_ptr later = all.acquire(locks, "c", {.ttl = 600s});
    REQUIRE(all.finish(later));
    CHECK(!later->error);
}

TEST_CASE("an acquire that would wait beside max_waiting_acquires others ends instead")
{
    simulation all{3};
    config options = all.options();
    options.max_waiting_acquires = 1;
    lock_manager locks = all.make_connected_manager(options);
    for (std::size_t master = 0; master < 3; ++master)
    {
        all.master(master).set("lock:r", "another");
    }
    const outcome_ptr waits = all.acquire(locks, "r", {.ttl = 10s, .wait = 30s});
    all.run_for(1ms);
    const outcome_ptr refused = all.acquire(locks, "r", {.ttl = 10s, .wait = 30s});
    REQUIRE(all.finish(refused));
    CHECK(refused->error == errc::too_many_operations);
    CHECK(refused->report.count(vote::held) >= 2);
    // What needs no pause isn't refused.
    const outcome_ptr other = all.acquire(locks, "free", {.ttl = 10s, .wait = 30s});
    REQUIRE(all.finish(other));
    CHECK(!other->error);
    for (std::size_t master = 0; master < 3; ++master)
    {
        all.master(master).remove("lock:r");
    }
    REQUIRE(all.finish(waits));
    CHECK(!waits->error);
}

} // namespace redlock::test
