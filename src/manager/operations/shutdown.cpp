// SPDX-License-Identifier: BSL-1.0
// Shutdown: ends operations, releases leases, waits for outstanding keys on connected masters, and closes the
// connections.
#include "manager/lock_service.hpp"
#include "manager/operations/operations.hpp"

#include <algorithm>
#include <utility>

namespace redlock::manager
{

namespace
{

// The number of leases that are released concurrently: each needs memory for its votes.
constexpr std::size_t max_releases = 512;

// The maximum wait for the masters, in multiples of response_timeout.
constexpr int max_patience = 10;

/// Completes a cancelled shutdown at once. The shutdown itself continues.
void complete_if_stopped(lock_service& service, const active_operation& self, shutdown_call& call)
{
    if (self.stopped() && call.done.handler)
    {
        service.complete(call.done, self.stopped());
    }
}

bool has_answers_to_wait_for(const lock_service& service)
{
    return service.outstanding() > 0 || service.leaving() > 0 || !service.is_alone();
}

} // namespace

runtime::detached_task shut_down(lock_service& service, shutdown_call call)
{
    active_operation self{service, call.id, shutdown_policy::finish};
    if (service.closing())
    {
        service.complete(call.done, error_code{errc::closed});
        co_return;
    }
    const std::size_t unconfirmed_before = service.unconfirmed_releases();
    service.begin_closing(self.wake_event);
    service.stop_for_shutdown(errc::closed);

    // Nothing is released while its body is still stopping, so that no other client acquires the resource meanwhile.
    const clock::time_point bodies_until = service.lose_kept_leases(errc::closed);
    if (service.has_kept_leases())
    {
        const alarm_clock enough{service.strand(), self.wake_event, bodies_until};
        while (service.has_kept_leases() && service.strand().now() < bodies_until)
        {
            complete_if_stopped(service, self, call);
            co_await self.wake_event;
        }
    }
    const auto patience = service.options().response_timeout * max_patience;
    const clock::time_point at_latest = core::later(service.strand().now(), patience);
    {
        const alarm_clock enough{service.strand(), self.wake_event, at_latest};
        while (lease_state* held = service.first_lease())
        {
            service.release_in_background(*held);
            while (service.active_count() > max_releases && service.strand().now() < at_latest)
            {
                complete_if_stopped(service, self, call);
                co_await self.wake_event;
            }
        }
        while (has_answers_to_wait_for(service) && service.strand().now() < at_latest)
        {
            complete_if_stopped(service, self, call);
            co_await self.wake_event;
        }
    }
    service.close_connections();
    while (!service.connections_stopped())
    {
        complete_if_stopped(service, self, call);
        co_await self.wake_event;
    }
    // Including those that had no result at `at_latest`.
    const bool confirmed = service.unconfirmed_releases() == unconfirmed_before;
    service.end_closing();
    complete_if_stopped(service, self, call);
    if (call.done.handler)
    {
        service.complete(call.done, confirmed ? error_code{} : error_code{errc::unconfirmed});
    }
    service.leave();
}

} // namespace redlock::manager
