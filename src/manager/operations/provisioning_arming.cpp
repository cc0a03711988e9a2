// SPDX-License-Identifier: BSL-1.0
// The second half of a run of provisioning: wait, look again, arm.
#include "manager/operations/provision_replies.hpp"
#include "manager/operations/provisioning.hpp"

#include <algorithm>

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
            strand().now() + core::provision_wait(options_.max_ttl, service_.options().drift_factor);
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
        if (expected_[master].state == core::marker_state::quarantine)
        {
            service_.notify(
                master_quarantined{master, report_.masters[master].name, incarnation_end::created, end});
        }
    }
}

/// Looks again. Fails if a master doesn't have the marker any more that it had before the wait.
runtime::task<error_code> provisioning::check_again()
{
    bool succeeded = co_await reconnect_and_look();
    for (std::size_t master = 0; succeeded && master < seen_.size(); ++master)
    {
        if (seen_[master].is_known)
        {
            const core::provision_seat its = core::check_again(seen_[master], expected_[master]);
            note(master, its.found, its.detail);
        }
    }
    succeeded = succeeded && !is_refused_for_keys() &&
                std::all_of(
                    report_.masters.begin(), report_.masters.end(),
                    [](const provisioned_master& each) { return core::is_provisionable(each.found); });
    co_return succeeded ? error_code{} : failure();
}

runtime::task<error_code> provisioning::arm_all()
{
    report_.floor = core::floor_of(seen_);
    std::vector<std::size_t> waiting;
    for (std::size_t master = 0; master < seen_.size(); ++master)
    {
        if (report_.masters[master].found != provision_finding::armed)
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
            report_.masters.begin(), report_.masters.end(),
            [](const provisioned_master& each) { return each.found == provision_finding::armed; });
        why = why || all_armed ? why : failure();
    }
    if (!why)
    {
        report_.outcome = provision_outcome::provisioned;
    }
    co_return why;
}

runtime::task<provisioning::step_end> provisioning::arm(const std::vector<std::size_t>& masters)
{
    const broadcast_query<changes> query{seen_.size(), masters.size(), net::read_counter, self_.wake_event};
    for (const std::size_t master : masters)
    {
        command_.clear();
        net::append_arm(command_, keys_, expected_[master], report_.floor, record_, net::script_form::text);
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
            if (service_.observed())
            {
                service_.notify(master_armed{master, report_.masters[master].name, expected_[master].nonce});
            }
        }
        else if (is_overtaken(answer))
        {
            end = end == step_end::done ? step_end::overtaken : end;
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
