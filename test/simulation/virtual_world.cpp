// SPDX-License-Identifier: BSL-1.0
// The time and the chance of a simulation.
#include "virtual_world.hpp"

#include <algorithm>
#include <iterator>

namespace redlock::test
{

void virtual_world::at(clock::time_point when, event_kind kind, action what)
{
    events_.emplace(std::pair{when, ++last_}, event{kind, std::move(what)});
    network_events_ += kind == event_kind::network ? 1U : 0U;
}

void virtual_world::jump_with_timers_first(clock::duration by)
{
    jump(by);
    for (auto each = events_.begin(); each != events_.end() && each->first.first <= now_;)
    {
        const auto next = std::next(each);
        if (each->second.kind == event_kind::timer)
        {
            auto timer = events_.extract(each);
            timer.key().first = clock::time_point::min();
            events_.insert(std::move(timer));
        }
        each = next;
    }
}

void virtual_world::run_next()
{
    const auto first = events_.begin();
    now_ = std::max(now_, first->first.first);
    const event current = std::move(first->second);
    events_.erase(first);
    network_events_ -= current.kind == event_kind::network ? 1U : 0U;
    current.what();
}

} // namespace redlock::test
