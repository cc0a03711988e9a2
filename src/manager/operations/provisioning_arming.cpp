// SPDX-License-Identifier: BSL-1.0
// The second half of a run of provisioning: wait, look again, arm.
#include "manager/operations/provisioning.hpp"

#include "core/arming_plan.hpp"
#include "core/fencing.hpp"
#include "net/arming_scripts.hpp"

#include <algorithm>
#include <optional>

namespace redlock::manager
{

/// Waits until each key that another client counts on has expired.
runtime::task<error_code> provisioning::await_expiry()
{
    report_.outcome = provision_outcome::unfinished;
    error_code why;
    if (!options_.fresh || !plan_.may_skip_wait)
    {
        const clock::time_point ends =
            strand().now() + core::provision_wait(core::longest_ttl(plan_), service_.options().drift_factor);
        notify_quarantines(ends);
        const bool succeeded = co_await pause_until(ends);
        why = succeeded ? error_code{} : self_.stopped();
    }
    co_return why;
}

void provisioning::notify_quarantines(clock::time_point end)
{
    for (std::size_t master = 0; service_.observed() && master < expected_.size(); ++master)
    {
        const std::optional<core::marker>& its = expected_[master];
        if (its && its->state == core::marker_state::quarantine)
        {
            service_.notify(master_quarantined{master, report_.masters[master].name, its->why, end});
        }
    }
}

/// Looks again. Fails if a master doesn't have the marker any more that it had before the wait.
runtime::task<error_code> provisioning::check_again()
{
    bool succeeded = co_await reconnect_and_look();
    const core::provision_plan present = plan();
    for (std::size_t master = 0; succeeded && master < seen_.size(); ++master)
    {
        if (seen_[master].is_known)
        {
            const std::optional<core::marker>& expected = expected_[master];
            const core::provision_seat its =
                expected ? core::check_again(seen_[master], *expected) : present.masters[master];
            note(master, its.found, its.detail);
        }
    }
    succeeded = succeeded && !is_refused_for_keys() && is_as_expected();
    co_return succeeded ? error_code{} : failure();
}

/// A master that takes no part may have any finding that doesn't prevent that others are armed.
bool provisioning::is_as_expected() const
{
    for (std::size_t master = 0; master < expected_.size(); ++master)
    {
        const provision_finding found = report_.masters[master].found;
        const bool is_good =
            expected_[master] ? core::is_provisionable(found) : !core::prevents_arming(found);
        if (!is_good)
        {
            return false;
        }
    }
    return true;
}

runtime::task<error_code> provisioning::arm_all()
{
    if (!take_floor())
    {
        co_return failure();
    }
    std::vector<std::size_t> waiting;
    for (std::size_t master = 0; master < seen_.size(); ++master)
    {
        if (expected_[master] && report_.masters[master].found != provision_finding::armed)
        {
            waiting.push_back(master);
        }
    }
    const step_end end = co_await arm(waiting);
    error_code why = end == step_end::failed ? failure() : error_code{};
    if (end == step_end::overtaken)
    {
        why = co_await check_again();
        const bool all_armed = std::all_of(
            waiting.begin(), waiting.end(),
            [this](std::size_t each) { return report_.masters[each].found == provision_finding::armed; });
        why = why || all_armed ? why : failure();
    }
    note_floor(waiting, end);
    if (!why)
    {
        report_.outcome = provision_outcome::provisioned;
        advise_after();
    }
    co_return why;
}

/// Takes the floor from the counters and, where some may be lost, from the clocks. False if a clock can't be used.
bool provisioning::take_floor()
{
    if (!adds_clock_)
    {
        report_.floor = core::floor_of(seen_);
        return true;
    }
    report_.floor = core::floor_by_clocks(seen_);
    bool fits = true;
    for (std::size_t master = 0; master < seen_.size(); ++master)
    {
        if (seen_[master].is_known && core::floor_by_clock(seen_[master].clock) > net::max_counter)
        {
            note(master, provision_finding::clock_ahead, "its clock shows a year after 2254");
            fits = false;
        }
    }
    return fits;
}

/// If another run has armed masters, reports the floor that they have.
void provisioning::note_floor(const std::vector<std::size_t>& asked, step_end end)
{
    if (asked.empty() || end == step_end::overtaken)
    {
        report_.floor = core::floor_of(seen_);
    }
}

runtime::task<provisioning::step_end> provisioning::arm(const std::vector<std::size_t>& masters)
{
    const broadcast_query<changes> query{seen_.size(), masters.size(), net::read_counter, self_.wake_event};
    for (const std::size_t master : masters)
    {
        command_.clear();
        net::append_arm(command_, keys_, *expected_[master], report_.floor, record_, net::script_form::text);
        service_.send_query(master, command_, *query);
    }
    const bool succeeded = co_await await_replies(*query);
    step_end end = succeeded ? step_end::done : step_end::failed;
    for (const std::size_t master : masters)
    {
        const change_answer& answer = query->of(master);
        if (!answer.reason)
        {
            note(master, provision_finding::armed);
            seen_[master].marker = core::to_text(core::armed(*expected_[master]));
            seen_[master].members = core::to_text(record_);
            seen_[master].has_floor = true;
            if (service_.observed())
            {
                service_.notify(master_armed{master, report_.masters[master].name, expected_[master]->nonce});
            }
        }
        else if (is_overtaken(answer))
        {
            end = end == step_end::done ? step_end::overtaken : end;
        }
        else if (answer.refusal == net::may_evict)
        {
            note(master, provision_finding::evicts, "maxmemory-policy isn't noeviction");
            end = step_end::failed;
        }
        else
        {
            note_failure(master, answer.reason, answer.detail);
            end = step_end::failed;
        }
    }
    co_return end;
}

} // namespace redlock::manager
