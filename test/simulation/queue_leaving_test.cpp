// SPDX-License-Identifier: BSL-1.0
// Random acquires, after whose end no queue may contain them.
#include "simulation.hpp"

#include "cluster/chance.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
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

} // namespace redlock::test
