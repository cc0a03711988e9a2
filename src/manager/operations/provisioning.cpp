// SPDX-License-Identifier: BSL-1.0
// A run of provisioning: look, quarantine, wait, look again, arm.
#include "manager/operations/provisioning.hpp"

#include "core/arming_plan.hpp"
#include "net/arming_scripts.hpp"
#include "net/provision_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace redlock::manager
{

namespace
{

constexpr std::chrono::milliseconds between_checks{10};

} // namespace

provisioning::provisioning(
    lock_service& service, active_operation& self, const provision_options& options, std::string group,
    provision_report& report)
    : service_{service},
      self_{self},
      options_{options},
      group_{std::move(group)},
      report_{report},
      keys_{service.options().key_prefix},
      adds_clock_{options.action == provision_action::arm || options.action == provision_action::arm_again}
{
    for (const std::string& name : *service.names())
    {
        report_.masters.emplace_back().name = name;
    }
    refusals_.resize(report_.masters.size());
}

runtime::task<error_code> provisioning::run()
{
    if (options_.action == provision_action::retire)
    {
        const error_code result = co_await retire();
        co_return result;
    }
    if (is_change())
    {
        const error_code result = co_await change();
        co_return result;
    }
    error_code why = co_await prepare();
    if (why || report_.outcome == provision_outcome::complete)
    {
        co_return why;
    }
    why = co_await await_expiry();
    if (!why)
    {
        why = co_await check_again();
    }
    if (!why)
    {
        why = co_await arm_all();
    }
    co_return why;
}

/// Looks at the masters, and puts them into quarantine unless all are armed already.
runtime::task<error_code> provisioning::prepare()
{
    bool succeeded = co_await connect();
    step_end end = step_end::overtaken;
    for (int looks = 0; succeeded && end == step_end::overtaken && looks < max_looks; ++looks)
    {
        succeeded = co_await look();
        error_code refused = failure();
        if (succeeded)
        {
            refused = co_await decide_by_trial();
        }
        if (refused || report_.outcome == provision_outcome::complete)
        {
            co_return refused;
        }
        end = co_await begin_quarantines();
    }
    co_return succeeded&& end == step_end::done ? error_code{} : failure();
}

/// Waits until each master was tried to be connected.
runtime::task<bool> provisioning::connect()
{
    while (service_.connecting() && !self_.stopped())
    {
        co_await self_.wake_event;
    }
    co_return !self_.stopped();
}

/// Asks all masters. False if it was cancelled.
runtime::task<bool> provisioning::look()
{
    const std::size_t masters = report_.masters.size();
    const broadcast_query<sights> query{masters, self_.wake_event};
    for (std::size_t master = 0; master < masters; ++master)
    {
        command_.clear();
        net::append_provision_look(command_, keys_, database_of(master));
        service_.send_query(master, command_, *query);
    }
    const bool succeeded = co_await await_replies(*query);
    seen_ = query->seen();
    for (std::size_t master = 0; master < masters; ++master)
    {
        const net::failure& failed = query->failure_of(master);
        note_failure(master, failed.reason, failed.detail);
        if (refusals_[master].reason)
        {
            leave_out(master);
        }
    }
    co_return succeeded;
}

/// Looks after a time in which masters may have been disconnected. Waits for those that the run needs, because no lock can be
/// acquired meanwhile.
runtime::task<bool> provisioning::reconnect_and_look()
{
    const clock::time_point ends = strand().now() + service_.options().connect_timeout;
    while (!participants_are_ready() && strand().now() < ends && !self_.stopped())
    {
        const alarm_clock pause{strand(), self_.wake_event, strand().now() + between_checks};
        co_await self_.wake_event;
    }
    const bool succeeded = co_await look();
    co_return succeeded;
}

/// Returns whether the masters that take part are connected.
bool provisioning::participants_are_ready() const
{
    for (std::size_t master = 0; master < expected_.size(); ++master)
    {
        if (expected_[master] && !service_.connection_to(master).ready())
        {
            return false;
        }
    }
    return true;
}

/// Decides by the look and by a trial: again without the masters that refuse, until none does.
runtime::task<error_code> provisioning::decide_by_trial()
{
    error_code refused = decide();
    bool is_permitted = false;
    while (!is_permitted && !refused && report_.outcome != provision_outcome::complete)
    {
        is_permitted = co_await try_changes();
        if (!is_permitted)
        {
            refused = self_.stopped() ? failure() : decide();
        }
    }
    co_return refused;
}

/// Plans by the look. Returns an error if a master can't be provisioned.
error_code provisioning::decide()
{
    judge();
    if (is_replaced())
    {
        return failure();
    }
    report_.group = plan_.group;
    if (plan_.next == core::provision_step::complete)
    {
        report_.outcome = provision_outcome::complete;
        report_.floor = core::floor_of(seen_);
        return {};
    }
    if (plan_.next == core::provision_step::refuse || is_refused_for_keys())
    {
        return failure();
    }
    if (plan_.next == core::provision_step::begin)
    {
        report_.group = random_id();
    }
    record_ = core::record_of(plan_, report_.group, std::span{*service_.names()}.first(members()));
    return {};
}

void provisioning::judge()
{
    plan_ = plan();
    for (std::size_t master = 0; master < seen_.size(); ++master)
    {
        note(master, plan_.masters[master].found, plan_.masters[master].detail);
    }
    advise(core::advice_on(plan_, seen_, asked()));
}

core::advised_run provisioning::asked() const
{
    return {options_.action, *service_.names(), members(), group_, options_.max_ttl, options_.policy};
}

void provisioning::advise(const std::string& next_step)
{
    report_.advice = service_.redacted().redact(next_step);
}

/// Advises after masters were armed.
void provisioning::advise_after()
{
    std::vector<provision_finding> found;
    for (const provisioned_master& each : report_.masters)
    {
        found.push_back(each.found);
    }
    advise(core::advice_after(found, seen_, asked(), report_.group));
}

core::provision_plan provisioning::plan() const
{
    if (is_change())
    {
        return core::plan_change(seen_, wanted_change());
    }
    switch (options_.action)
    {
    case provision_action::make_group:
    case provision_action::change_group:
        break;
    case provision_action::retire:
        return core::plan_retirement(seen_);
    case provision_action::arm:
    case provision_action::arm_again:
        return core::plan_arming(
            seen_, {*service_.names(), group_, options_.action == provision_action::arm_again,
                    options_.max_ttl, options_.policy});
    }
    return core::plan_provisioning(seen_, {*service_.names(), options_.max_ttl, options_.policy});
}

/// The wait can't be skipped if there are keys: they may be locks that clients count on.
bool provisioning::is_refused_for_keys()
{
    bool is_refused = false;
    for (std::size_t master = 0; options_.fresh && master < seen_.size(); ++master)
    {
        const bool is_armed = report_.masters[master].found == provision_finding::armed;
        if (seen_[master].has_other_keys && !is_armed)
        {
            note(master, provision_finding::not_empty, "its databases have keys");
            is_refused = true;
        }
    }
    return is_refused;
}

/// Tries whether the masters that the plan changes permit it, before any is changed. False if one doesn't, which is left out from
/// then on.
runtime::task<bool> provisioning::try_changes()
{
    std::vector<std::size_t> tried;
    for (std::size_t master = 0; master < seen_.size(); ++master)
    {
        const core::provision_seat& its = plan_.masters[master];
        const bool stays = its.keeps && its.keeps->state != core::marker_state::quarantine;
        if (its.takes_part && !stays)
        {
            tried.push_back(master);
        }
    }
    const broadcast_query<changes> query{seen_.size(), tried.size(), net::read_quarantine, self_.wake_event};
    for (const std::size_t master : tried)
    {
        command_.clear();
        net::append_provision_trial(command_, keys_, database_of(master), plan_.masters[master].leaves);
        service_.send_query(master, command_, *query);
    }
    bool is_permitted = co_await await_replies(*query);
    for (const std::size_t master : tried)
    {
        const change_answer& answer = query->of(master);
        if (answer.reason)
        {
            refusals_[master] = {answer.reason, answer.detail};
            leave_out(master);
            is_permitted = false;
        }
    }
    co_return is_permitted;
}

/// Counts a master that refuses to be changed as one that gives no answer.
void provisioning::leave_out(std::size_t master)
{
    seen_[master] = {};
    seen_[master].is_known = false;
    note_failure(master, refusals_[master].reason, refusals_[master].detail);
}

/// Begins the quarantine of all masters that aren't in it.
///
/// A new group begins at one master, the same one for all runs: a master of the group that it replaces, if there is one.
/// Otherwise two runs at once could leave masters of two groups, neither of which could be completed.
runtime::task<provisioning::step_end> provisioning::begin_quarantines()
{
    std::vector<std::size_t> missing;
    adds_clock_ = adds_clock_ || has_markers_of_others();
    expected_.clear();
    for (std::size_t master = 0; master < seen_.size(); ++master)
    {
        const core::provision_seat& its = plan_.masters[master];
        const bool is_missing = its.takes_part && !its.keeps;
        expected_.push_back(is_missing ? new_marker(master) : its.keeps);
        if (is_missing)
        {
            missing.push_back(master);
        }
    }
    step_end end = step_end::done;
    if (plan_.next == core::provision_step::begin)
    {
        const auto is_earlier = [this](std::size_t left, std::size_t right)
        {
            const auto rank = [this](std::size_t master)
            {
                const bool is_old = plan_.masters[master].found == provision_finding::old_group;
                return std::pair{!is_old, std::string_view{report_.masters[master].name}};
            };
            return rank(left) < rank(right);
        };
        const auto first = std::min_element(missing.begin(), missing.end(), is_earlier);
        const std::vector<std::size_t> alone{*first};
        missing.erase(first);
        end = co_await begin_quarantines_on(alone);
    }
    if (end == step_end::done)
    {
        end = co_await begin_quarantines_on(missing);
    }
    co_return end;
}

runtime::task<provisioning::step_end>
provisioning::begin_quarantines_on(const std::vector<std::size_t>& masters)
{
    if (masters.empty())
    {
        co_return step_end::done;
    }
    const broadcast_query<changes> query{
        seen_.size(), masters.size(), net::read_quarantine, self_.wake_event};
    const provision_outcome before = std::exchange(report_.outcome, provision_outcome::unfinished);
    for (const std::size_t master : masters)
    {
        const std::string& seen = seen_[master].marker ? *seen_[master].marker : std::string{};
        command_.clear();
        net::append_provision_quarantine(
            command_, keys_,
            {seen, *expected_[master], record_, plan_.replaced, plan_.masters[master].keeps_counters},
            database_of(master));
        service_.send_query(master, command_, *query);
    }
    const bool succeeded = co_await await_replies(*query);
    step_end end = succeeded ? step_end::done : step_end::failed;
    std::size_t overtaken = 0;
    for (const std::size_t master : masters)
    {
        const change_answer& answer = query->of(master);
        if (!answer.reason && answer.marker == core::to_text(*expected_[master]))
        {
            note(
                master,
                plan_.masters[master].leaves ? provision_finding::left_group : provision_finding::unfinished);
        }
        else if (!answer.reason || is_overtaken(answer))
        {
            note(master, provision_finding::changed);
            end = end == step_end::done ? step_end::overtaken : end;
            ++overtaken;
        }
        else
        {
            const bool is_blind = answer.refusal == net::databases_unknown;
            note_failure(master, answer.reason, is_blind ? unknown_databases : answer.detail);
            end = step_end::failed;
        }
    }
    if (overtaken == masters.size()) // Nothing was written.
    {
        report_.outcome = before;
    }
    co_return end;
}

/// Waits for the replies, as long as an unresponsive connection is tolerated. False if it was cancelled.
runtime::task<bool> provisioning::await_replies(const reply_collector& replies)
{
    const clock::time_point ends = strand().now() + service_.options().response_timeout;
    const alarm_clock enough{strand(), self_.wake_event, ends};
    while (!replies.complete() && strand().now() < ends && !self_.stopped())
    {
        co_await self_.wake_event;
    }
    co_return !self_.stopped();
}

/// False if it was cancelled.
runtime::task<bool> provisioning::pause_until(clock::time_point end)
{
    const alarm_clock enough{strand(), self_.wake_event, end};
    while (strand().now() < end && !self_.stopped())
    {
        co_await self_.wake_event;
    }
    co_return !self_.stopped();
}

/// Returns the marker of a quarantine that begins now.
core::marker provisioning::new_marker(std::size_t master) const
{
    return {
        report_.group,
        plan_.masters[master].seat,
        static_cast<std::uint32_t>(members()),
        plan_.max_ttl,
        plan_.policy,
        plan_.masters[master].leaves ? core::marker_state::retired : core::marker_state::quarantine,
        plan_.masters[master].why,
        random_id(),
        seen_[master].replication_id};
}

std::string provisioning::random_id() const
{
    return fmt::format("{:016x}", service_.random_number());
}

void provisioning::note(std::size_t master, provision_finding found, std::string_view detail)
{
    provisioned_master& entry = report_.masters[master];
    entry.found = found;
    if (found != provision_finding::unknown) // Otherwise the reason is known.
    {
        entry.reason = {};
        entry.detail = service_.redacted().show(detail).view();
    }
}

void provisioning::note_failure(std::size_t master, error_code reason, std::string_view detail)
{
    provisioned_master& entry = report_.masters[master];
    entry.found = provision_finding::unknown;
    entry.reason = reason;
    entry.detail = service_.redacted().show(detail).view();
}

error_code provisioning::failure() const
{
    return self_.stopped() ? self_.stopped() : error_code{errc::provisioning_failed};
}

} // namespace redlock::manager
