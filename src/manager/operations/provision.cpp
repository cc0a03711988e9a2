// SPDX-License-Identifier: BSL-1.0
// Provision: makes the masters a guarded group. The service serves this operation only, and ends with it.
#include "manager/lock_service.hpp"
#include "manager/operations/operations.hpp"
#include "manager/operations/provisioning.hpp"

#include <memory>
#include <utility>

namespace redlock::manager
{

runtime::detached_task provision(lock_service& service, provision_call call)
{
    active_operation self{service, call.id};
    provision_report report;
    provisioning steps{service, self, call.options, std::move(call.group), report};
    const error_code result = co_await steps.run();
    report.result = result;
    // A change that is in flight is neither repeated nor revoked: another run continues, by what it finds.
    service.begin_closing(self.wake_event);
    service.close_connections();
    while (!service.connections_stopped())
    {
        co_await self.wake_event;
    }
    service.end_closing();
    *call.out = std::move(report);
    service.complete(call.done, result);
    service.leave();
}

} // namespace redlock::manager
