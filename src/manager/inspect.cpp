// SPDX-License-Identifier: BSL-1.0
// Inspect: asks every master who holds a resource. It takes nothing and changes nothing.
#include "manager/lock_service.hpp"
#include "manager/operations.hpp"
#include "manager/question.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace redlock::manager
{

namespace
{

class holders final : public answers
{
  public:
    holders(std::size_t masters, env::wake& listener) : answers{masters, listener}, said_(masters)
    {
        for (master_inspection& each : said_)
        {
            each.reason = master_errc::timed_out;
        }
    }

    const std::vector<master_inspection>& said() const noexcept { return said_; }

  private:
    void take(std::size_t master, const resp::reply& reply) noexcept override
    {
        take_failure(master, net::read_inspect(reply));
    }
    void take_failure(std::size_t master, const net::answer& said) noexcept override
    {
        master_inspection& entry = said_[master];
        entry.reason = said.reason;
        (said.reason ? entry.detail : entry.owner_id) = short_text{said.text};
        entry.expires_in = said.time_left;
    }

    std::vector<master_inspection> said_;
};

error_code result_of(const running& self, const inspection& found)
{
    if (self.stopped())
    {
        return self.stopped();
    }
    return found.answered() < found.quorum() ? error_code{errc::no_quorum} : error_code{};
}

} // namespace

env::flow inspect(lock_service& service, inspect_call call)
{
    running self{service, call.id};
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
        co_await self.wake;
    }
    const question<holders> asked{service.names()->size(), self.wake};
    std::string command;
    net::append_inspect(command, service.options().key_prefix + call.resource);
    service.ask(command, *asked);
    // No lease grows old meanwhile: a master has as long as one that owes an answer ever has.
    const clock::time_point ends = service.strand().now() + service.options().dead_after;
    const alarm_clock enough{service.strand(), self.wake, ends};
    while (!asked->complete() && service.strand().now() < ends && !self.stopped())
    {
        co_await self.wake;
    }
    inspection found{service.names(), asked->said()};
    const error_code result = result_of(self, found);
    service.complete(call.done, result, std::move(found));
}

} // namespace redlock::manager
