// SPDX-License-Identifier: BSL-1.0
// Time and random numbers of a simulation.
#include "virtual_world.hpp"

#include <algorithm>
#include <utility>

namespace redlock::test
{

bool virtual_world::later::operator()(const event& left, const event& right) const noexcept
{
    if (left.when != right.when)
    {
        return left.when > right.when;
    }
    return left.tie != right.tie ? left.tie > right.tie : left.number > right.number;
}

void virtual_world::at(clock::time_point when, event_kind kind, action what)
{
    const std::uint64_t tie = ties_ == ties::by_chance ? chance_() : 0;
    events_.push_back({when, tie, ++last_, kind, std::move(what)});
    std::push_heap(events_.begin(), events_.end(), later{});
    network_events_ += kind == event_kind::network ? 1U : 0U;
}

std::size_t virtual_world::room_for(std::size_t bytes) noexcept
{
    constexpr std::size_t almost_full_one_in = 4;
    if (ties_ == ties::in_order || random_below(almost_full_one_in) != 0)
    {
        return bytes;
    }
    return random_below(2) == 0 ? 0 : random_below(bytes + 1);
}

void virtual_world::jump_with_timers_first(clock::duration by)
{
    jump(by);
    for (event& each : events_)
    {
        if (each.kind == event_kind::timer && each.when <= now_)
        {
            each.when = clock::time_point::min();
        }
    }
    std::make_heap(events_.begin(), events_.end(), later{});
}

void virtual_world::run_next()
{
    std::pop_heap(events_.begin(), events_.end(), later{});
    const event current = std::move(events_.back());
    events_.pop_back();
    now_ = std::max(now_, current.when);
    network_events_ -= current.kind == event_kind::network ? 1U : 0U;
    current.what();
}

} // namespace redlock::test
