// SPDX-License-Identifier: BSL-1.0
// Acquires that end: no queue may contain them afterwards, or they hold up nobody.
#include "simulation.hpp"
#include "waiting_clients.hpp"

#include "cluster/chance.hpp"
#include "manager/wait_queues.hpp"
#include "runtime/scheduler.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace redlock::test
{

namespace
{

/// Managers of both orders whose acquires of one resource end in all ways, while answers come at once, late, or too late,
/// and masters lose the key. Connections don't break: the queue of a broken one is left by its deadline.
class random_acquires
{
  public:
    random_acquires(simulation& in, std::uint64_t seed) : sim_{in}, draws_{chance::mixed(seed)}
    {
        for (std::size_t left = 1 + draws_.below(4); left > 0; --left)
        {
            config options = sim_.options();
            options.order = draws_.one_in(3) ? order::strict : options.order;
            managers_.push_back(sim_.make_connected_manager(options));
        }
    }

    void run_for(clock::duration length)
    {
        const clock::time_point end = sim_.now() + length;
        while (sim_.now() < end)
        {
            act();
            sim_.run_for(any_of<6>({50us, 200us, 1ms, 5ms, 20ms, 100ms}));
        }
        for (const auto& each : sim_.masters())
        {
            each->network = {};
        }
        for (const outcome_ptr& each : acquires_)
        {
            each->cancel.emit(asio::cancellation_type::terminal);
            REQUIRE(sim_.finish(each));
        }
        sim_.run_for(300ms);
    }

  private:
    template <std::size_t N>
    clock::duration any_of(const std::array<clock::duration, N>& these)
    {
        return these[draws_.below(N)];
    }

    void act()
    {
        sim_master& one = sim_.master(draws_.below(sim_.masters().size()));
        switch (draws_.below(7))
        {
        case 0:
            // Answers within the node timeout of most acquires, and beyond that of the hasty ones.
            one.network.back = any_of<8>({100us, 100us, 500us, 2ms, 5ms, 20ms, 40ms, 60ms});
            one.network.there = draws_.one_in(2) ? one.network.back : clock::duration{100us};
            break;
        case 1:
            one.remove("lock:stock");
            break;
        case 2:
            for (const outcome_ptr& each : acquires_)
            {
                if (!each->done && draws_.one_in(5))
                {
                    each->cancel.emit(asio::cancellation_type::terminal);
                }
            }
            break;
        case 3:
            for (const outcome_ptr& each : acquires_)
            {
                if (draws_.one_in(2))
                {
                    each->lease = {};
                }
            }
            break;
        default:
            acquires_.push_back(
                sim_.acquire(managers_[draws_.below(managers_.size())], "stock", draw_options()));
            break;
        }
    }

    acquire_options draw_options()
    {
        acquire_options drawn{.ttl = draws_.one_in(3) ? 20ms : 60s};
        if (!draws_.one_in(6))
        {
            drawn.wait = std::chrono::milliseconds{1 + draws_.below(1500)};
        }
        if (draws_.one_in(5))
        {
            drawn.max_rounds = static_cast<std::uint32_t>(1 + draws_.below(4));
        }
        return drawn;
    }

    simulation& sim_;
    chance draws_;
    std::vector<lock_manager> managers_{};
    std::vector<outcome_ptr> acquires_{};
};

} // namespace

TEST_CASE("an acquire that has ended is in no queue, whatever the latencies", "[queue]")
{
    for (std::uint64_t seed = 1; seed <= 400; ++seed)
    {
        CAPTURE(seed);
        simulation sim{seed % 2 == 0 ? 5U : 3U, seed};
        random_acquires these{sim, seed};
        these.run_for(2s);
        for (const auto& each : sim.masters())
        {
            REQUIRE(each->queue_key_count() == 0);
        }
    }
}

TEST_CASE("acquires that ended while a connection was broken hold up nobody", "[queue]")
{
    constexpr std::size_t many = 40;
    simulation sim{3};
    sim_master& queue_master = queue_master_of(sim, "stock");
    lock_manager holder = sim.make_connected_manager();
    const outcome_ptr held = sim.acquire(holder, "stock", {.ttl = 60s});
    REQUIRE(sim.finish(held));
    lock_manager ending = sim.make_connected_manager();
    std::vector<outcome_ptr> ended;
    for (std::size_t number = 0; number < many; ++number)
    {
        ended.push_back(sim.acquire(ending, "stock", {.ttl = 60s, .wait = no_limit}));
        sim.run_for(1ms);
    }
    lock_manager waiting = sim.make_connected_manager();
    const outcome_ptr next = sim.acquire(waiting, "stock", {.ttl = 60s, .wait = no_limit});
    sim.run_for(5ms);
    const auto cancel_all = [&]
    {
        for (const outcome_ptr& each : ended)
        {
            each->cancel.emit(asio::cancellation_type::terminal);
        }
    };
    SECTION("before they leave")
    {
        queue_master.break_connections();
        cancel_all();
    }
    SECTION("while they leave")
    {
        queue_master.network.close_resets = true;
        cancel_all();
        sim.run_for(50us);
        for (const auto& each : queue_master.links())
        {
            each->cut();
        }
    }
    sim.run_for(200ms); // They connect again.
    CHECK(queue_master.queue_key_count() > 0);
    const clock::time_point began = sim.now();
    REQUIRE(sim.finish(sim.release(held->lease)));
    REQUIRE(sim.finish(next));
    CHECK(!next->error);
    CHECK(next->at - began < many * 2 * trip + 50ms); // A grace is 100 ms.
}

TEST_CASE("departures are remembered for as many acquires as have waited at once", "[queue]")
{
    constexpr std::size_t few = 1024;
    asio::io_context io;
    runtime::scheduler strand{io.get_executor()};
    runtime::async_event woken{strand};
    manager::wait_queues queues{2 * few};
    std::deque<manager::waiter> waiting;
    const auto wait = [&](std::size_t count)
    {
        for (; count > 0; --count)
        {
            waiting.emplace_back(queues, woken);
        }
        return static_cast<std::size_t>(waiting.back().number());
    };
    const auto depart = [&](std::size_t from, std::size_t to)
    {
        for (std::size_t number = from; number <= to; ++number)
        {
            queues.note_departure(number, std::to_string(number), 1s);
        }
    };
    const auto all_known = [&](std::size_t from, std::size_t to)
    {
        for (std::size_t number = from; number <= to; ++number)
        {
            const auto* const found = queues.find_departure(number);
            REQUIRE(found != nullptr);
            REQUIRE(found->resource == std::to_string(number));
        }
    };
    wait(few);
    waiting.clear();
    wait(few);
    depart(2 * few, 2 * few); // The place of this number is the first one.
    const std::size_t last = wait(few / 2);
    depart(2 * few + 1, last);
    all_known(2 * few, last);
    depart(2 * few - few / 2, 2 * few - 1);
    all_known(2 * few - few / 2, last);
    CHECK(queues.find_departure(0) == nullptr);
    CHECK(queues.find_departure(1) == nullptr);
    CHECK(queues.find_departure(last + 1) == nullptr);
}

} // namespace redlock::test
