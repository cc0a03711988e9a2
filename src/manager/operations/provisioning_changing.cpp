// SPDX-License-Identifier: BSL-1.0
// A run of provisioning that replaces a group by another one.
#include "manager/operations/provisioning.hpp"

#include "core/change_plan.hpp"
#include "core/provision_sight.hpp"

#include <algorithm>
#include <optional>

namespace redlock::manager
{

/// Moves the masters of the old group, waits, and arms the new one if the old one can't grant any more. Otherwise moves them
/// again, and waits again.
runtime::task<error_code> provisioning::change()
{
    bool succeeded = co_await connect();
    if (succeeded)
    {
        succeeded = co_await look();
    }
    for (int overtaken = 0; succeeded && overtaken < max_looks;)
    {
        const error_code refused = co_await decide_by_trial();
        if (refused || report_.outcome == provision_outcome::complete)
        {
            co_return refused;
        }
        const step_end end = co_await begin_quarantines();
        if (end == step_end::failed)
        {
            co_return failure();
        }
        if (plan_.next == core::provision_step::finish && end == step_end::done)
        {
            co_return conclude();
        }
        error_code why;
        if (end == step_end::done)
        {
            overtaken = 0;
            group_ = report_.group;
            why = co_await await_expiry();
        }
        else
        {
            ++overtaken;
        }
        if (!why)
        {
            succeeded = co_await reconnect_and_look();
        }
        if (why || !succeeded)
        {
            co_return failure();
        }
        if (end == step_end::done && core::is_moved(seen_, expected_, plan_, wanted_change()))
        {
            why = co_await arm_moved();
            co_return why;
        }
    }
    co_return failure();
}

core::change_order provisioning::wanted_change() const
{
    return {*service_.names(), members(),       options_.stopped,
            options_.max_ttl,  options_.policy, options_.action == provision_action::make_group,
            options_.takeover};
}

/// Returns whether another run has replaced the group that this one has made, by the plan.
bool provisioning::is_replaced()
{
    if (!is_change() || group_.empty() || plan_.group == group_)
    {
        return false;
    }
    for (std::size_t master = 0; master < seen_.size(); ++master)
    {
        if (seen_[master].is_known)
        {
            note(master, provision_finding::changed, core::quoted_marker(seen_[master]));
        }
    }
    return true;
}

/// Returns whether a master has a marker of the new group that this run hasn't written. Then it isn't known whether the group
/// has granted tokens that were lost.
bool provisioning::has_markers_of_others() const
{
    if (plan_.next != core::provision_step::begin && expected_.empty())
    {
        return true;
    }
    const auto is_taken_over = [](const core::replaced_group& each) { return !core::shows_use(each.shown); };
    if (std::any_of(plan_.replaced.begin(), plan_.replaced.end(), is_taken_over))
    {
        return true;
    }
    for (std::size_t master = 0; master < seen_.size(); ++master)
    {
        const std::optional<core::marker>& its = plan_.masters[master].keeps;
        if (its && (expected_.empty() || its != expected_[master]))
        {
            return true;
        }
    }
    return false;
}

/// Arms the members that have their markers. Clients arm the others.
runtime::task<error_code> provisioning::arm_moved()
{
    if (!take_floor())
    {
        co_return failure();
    }
    std::vector<std::size_t> waiting;
    note_moved();
    for (std::size_t master = 0; master < seen_.size(); ++master)
    {
        if (report_.masters[master].found == provision_finding::unfinished)
        {
            waiting.push_back(master);
        }
    }
    const step_end end = co_await arm(waiting);
    if (end == step_end::overtaken) // By another run, for example.
    {
        co_await look();
        note_moved();
    }
    note_floor(waiting, end);
    // With one master armed, another run would arm none.
    const bool is_in_use = std::any_of(
        report_.masters.begin(), report_.masters.end(),
        [](const provisioned_master& each) { return each.found == provision_finding::armed; });
    co_return is_in_use && !self_.stopped() ? conclude() : failure();
}

/// Notes what has become of the masters since they were moved. One that has come back meanwhile is judged as by a new run.
void provisioning::note_moved()
{
    const core::provision_plan present = plan();
    for (std::size_t master = 0; master < seen_.size(); ++master)
    {
        const bool is_moved = seen_[master].is_known && expected_[master];
        const core::provision_seat its =
            is_moved ? core::check_again(seen_[master], *expected_[master]) : present.masters[master];
        note(master, its.found, its.detail);
    }
}

/// The change is finished if no master of the old group is left, and all of the new one are armed.
error_code provisioning::conclude()
{
    const bool is_finished = std::all_of(
        report_.masters.begin(), report_.masters.end(),
        [](const provisioned_master& each) { return core::ends_change(each.found); });
    report_.outcome = is_finished ? provision_outcome::provisioned : provision_outcome::incomplete;
    advise_after();
    return is_finished ? error_code{} : failure();
}

} // namespace redlock::manager
