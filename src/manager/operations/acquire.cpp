// SPDX-License-Identifier: BSL-1.0
// Acquire and try_acquire: rounds until one succeeds or no further one is allowed. Between rounds, an acquire waits in
// the queue of the resource.
#include "manager/operations/acquire_check.hpp"
#include "manager/operations/acquisition.hpp"
#include "manager/operations/operations.hpp"

namespace redlock::manager
{

runtime::detached_task acquire(lock_service& service, acquire_call call)
{
    acquisition self{service, call};
    const error_code full = service.refusal();
    if (const refused_argument refused = full ? refused_argument{full, {}} : check(service, call);
        refused.error)
    {
        self.refuse(refused.error, refused.complaint);
        co_return;
    }
    while (service.strand().now() < self.first_round_at() && !self.operation.stopped())
    {
        const alarm_clock warm{service.strand(), self.operation.wake_event, self.first_round_at()};
        co_await self.operation.wake_event;
    }
    if (self.operation.stopped())
    {
        self.refuse(self.operation.stopped());
        co_return;
    }
    if (service.guarded() != nullptr)
    {
        std::string complaint = service.guarded()->ttl_complaint(call.options.ttl);
        if (!complaint.empty())
        {
            self.refuse(errc::invalid_ttl, std::move(complaint));
            co_return;
        }
    }
    bool begun = true;
    if (self.begins_in_queue())
    {
        begun = co_await self.wait_for_turn();
    }
    else
    {
        self.begin_round();
    }
    while (begun)
    {
        while (self.undecided())
        {
            co_await self.operation.wake_event;
        }
        if (self.is_strict())
        {
            co_await self.await_queue_master();
        }
        self.note_decision();
        if (self.try_complete_with_lease())
        {
            co_return;
        }
        self.report_round();
        begun = co_await self.begin_next_round();
    }
    self.leave_queue();
    const error_code why = co_await self.reason();
    self.fail(why);
}

} // namespace redlock::manager
