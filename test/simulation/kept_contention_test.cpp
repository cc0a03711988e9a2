// SPDX-License-Identifier: BSL-1.0
// Tests of bodies that run under the same lock, kept by two managers, while masters and connections fail at random.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

/// Runs one body after the other.
class worker
{
  public:
    worker(simulation& sim, lock_manager& locks, std::chrono::milliseconds ttl)
        : sim_{sim}, locks_{locks}, ttl_{ttl}
    {
    }

    bool holds() const { return job_.held != nullptr && job_.held->valid(); }
    bool idle() const { return !work_ || work_->done; }
    std::size_t bodies() const noexcept { return bodies_; }
    std::size_t losses() const noexcept { return losses_; }

    void act()
    {
        if (!idle())
        {
            return;
        }
        bodies_ += std::exchange(job_.starts, 0);
        losses_ += work_ && work_->error == errc::lease_lost ? 1U : 0U;
        job_ = {};
        job_.works = std::chrono::microseconds{sim_.world().random_below(100'000)};
        keep_options with{.ttl = ttl_, .max_hold = no_limit, .wait = 30ms};
        with.extend_every = 15ms;
        work_ = sim_.with_lock(locks_, "stock", with, job_);
    }
    void cancel()
    {
        if (!idle())
        {
            work_->cancel.emit(asio::cancellation_type::terminal);
        }
    }

  private:
    simulation& sim_;
    lock_manager& locks_;
    std::chrono::milliseconds ttl_;
    job job_{};
    outcome_ptr work_;
    std::size_t bodies_ = 0;
    std::size_t losses_ = 0;
};

/// Injects a fault every few milliseconds, into a master or the whole process.
class kept_fault_injector
{
  public:
    explicit kept_fault_injector(simulation& sim) : sim_{sim} { plan(); }

    void end()
    {
        over_ = true;
        for (const auto& each : sim_.masters())
        {
            each->resume();
            each->door = entrance::open;
            each->network = {.jitter = 1ms};
        }
        for (const auto& each : held_)
        {
            each->let_go();
        }
    }

  private:
    void in_less_than(clock::duration most, std::function<void()> what)
    {
        const std::chrono::nanoseconds pause{
            sim_.world().random_below(static_cast<std::size_t>(most.count()))};
        sim_.world().at(
            sim_.now() + pause, event_kind::timer,
            [this, what = std::move(what)]
            {
                if (!over_)
                {
                    what();
                }
            });
    }

    void plan()
    {
        in_less_than(
            10ms,
            [this]
            {
                inject(sim_.master(sim_.world().random_below(sim_.masters().size())));
                plan();
            });
    }

    void inject(sim_master& master)
    {
        switch (sim_.world().random_below(8))
        {
        case 0:
            master.break_connections();
            break;
        case 1:
            master.hang();
            in_less_than(60ms, [&master] { master.resume(); });
            break;
        case 2:
            master.restart("run " + std::to_string(sim_.world().random_number()), true);
            break;
        case 3:
            master.flush_scripts();
            break;
        case 4:
            master.network.back = 12ms; // After the node timeout.
            in_less_than(60ms, [&master] { master.network = {.jitter = 1ms}; });
            break;
        case 5:
            sim_.world().jump_with_timers_first(std::chrono::microseconds{sim_.world().random_below(80'000)});
            break;
        case 6:
            sim_.world().jump(std::chrono::microseconds{sim_.world().random_below(80'000)});
            break;
        default:
            hold(master);
            break;
        }
    }

    /// Holds what is in flight for a while, beyond the end of its connection.
    void hold(sim_master& master)
    {
        if (master.clients() > 0)
        {
            held_.push_back(master.link().shared_from_this());
            held_.back()->hold();
            in_less_than(30ms, [link = held_.back()] { link->break_off(); });
            in_less_than(60ms, [link = held_.back()] { link->let_go(); });
        }
    }

    simulation& sim_;
    bool over_ = false;
    std::vector<std::shared_ptr<virtual_link>> held_;
};

} // namespace

TEST_CASE(
    "two bodies never hold a resource at once, whatever fails while they are kept",
    "[scenario-27][scenario-28][scenario-58]")
{
    const int first_seed = GENERATE(range(0, 100, 10));
    std::size_t bodies = 0;
    std::size_t losses = 0;
    for (int seed = first_seed; seed < first_seed + 10; ++seed)
    {
        CAPTURE(seed);
        simulation sim{5, static_cast<std::uint64_t>(seed) + 1};
        config options = sim.options();
        options.retry_delay_max = 20ms;
        options.reconnect_delay_max = 50ms;
        options.response_timeout = 50ms;
        options.node_timeout = 10ms;
        for (const auto& each : sim.masters())
        {
            each->network.jitter = 1ms;
        }
        const auto ttl = seed % 2 == 0 ? 60ms : 60s;
        lock_manager one = sim.make_manager(options);
        lock_manager two = sim.make_manager(options);
        std::deque<worker> workers;
        for (lock_manager* locks : {&one, &two, &one, &two})
        {
            workers.emplace_back(sim, *locks, ttl);
        }
        kept_fault_injector luck{sim};
        std::size_t doubles = 0;
        const clock::time_point end = sim.now() + 500ms;
        while (sim.step(end))
        {
            std::size_t holders = 0;
            for (worker& each : workers)
            {
                each.act();
                holders += each.holds() ? 1U : 0U;
            }
            doubles += holders > 1 ? 1U : 0U;
        }
        CHECK(doubles == 0);
        luck.end();
        for (worker& each : workers)
        {
            each.cancel();
            bodies += each.bodies();
            losses += each.losses();
        }
        sim.run_for(100ms);
        for (const worker& each : workers)
        {
            CHECK(each.idle());
        }
        CHECK(sim.run_until_no_keys(3s));
    }
    CHECK(bodies > 20);
    CHECK(losses > 0);
}

} // namespace redlock::test
