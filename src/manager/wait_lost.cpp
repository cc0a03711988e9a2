// SPDX-License-Identifier: BSL-1.0
// Waits until a lease is lost, or given back.
#include "manager/lock_service.hpp"
#include "manager/operations.hpp"

#include <optional>
#include <utility>

namespace redlock::manager
{

namespace
{

/// Its validity has ended. What has lapsed can't be extended any more: that is final, too. Of a kept lease its keeper says
/// so, with the reason.
bool lapsed(lock_service& service, const holding& held)
{
    return !held.kept && held.valid_until() <= service.strand().now();
}

} // namespace

env::flow wait_lost(lock_service& service, wait_lost_call call)
{
    running self{service, call.id};
    holding& held = *call.held;
    place_in_line place{self.wake};
    held.watching.push_back(place);
    while (held.state() == holding_state::held && !self.stopped() && !lapsed(service, held))
    {
        // A kept lease has its keeper for that. The validity of another may have become longer meanwhile.
        std::optional<alarm_clock> end;
        if (!held.kept)
        {
            end.emplace(service.strand(), self.wake, held.valid_until());
        }
        co_await self.wake;
    }
    place.unlink();
    error_code error;
    error_code why;
    if (held.state() == holding_state::lost)
    {
        why = held.lost_because();
    }
    else if (self.stopped())
    {
        // A shutdown gives back what it stops, in the same turn perhaps.
        error = self.stopped();
    }
    else if (held.state() == holding_state::released)
    {
        error = errc::not_held;
    }
    else
    {
        why = errc::lease_lost;
    }
    service.complete(call.done, error, why);
}

} // namespace redlock::manager
