// SPDX-License-Identifier: BSL-1.0
// The leases of a manager: keeping, loss and release.
#include "manager/lock_service.hpp"

#include <algorithm>
#include <utility>

namespace redlock::manager
{

namespace
{

void notify_all(runtime::unlinking_list<place_in_line>& line) noexcept
{
    for (place_in_line& each : line)
    {
        each.waiting.notify();
    }
}

} // namespace

void lock_service::start_keeping(lease_state& held, const core::lease_schedule& schedule, time_limit max_hold)
{
    const clock::time_point hold_ends = core::later(strand_.now(), max_hold.value());
    ++kept_leases_;
    held.kept = std::make_unique<keeper>(*this, held, schedule, hold_ends);
}

void lock_service::watch_expiry(lease_state& held)
{
    held.expiry = std::make_unique<expiry_watch>(*this, held);
}

void lock_service::lose(lease_state& held, errc why) noexcept
{
    if (held.lose(why))
    {
        end_lost_lease(held, nullptr);
    }
}

void lock_service::disown(lease_state& held, const round& by) noexcept
{
    if (held.disown())
    {
        end_lost_lease(held, &by);
    }
}

/// `by`: the extension that showed the loss; null if there is none.
void lock_service::end_lost_lease(lease_state& held, const round* by) noexcept
{
    if (held.kept)
    {
        held.kept->stop();
    }
    notify_all(held.extending);
    notify_all(held.watching);
    report_failed_extensions(held);
    if (by != nullptr && held.kept)
    {
        keep_votes(held, *by, held.lost_because());
    }
    held.explain_loss();
    if (observed())
    {
        notify(lease_lost{std::string{held.resource()}, std::string{held.owner_id()}, held.lost_because()});
    }
}

/// Reports the pending extensions before the loss that they caused. If the loss has another cause, they are dropped.
void lock_service::report_failed_extensions(lease_state& held)
{
    while (!held.unreported.empty())
    {
        round& one = held.unreported.front().of;
        held.lost_because() == errc::lease_lost ? one.report_now() : one.drop_report();
    }
}

bool lock_service::begin_release(lease_state& held) noexcept
{
    if (!held.begin_release())
    {
        return false;
    }
    static_cast<lease_hook&>(held).unlink();
    intrusive_ptr_release(&held); // The caller holds another reference.
    if (held.kept)
    {
        held.kept.reset();
        --kept_leases_;
    }
    held.expiry.reset();
    // Extensions that are queued find the lease released.
    notify_all(held.extending);
    notify_all(held.watching);
    notify_shutdown();
    return true;
}

clock::time_point lock_service::lose_kept_leases(errc why) noexcept
{
    clock::time_point latest{};
    for (lease_state& each : leases_)
    {
        if (each.kept)
        {
            latest = std::max(latest, each.kept->confirmed_until());
            lose(each, why);
        }
    }
    return latest;
}

} // namespace redlock::manager
