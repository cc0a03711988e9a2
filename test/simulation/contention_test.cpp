// SPDX-License-Identifier: BSL-1.0
// Tests of managers that acquire the same resource while their masters and connections fail at random.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <deque>
#include <functional>
#include <vector>

namespace redlock::test
{

namespace
{

/// A client that acquires the resource repeatedly, and releases it in one way or another.
class client
{
  public:
    client(simulation& sim, lock_manager& locks, std::chrono::milliseconds ttl)
        : sim_{sim}, locks_{locks}, ttl_{ttl}
    {
    }

    bool holds() const { return held_.valid(); }
    std::size_t grants() const noexcept { return grants_; }

    /// Begins the next operation if its time has come.
    void act()
    {
        if (waits_for_ && !waits_for_->done)
        {
            return;
        }
        if (waits_for_ && waits_for_->lease)
        {
            held_ = std::move(waits_for_->lease);
            ++grants_;
            pause();
        }
        waits_for_.reset();
        if (sim_.now() < next_)
        {
            return;
        }
        if (!held_)
        {
            waits_for_ = sim_.acquire(locks_, "stock", {.ttl = ttl_, .wait = 30ms});
            return;
        }
        give_back_or_go_on();
    }
    void stop()
    {
        held_ = {};
        waits_for_.reset();
    }

  private:
    void give_back_or_go_on()
    {
        switch (sim_.world().random_below(4))
        {
        case 0:
            waits_for_ = sim_.release(held_);
            return;
        case 1:
            held_ = {};
            break;
        default:
            waits_for_ = sim_.extend(held_, ttl_);
            break;
        }
        pause();
    }

    void pause()
    {
        next_ = sim_.now() + std::chrono::microseconds{sim_.world().random_below(10'000)};
        sim_.world().at(next_, event_kind::timer, [] {});
    }

    simulation& sim_;
    lock_manager& locks_;
    std::chrono::milliseconds ttl_;
    lease held_;
    outcome_ptr waits_for_;
    clock::time_point next_{};
    std::size_t grants_ = 0;
};

/// Injects a fault occasionally, and ends it a little later.
class fault_injector
{
  public:
    explicit fault_injector(simulation& sim) : sim_{sim} { plan(); }

    void mend_everything()
    {
        over_ = true;
        for (const auto& each : sim_.masters())
        {
            each->resume();
            each->door = entrance::open;
        }
        for (const auto& each : held_)
        {
            each->let_go();
        }
    }

  private:
    void plan()
    {
        const std::chrono::microseconds pause{sim_.world().random_below(10'000)};
        sim_.world().at(
            sim_.now() + pause, event_kind::timer,
            [this]
            {
                if (!over_)
                {
                    inject(sim_.master(sim_.world().random_below(sim_.masters().size())));
                    plan();
                }
            });
    }

    void later(std::function<void()> mend)
    {
        const std::chrono::microseconds pause{sim_.world().random_below(30'000)};
        sim_.world().at(sim_.now() + pause, event_kind::timer, std::move(mend));
    }

    void inject(sim_master& master)
    {
        switch (sim_.world().random_below(9))
        {
        case 0:
            master.break_connections();
            break;
        case 1:
            master.hang();
            later([&master] { master.resume(); });
            break;
        case 2:
            master.flush_scripts();
            break;
        case 3:
            master.restart("run " + std::to_string(sim_.world().random_number()), true);
            break;
        case 4:
            master.door = entrance::refuses;
            later([&master] { master.door = entrance::open; });
            break;
        case 5:
            // After the node timeout, in one direction or both.
            master.network.there = 12ms * sim_.world().random_below(2);
            master.network.back = 12ms;
            later([&master] { master.network = {.jitter = 1ms}; });
            break;
        case 6:
            // All processes are stopped, and handle their timers first when they continue.
            sim_.world().jump_with_timers_first(std::chrono::microseconds{sim_.world().random_below(80'000)});
            break;
        default:
            hold(master);
            break;
        }
    }

    /// Holds what is in flight for a while, beyond the end of its connection.
    void hold(sim_master& master)
    {
        if (master.clients() == 0)
        {
            return;
        }
        const std::shared_ptr<virtual_link> link = master.link().shared_from_this();
        link->hold();
        held_.push_back(link);
        later([link] { link->break_off(); });
        later([link] { link->let_go(); });
    }

    simulation& sim_;
    bool over_ = false;
    std::vector<std::shared_ptr<virtual_link>> held_;
};

} // namespace

TEST_CASE(
    "two managers never hold a resource at once, whatever fails", "[scenario-18][scenario-19][scenario-34]")
{
    const int first_seed = GENERATE(range(0, 120, 10));
    std::size_t grants = 0;
    for (int seed = first_seed; seed < first_seed + 10; ++seed)
    {
        CAPTURE(seed);
        simulation sim{5, static_cast<std::uint64_t>(seed) + 1};
        config options = sim.options();
        options.retry_delay_max = 20ms;
        options.reconnect_delay_max = 50ms;
        options.response_timeout = 50ms;
        const auto ttl = seed % 2 == 0 ? 60ms : 60s;
        options.node_timeout = 10ms;
        for (const auto& each : sim.masters())
        {
            each->network.jitter = 1ms;
        }
        lock_manager one = sim.make_manager(options);
        lock_manager two = sim.make_manager(options);
        std::deque<client> clients;
        for (lock_manager* locks : {&one, &two, &one, &two})
        {
            clients.emplace_back(sim, *locks, ttl);
        }
        fault_injector luck{sim};
        std::size_t doubles = 0;
        const clock::time_point end = sim.now() + 120ms;
        while (sim.step(end))
        {
            std::size_t holders = 0;
            for (client& each : clients)
            {
                each.act();
                holders += each.holds() ? 1U : 0U;
            }
            doubles += holders > 1 ? 1U : 0U;
        }
        CHECK(doubles == 0);
        for (client& each : clients)
        {
            grants += each.grants();
            each.stop();
        }
        luck.mend_everything();
        sim.run_for(70ms); // Abandoned acquires end, and their leases expire.
        CHECK(sim.run_until_no_keys(3s));
        const outcome_ptr got = sim.acquire(one, "stock", {.ttl = ttl});
        REQUIRE(sim.finish(got));
        CHECK(!got->error);
    }
    CHECK(grants > 20);
}

} // namespace redlock::test
