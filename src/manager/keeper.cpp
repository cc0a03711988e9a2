// SPDX-License-Identifier: BSL-1.0
// Extends a lease until it is lost, or declares its expiry.
#include "manager/keeper.hpp"

#include "core/backoff.hpp"
#include "manager/lock_service.hpp"

#include <algorithm>

namespace redlock::manager
{

keeper::keeper(
    lock_service& service, lease_state& kept, const core::lease_schedule& schedule,
    clock::time_point hold_ends)
    : service_{service},
      kept_{kept},
      schedule_{schedule},
      hold_ends_{hold_ends},
      confirmed_until_{kept.valid_until()}
{
    set_next();
}

clock::time_point keeper::ends() const noexcept
{
    return std::min(core::loss_at(schedule_, kept_.valid_until()), hold_ends_);
}

void keeper::set_deadline()
{
    if (!stopped_)
    {
        service_.strand().arm(*this, std::min(next_, ends()));
    }
}

void keeper::on_extended(clock::time_point sent, std::chrono::milliseconds ttl)
{
    confirmed_until_ = kept_.valid_until();
    // A late confirmation of an older extension doesn't change the schedule, nor does one for a shorter ttl.
    if (sent < kept_.confirmed() || ttl < schedule_.ttl)
    {
        set_deadline();
        return;
    }
    unanswered_ = 0;
    set_next();
}

void keeper::set_next()
{
    const clock::time_point now = service_.strand().now();
    const clock::time_point next = core::extension_at(schedule_, kept_.confirmed(), service_.random_number());
    // If it has passed, because the confirmation was late, an attempt of meanwhile has its node timeout first.
    const bool awaits_another = soonest_ > kept_.confirmed() + schedule_.node_timeout;
    next_ = std::max(now, next <= now && awaits_another ? soonest_ : next);
    set_deadline();
}

void keeper::on_deadline()
{
    const clock::time_point now = service_.strand().now();
    if (now >= ends())
    {
        service_.lose(kept_, ends() == hold_ends_ ? errc::hold_limit_reached : errc::lease_lost);
        return;
    }
    if (now >= next_)
    {
        service_.retry_abandoned(); // This lease may be one of them.
        // Unless a confirmation reschedules it, the next attempt follows after the node timeout and a short delay.
        ++unanswered_;
        const config& options = service_.options();
        const core::backoff_policy again{options.retry_delay_min, options.retry_delay_max};
        const clock::duration pause =
            core::backoff_delay(again, unanswered_, clock::duration::zero(), service_.random_number());
        soonest_ = now + schedule_.node_timeout;
        // The last attempt leaves the masters a node timeout to answer before the loss.
        next_ = std::min(soonest_ + pause, std::max(soonest_, ends() - schedule_.node_timeout));
        service_.send_extensions(kept_, schedule_.ttl, nullptr);
    }
    set_deadline();
}

expiry_watch::expiry_watch(lock_service& service, lease_state& watched) : service_{service}, watched_{watched}
{
    service_.strand().arm(*this, watched_.valid_until());
}

void expiry_watch::on_deadline()
{
    // It may have been extended since.
    if (watched_.valid_until() > service_.strand().now())
    {
        service_.strand().arm(*this, watched_.valid_until());
        return;
    }
    service_.lose(watched_, errc::lease_lost);
}

} // namespace redlock::manager
