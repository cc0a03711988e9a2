// SPDX-License-Identifier: BSL-1.0
// Clients that contend for a resource without faults, where the rules of the queues hold without exceptions.
#include "cluster_run.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace redlock::test
{

using namespace std::chrono_literals;

/// A client that acquires the resource, holds it for a while, and releases it, a few times.
struct cluster_run::contender
{
    process& by;
    chance draws;
    std::size_t times;
    lease has{};
};

void cluster_run::contend(const std::shared_ptr<contender>& one)
{
    if (one->times == 0)
    {
        return;
    }
    --one->times;
    constexpr std::size_t often = 4;
    // Some give up while others wait behind them.
    const time_limit wait = one->draws.one_in(often)
                                ? time_limit{std::chrono::milliseconds{1 + one->draws.below(20)}}
                                : time_limit{no_limit};
    auto done = [this, one, moment = oracle_.moment()](error_code, lease won)
    {
        if (!won)
        {
            contend(one);
            return;
        }
        one->has = std::move(won);
        oracle_.issued(one->by, one->has, nullptr, moment);
        const std::size_t known_as = oracle_.won(one->by, one->has, std::nullopt, false);
        one->by.after(
            one->draws.between(0us, 2ms),
            [this, one, known_as]
            {
                oracle_.gave_back(known_as);
                one->has = {};
                if (one->draws.one_in(2))
                {
                    contend(one); // At once.
                }
                else
                {
                    one->by.after(one->draws.between(0us, 2ms), [this, one] { contend(one); });
                }
            });
    };
    one->by.locks().async_acquire(
        resource_name(resource::shared),
        {.ttl = std::min<std::chrono::milliseconds>(10s, long_ttl()), .wait = wait}, std::move(done));
}

void cluster_run::check_contention()
{
    constexpr std::size_t seldom = 24; // Seeds.
    constexpr std::size_t clients = 3;
    constexpr std::size_t contenders = 2; // In each client.
    chance draws{chance::mixed(plan_.seed + 4)};
    if (oracle_.found() || !plan_.habits.empty() || !draws.one_in(seldom))
    {
        return;
    }
    set_network(near());
    const std::vector<std::shared_ptr<process>> these = take_processes(clients);
    check_one_round(these);
    run_for(20ms);
    oracle_.queues().calm_down(near().jitter);
    oracle_.waits().calm_down(near().there + near().jitter);
    std::vector<std::shared_ptr<contender>> all;
    for (std::size_t each = 0; each < clients * contenders; ++each)
    {
        process& by = *these[each % clients];
        all.push_back(std::make_shared<contender>(contender{by, chance{draws.fork()}, 2 + draws.below(3)}));
        by.after(draws.between(0us, 2ms), [this, one = all.back()] { contend(one); });
    }
    const auto idle = [&]
    {
        return std::all_of(
            all.begin(), all.end(),
            [](const auto& each) { return each->times == 0 && each.use_count() == 1; });
    };
    oracle_.check(run_for(10s, idle), "bounded wait", "clients still wait after 10 s");
    run_for(50ms);
    oracle_.queues().disturb();
    oracle_.waits().disturb();
    restore_masters();
    run_for(100ms);
}

} // namespace redlock::test
