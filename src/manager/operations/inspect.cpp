// SPDX-License-Identifier: BSL-1.0
// Inspect: asks every master for the holder of a resource. Changes nothing.
#include "manager/access.hpp"
#include "manager/lock_service.hpp"
#include "manager/operations/broadcast_query.hpp"
#include "manager/operations/operations.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace redlock::manager
{

namespace
{

class holders final : public reply_collector
{
  public:
    holders(std::size_t masters, const redactor& redacted, runtime::async_event& listener)
        : reply_collector{masters, listener}, redacted_{redacted}, results_(masters)
    {
        for (master_inspection& each : results_)
        {
            each.reason = master_errc::timed_out;
        }
    }

    const std::vector<master_inspection>& results() const noexcept { return results_; }

  private:
    bool take(std::size_t master, const resp::reply& reply) noexcept override
    {
        const net::key_state found = net::read_inspect(reply);
        results_[master] = {
            found.reason, redacted_.show(found.detail), found.exists, redacted_.show(found.owner_id),
            found.expires_in};
        return found.reason != master_errc::protocol_error;
    }
    void take_failure(std::size_t master, const net::answer& result) noexcept override
    {
        results_[master].reason = result.reason;
        results_[master].detail = redacted_.show(result.text);
    }

    const redactor& redacted_;
    std::vector<master_inspection> results_;
};

error_code result_of(const active_operation& self, const inspection& found)
{
    if (self.stopped())
    {
        return self.stopped();
    }
    return found.answered() < found.quorum() ? error_code{errc::no_quorum} : error_code{};
}

} // namespace

runtime::detached_task inspect(lock_service& service, inspect_call call)
{
    active_operation self{service, call.id};
    error_code why = service.refusal();
    if (!why && !has_lockable_length(call.resource))
    {
        why = errc::invalid_resource;
    }
    if (why)
    {
        service.complete(call.done, why, inspection{});
        co_return;
    }
    while (service.connecting() && !self.stopped())
    {
        co_await self.wake_event;
    }
    const broadcast_query<holders> query{service.names()->size(), service.redacted(), self.wake_event};
    std::string command;
    net::append_inspect(command, service.options().key_prefix + call.resource);
    service.broadcast(command, *query);
    // No validity is at stake, so a master may take as long as an unresponsive connection is tolerated.
    const clock::time_point ends = service.strand().now() + service.options().response_timeout;
    const alarm_clock enough{service.strand(), self.wake_event, ends};
    while (!query->complete() && service.strand().now() < ends && !self.stopped())
    {
        co_await self.wake_event;
    }
    inspection found = detail::access::make_inspection(service.names(), query->results());
    const error_code result = result_of(self, found);
    service.complete(call.done, result, std::move(found));
}

} // namespace redlock::manager
