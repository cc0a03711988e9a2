// SPDX-License-Identifier: BSL-1.0
// Tests that interrupt the life of two leases after each step, in every possible way.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace redlock::test
{

namespace
{

/// The adverse conditions of a life.
enum class fault_profile : std::uint8_t
{
    fine,
    taken,    // Another client holds both resources on two masters at first.
    hung,     // The last master hangs.
    deserted, // The last master isn't reachable.
    slow      // The answers of the last master come after the node timeout.
};

/// A manager from its start on, and two leases: one is acquired, extended and released, the other one is dropped.
class lifecycle
{
  public:
    lifecycle(simulation& sim, fault_profile now) : sim_{sim}, locks_{sim.make_manager(options(sim))}
    {
        sim_master& last = sim.master(2);
        for (const std::size_t taken : {0U, 2U})
        {
            if (now == fault_profile::taken)
            {
                sim.master(taken).set("lock:first", "another", 1ms);
                sim.master(taken).set("lock:second", "another", 1ms);
            }
        }
        now == fault_profile::hung ? last.hang() : void();
        last.door = now == fault_profile::deserted ? entrance::refuses : entrance::open;
        last.network.back = now == fault_profile::slow ? 60ms : 100us;
        first = sim_.acquire(*locks_, "first", {.ttl = 60s, .wait = 20ms});
        second = sim_.acquire(*locks_, "second", {.ttl = 60s, .wait = 20ms});
        current_ = first;
    }

    /// Runs one step. Returns false if the life has ended.
    bool step()
    {
        if (first->done && second->done && !extended)
        {
            current_ = extended = sim_.extend(first->lease, 60s);
        }
        if (extended && extended->done && !released)
        {
            second->lease = {};
            current_ = released = sim_.release(first->lease);
        }
        return !(released && released->done) && sim_.step();
    }
    /// Runs a number of steps. Returns false if the life has ended before.
    bool steps(std::size_t count)
    {
        for (std::size_t at = 0; at < count; ++at)
        {
            if (!step())
            {
                return false;
            }
        }
        return true;
    }
    void go_on()
    {
        REQUIRE(sim_.run_until([this] { return !step(); }, 1min));
    }
    outcome_ptr cancel()
    {
        current_->cancel.emit(asio::cancellation_type::total);
        return current_;
    }

    lock_manager& locks() { return *locks_; }
    void end_manager() { locks_.reset(); }
    void drop_leases()
    {
        first->lease = {};
        second->lease = {};
    }

    outcome_ptr first;
    outcome_ptr second;
    outcome_ptr extended;
    outcome_ptr released;

  private:
    static config options(const simulation& sim)
    {
        config with = sim.options();
        with.retry_delay_min = 1ms;
        with.retry_delay_max = 2ms;
        with.connect_timeout = 30ms;
        with.response_timeout = 100ms;
        return with;
    }

    simulation& sim_;
    std::optional<lock_manager> locks_;
    outcome_ptr current_;
};

fault_profile any_fault_profile()
{
    return GENERATE(
        fault_profile::fine, fault_profile::taken, fault_profile::hung, fault_profile::deserted,
        fault_profile::slow);
}

/// Repeats the life, and interrupts it one step later each time.
void interrupt_everywhere(const std::function<void(simulation&, lifecycle&)>& interrupt)
{
    const fault_profile now = any_fault_profile();
    std::size_t at = 0;
    for (bool interrupted = true; interrupted; ++at)
    {
        CAPTURE(static_cast<int>(now), at);
        simulation sim{3};
        lifecycle one{sim, now};
        interrupted = one.steps(at);
        if (interrupted)
        {
            interrupt(sim, one);
        }
    }
    CHECK(at > 60);
}

/// An operation on a manager with a lease, and with a body under another lock.
struct any_operation
{
    const char* name;
    outcome_ptr (*begin)(simulation&, lock_manager&, redlock::lease&);
};

/// A handler that records how a query ended.
template <class Found>
auto found_into(simulation& sim, const outcome_ptr& result)
{
    return asio::bind_cancellation_slot(
        result->cancel.slot(), asio::bind_executor(
                                   sim.executor(),
                                   [&sim, result](error_code error, Found)
                                   {
                                       result->done = true;
                                       result->error = error;
                                       result->at = sim.now();
                                   }));
}

const std::vector<any_operation> operations{
    {"inspect",
     [](simulation& sim, lock_manager& locks, redlock::lease&)
     {
         auto result = std::make_shared<outcome>();
         locks.async_inspect("stock", found_into<inspection>(sim, result));
         return result;
     }},
    {"examine",
     [](simulation& sim, lock_manager& locks, redlock::lease&)
     {
         auto result = std::make_shared<outcome>();
         locks.async_examine(found_into<std::vector<master_examination>>(sim, result));
         return result;
     }},
    {"wait_lost", [](simulation& sim, lock_manager&, redlock::lease& held) { return sim.wait_lost(held); }},
    {"acquire in the queue", [](simulation& sim, lock_manager& locks, redlock::lease&)
     { return sim.acquire(locks, "stock", {.ttl = 10s, .wait = no_limit}); }},
    {"acquire_kept in the queue", [](simulation& sim, lock_manager& locks, redlock::lease&)
     { return sim.acquire_kept(locks, "stock", {.ttl = 10s, .max_hold = no_limit, .wait = no_limit}); }},
    {"extend", [](simulation& sim, lock_manager&, redlock::lease& held) { return sim.extend(held, 60s); }},
    {"release", [](simulation& sim, lock_manager&, redlock::lease& held) { return sim.release(held); }},
    {"shutdown", [](simulation& sim, lock_manager& locks, redlock::lease&) { return sim.shut_down(locks); }}};

/// Everything that was begun has ended, and nothing is left on any master.
void check_end(simulation& sim, lifecycle& one)
{
    for (const outcome_ptr& each : {one.first, one.second, one.extended, one.released})
    {
        CHECK((!each || sim.finish(each, 10s)));
    }
    one.drop_leases();
    sim.master(2).resume();
    sim.master(2).door = entrance::open;
    CHECK(sim.run_until_no_keys(2s));
}

} // namespace

TEST_CASE("an operation that is cancelled after any step leaves no key", "[scenario-21][scenario-22]")
{
    std::size_t aborts = 0;
    interrupt_everywhere(
        [&aborts](simulation& sim, lifecycle& one)
        {
            const clock::time_point then = sim.now();
            const outcome_ptr cancelled = one.cancel();
            CHECK(sim.finish(cancelled, 0ms));
            CHECK(cancelled->at <= then);
            const bool aborted = cancelled->error == asio::error::operation_aborted;
            const bool acquires = cancelled == one.first;
            CHECK((!aborted || !acquires || !cancelled->lease));
            aborts += aborted ? 1U : 0U;
            one.go_on();
            check_end(sim, one);
        });
    CHECK(aborts > 50);
}

TEST_CASE("every operation that is cancelled after any step ends at once, and leaves no key")
{
    const any_operation one = GENERATE(from_range(operations));
    constexpr std::size_t most = 150;
    std::size_t at = 0;
    for (bool cancelled = true; cancelled && at < most; ++at)
    {
        CAPTURE(one.name, at);
        simulation sim{3};
        lock_manager locks = sim.make_connected_manager();
        sim.master(2).network.back = 60ms; // After the node timeout.
        job body{.stops_in = 1s};
        const outcome_ptr under = sim.with_lock(locks, "body", {.ttl = 10s, .max_hold = no_limit}, body);
        const outcome_ptr held = sim.acquire(locks, "stock", {.ttl = 60s});
        REQUIRE(sim.finish(held));
        REQUIRE(sim.run_until([&] { return body.starts == 1; }, 1s));
        const outcome_ptr waits = one.begin(sim, locks, held->lease);
        for (std::size_t step = 0; step < at && !waits->done; ++step)
        {
            sim.step();
        }
        cancelled = !waits->done;
        if (cancelled)
        {
            const clock::time_point then = sim.now();
            waits->cancel.emit(asio::cancellation_type::total);
            CHECK(sim.finish(waits, 0ms));
            CHECK(waits->at <= then);
            CHECK((!waits->error || waits->error == asio::error::operation_aborted));
            const outcome_ptr down = sim.shut_down(locks);
            CHECK(sim.finish(down));
            waits->lease = {};
            CHECK(sim.run_until_no_keys());
        }
    }
    CHECK(at > 5);
}

TEST_CASE("a connection that breaks after any step leaves no key")
{
    const std::size_t which = GENERATE(0U, 2U);
    interrupt_everywhere(
        [which](simulation& sim, lifecycle& one)
        {
            sim.master(which).break_connections();
            one.go_on();
            check_end(sim, one);
        });
}

TEST_CASE("a master that restarts with its keys after any step keeps none permanently")
{
    interrupt_everywhere(
        [](simulation& sim, lifecycle& one)
        {
            sim.master(0).restart("another run", true);
            one.go_on();
            check_end(sim, one);
        });
}

TEST_CASE("a shutdown after any step releases everything and ends")
{
    interrupt_everywhere(
        [](simulation& sim, lifecycle& one)
        {
            const outcome_ptr down = sim.shut_down(one.locks());
            REQUIRE(sim.finish(down, 2s));
            CHECK((!down->error || down->error == errc::unconfirmed));
            for (const outcome_ptr& each : {one.first, one.second, one.extended, one.released})
            {
                CHECK((!each || sim.finish(each, 0ms)));
            }
            CHECK_FALSE(one.first->lease.valid());
            CHECK_FALSE(one.second->lease.valid());
            sim.run_until_idle();
            sim.master(2).resume();
            sim.run_for(2ms); // The keys of the other one are gone then.
            for (const auto& each : sim.masters())
            {
                CHECK(each->clients() == 0);
                CHECK(each->key_count() == 0);
            }
            const outcome_ptr late = sim.acquire(one.locks(), "late", {.ttl = 10s});
            REQUIRE(sim.finish(late, 0ms));
            CHECK(late->error == errc::closed);
        });
}

TEST_CASE("a manager that is destroyed after any step ends its operations at once")
{
    interrupt_everywhere(
        [](simulation& sim, lifecycle& one)
        {
            const clock::time_point then = sim.now();
            one.end_manager();
            for (const outcome_ptr& each : {one.first, one.second, one.extended, one.released})
            {
                CHECK((!each || (sim.finish(each, 0ms) && each->at <= then)));
            }
            sim.run_until_idle();
            sim.master(2).resume();
            sim.run_until_idle();
            for (const auto& each : sim.masters())
            {
                CHECK(each->clients() == 0);
            }
            // The observers of the lease still work.
            CHECK((!one.first->lease || one.first->lease.valid() || one.extended));
            one.drop_leases();
            sim.run_until_idle();
            CHECK(sim.world().quiet());
        });
}

TEST_CASE("an execution context may be destroyed after any step")
{
    const bool manager_first = GENERATE(false, true);
    interrupt_everywhere(
        [manager_first](simulation& sim, lifecycle& one)
        {
            if (manager_first)
            {
                one.end_manager();
            }
            const clock::time_point until = one.first->lease.valid_until();
            sim.destroy_context();
            CHECK(one.first->lease.valid_until() == until);
            one.drop_leases();
            one.end_manager();
        });
}

} // namespace redlock::test
