// SPDX-License-Identifier: BSL-1.0
// Extend: one round that asks for a new ttl. The effect of its votes on the lease is in lock_service_rounds.cpp,
// because they count for as long as the lease is valid, even after this coroutine has ended.
#include "manager/lock_service.hpp"
#include "manager/operations/operations.hpp"

#include <utility>

namespace redlock::manager
{

namespace
{

/// The position of an extension among those of the same lease, which run one after the other.
class turn_in_line
{
  public:
    turn_in_line(lease_state& of, runtime::async_event& waiting) : of_{of}, place_{waiting}
    {
        of_.extending.push_back(place_);
    }
    turn_in_line(const turn_in_line&) = delete;
    turn_in_line& operator=(const turn_in_line&) = delete;
    ~turn_in_line()
    {
        place_.unlink();
        if (!of_.extending.empty())
        {
            of_.extending.front().waiting.notify();
        }
    }

    bool is_first() const { return &of_.extending.front() == &place_; }

  private:
    lease_state& of_;
    place_in_line place_;
};

void finish(lock_service& service, extend_call& call, error_code result, const round* votes)
{
    if (call.out != nullptr)
    {
        call.out->operation = operation::extend;
        call.out->result = result;
        if (votes != nullptr)
        {
            const clock::time_point now = service.strand().now();
            call.out->rounds = 1;
            call.out->elapsed = now - votes->started();
            if (call.held->phase() == lease_phase::held)
            {
                call.out->validity = core::remaining(call.held->valid_until(), now);
            }
            votes->describe(*call.out);
        }
    }
    service.complete(call.done, result);
}

} // namespace

runtime::detached_task extend(lock_service& service, extend_call call)
{
    active_operation self{service, call.id};
    lease_state& held = *call.held;
    const turn_in_line line{held, self.wake_event};
    if (call.out != nullptr)
    {
        *call.out = report{};
    }
    std::string complaint = core::ttl_complaint(service.timing(call.ttl, std::chrono::milliseconds{0}));
    if (complaint.empty())
    {
        complaint = service.group_complaint(call.ttl);
    }
    if (!complaint.empty())
    {
        if (call.out != nullptr)
        {
            call.out->argument_error = std::move(complaint);
        }
        finish(service, call, errc::invalid_ttl, nullptr);
        co_return;
    }
    while (!line.is_first() && !self.stopped() && held.phase() == lease_phase::held)
    {
        co_await self.wake_event;
    }
    error_code why = self.stopped() ? self.stopped() : held.why_not_extendable(service.strand().now());
    if (!why)
    {
        why = service.refusal();
    }
    if (why)
    {
        finish(service, call, why, nullptr);
        co_return;
    }
    const awaited_round votes = service.send_extensions(held, call.ttl, &self.wake_event);
    while (votes->outcome() == core::verdict::undecided && held.phase() == lease_phase::held &&
           !votes->timed_out() && !self.stopped())
    {
        co_await self.wake_event;
    }
    why = self.stopped() ? self.stopped() : votes->result();
    finish(service, call, why, &*votes);
}

} // namespace redlock::manager
