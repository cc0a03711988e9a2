// SPDX-License-Identifier: BSL-1.0
// Waits until a lease is lost or released.
#include "manager/lock_service.hpp"
#include "manager/operations/operations.hpp"

#include <optional>
#include <utility>

namespace redlock::manager
{

namespace
{

/// Returns true if the validity of a lease that isn't kept has ended. This is final, because an expired lease can't be
/// extended. The end of a kept lease is declared by its keeper, with the reason.
bool lapsed(lock_service& service, const lease_state& held)
{
    return !held.kept && held.valid_until() <= service.strand().now();
}

} // namespace

runtime::detached_task wait_lost(lock_service& service, wait_lost_call call)
{
    active_operation self{service, call.id};
    lease_state& held = *call.held;
    if (service.closing() && !held.kept && held.phase() == lease_phase::held)
    {
        self.stop(errc::closed); // The shutdown has stopped the waits that it found.
    }
    place_in_line place{self.wake_event};
    held.watching.push_back(place);
    while (held.phase() == lease_phase::held && !self.stopped() && !lapsed(service, held))
    {
        // Only for a lease that isn't kept. Its validity may have been prolonged since the last alarm.
        std::optional<alarm_clock> end;
        if (!held.kept)
        {
            end.emplace(service.strand(), self.wake_event, held.valid_until());
        }
        co_await self.wake_event;
    }
    place.unlink();
    error_code error;
    error_code why;
    if (held.phase() == lease_phase::lost)
    {
        why = held.lost_because();
    }
    else if (self.stopped())
    {
        // Checked before `released`, because a shutdown releases the leases whose waits it stops.
        error = self.stopped();
    }
    else if (held.phase() == lease_phase::released)
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
