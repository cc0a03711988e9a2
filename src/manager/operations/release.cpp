// SPDX-License-Identifier: BSL-1.0
// Release: compare and delete on all masters. Cancellation stops the wait, not the release.
#include "manager/lock_service.hpp"
#include "manager/operations/operations.hpp"

#include <utility>

namespace redlock::manager
{

namespace
{

void finish(lock_service& service, release_call& call, error_code result, const round* votes)
{
    if (call.out != nullptr)
    {
        *call.out = report{};
        call.out->operation = operation::release;
        call.out->result = result;
        if (votes != nullptr)
        {
            call.out->rounds = 1;
            call.out->elapsed = service.strand().now() - votes->started();
            votes->describe(*call.out);
        }
    }
    if (call.done.handler)
    {
        service.complete(call.done, result);
    }
}

} // namespace

runtime::detached_task release(lock_service& service, release_call call)
{
    active_operation self{service, call.id, shutdown_policy::finish};
    lease_state& held = *call.held;
    if (!service.begin_release(held))
    {
        finish(service, call, errc::not_held, nullptr);
        co_return;
    }
    const awaited_round votes = service.send_releases(held, self.wake_event);
    while (!votes->has_result() && !self.stopped())
    {
        co_await self.wake_event;
    }
    finish(service, call, self.stopped() ? self.stopped() : votes->result(), &*votes);
    // A shutdown has to know the result of the release, not that of the wait for it.
    while (!votes->has_result())
    {
        co_await self.wake_event;
    }
    if (votes->result())
    {
        service.count_unconfirmed_release();
    }
}

} // namespace redlock::manager
