// SPDX-License-Identifier: BSL-1.0
// The end of a guarded seed: masters in quarantine are armed, by the clients or by an operator.
#include "cluster_run.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

/// After how many readings each client has found that a clock has jumped, and has put the master into quarantine.
constexpr int readings = 4;

} // namespace

std::chrono::milliseconds cluster_run::long_ttl() const
{
    return plan_.guarded ? plan_.guarded->max_ttl : std::chrono::milliseconds{60s};
}

/// Returns whether a master refuses commands to the end of the run, so that it may never be armed.
bool cluster_run::is_impaired(std::size_t master) const
{
    return master < plan_.habits.size() && !plan_.habits[master].refuses.empty();
}

/// Returns whether a master refuses, to the end of the run, a command by which clients see its marker.
bool cluster_run::hides_marker(std::size_t master) const
{
    const auto& refuses = masters_[master]->habits;
    return refuses.contains("INFO") || refuses.contains("GET") ||
           (refuses.contains("SELECT") && plan_.database != 0);
}

/// By the slowest clock of a client, with the time in which a client finds out and every client waits for its turn.
clock::duration cluster_run::longest_quarantine() const
{
    const double drift = std::max(plan_.drift_factor, 0.01);
    const std::chrono::milliseconds wait{
        static_cast<std::int64_t>(
            std::ceil(static_cast<double>(group_->longest_ttl().count()) * (1 + drift))) +
        2};
    return wait + wait * plan_.max_drift() / 1'000'000 + 3s;
}

/// Returns whether the masters that are left have the counters of every token, or were all restarted with their data.
bool cluster_run::can_be_armed_by_clients() const
{
    std::size_t kept = 0;
    std::size_t marked = 0;   // New clients find the group at a quorum,
    std::size_t recorded = 0; // and its members at a master of each quorum. The record may have been evicted.
    bool all_have_data = true;
    for (std::size_t index = 0; index < masters_.size(); ++index)
    {
        const bool is_seen = !hides_marker(index);
        const bool has_kept = group_->has_kept_counters(index);
        const bool is_marked = is_seen && (has_kept || group_->is_stale(index));
        kept += has_kept && !is_impaired(index) ? 1U : 0U;
        marked += is_marked ? 1U : 0U;
        recorded += is_seen && group_->has_record(index) ? 1U : 0U;
        all_have_data = all_have_data && !is_impaired(index) && is_marked && group_->floor(index) > 0;
    }
    const std::size_t quorum = quorum_of(masters_.size());
    const bool knows_members = recorded + quorum > masters_.size() || !plan_.breaks_assumptions;
    // What is left of a change that wasn't finished is for an operator.
    return group_->is_one() && knows_members &&
           ((kept + quorum > masters_.size() && marked >= quorum) || all_have_data);
}

/// As an operator does with `redlock provision`.
void cluster_run::arm_by_hand()
{
    group_->choose_group();
    std::vector<std::size_t> unarmed;
    for (std::size_t index = 0; index < masters_.size(); ++index)
    {
        if (!group_->is_member(index))
        {
            unarmed.push_back(index);
            group_->put_into_quarantine(index);
        }
    }
    run_for(longest_quarantine() - 3s);
    oracle_.tokens()->armed_by_hand();
    for (const std::size_t index : unarmed)
    {
        if (!group_->is_member(index))
        {
            group_->arm(index);
        }
    }
}

/// Returns whether all masters are armed. `even_impaired`: also those that clients can't arm.
bool cluster_run::are_armed(bool even_impaired) const
{
    if (!group_->is_one())
    {
        return false;
    }
    for (std::size_t index = 0; index < masters_.size(); ++index)
    {
        if (!group_->is_armed(index) && (even_impaired || !(is_impaired(index) || group_->may_evict(index))))
        {
            return false;
        }
    }
    return true;
}

void cluster_run::run_until_armed(clock::duration bound, bool is_promised)
{
    std::optional<std::size_t> seen; // Arms.
    run_for(bound, [&] { return seen != std::exchange(seen, oracle_.tokens()->arms()) && are_armed(false); });
    oracle_.check(
        !is_promised || are_armed(false), "liveness", "{} of {} masters are armed after {} ms",
        group_->count_armed(), masters_.size(), bound / 1ms);
}

/// As an operator does after a warning. The clients that are connected have to find out.
void cluster_run::forbid_eviction(clock::duration bound)
{
    bool waits = false;
    for (std::size_t index = 0; index < masters_.size(); ++index)
    {
        waits = waits || (group_->may_evict(index) && !group_->is_armed(index));
        if (group_->may_evict(index))
        {
            let_evict(index, false);
        }
    }
    if (waits && !oracle_.found())
    {
        run_until_armed(bound, can_be_armed_by_clients());
    }
}

/// An operator runs the command, and waits for it. Returns whether it has ended.
bool cluster_run::run_command(const provision_options& what, const config& masters, clock::duration bound)
{
    changes_.emplace_back(*this, masters, what);
    return have_ended(bound);
}

bool cluster_run::have_ended(clock::duration bound)
{
    return run_for(
        bound,
        [this] {
            return std::all_of(
                changes_.begin(), changes_.end(), [](const auto& each) { return each.ended(); });
        });
}

/// An operator deletes the markers of masters that the last run has called strangers. Returns whether there were any.
bool cluster_run::retire_strangers(clock::duration bound)
{
    const std::vector<std::size_t> strangers = changes_.back().strangers();
    if (strangers.empty())
    {
        return false;
    }
    config those = options();
    const std::vector<master> all = std::exchange(those.masters, {});
    for (const std::size_t each : strangers)
    {
        those.masters.push_back(all[each]);
    }
    return run_command({.action = provision_action::retire}, those, bound);
}

/// An operator does what the pages advise if a change was refused: retires strangers, restarts the clients and waits for them,
/// and arms the masters that they can't arm.
void cluster_run::prepare_change(clock::duration bound)
{
    const bool are_all_strangers = changes_.back().strangers().size() == masters_.size();
    if (!are_all_strangers && retire_strangers(bound))
    {
        return;
    }
    restart_clients();
    run_until_armed(bound, false);
    bool repeats = true;
    bool is_shown = false;
    for (int each = 0; each < 3 && repeats && !are_armed(false); ++each)
    {
        config of_group = options();
        if (!is_shown)
        {
            group_->choose_group();
        }
        of_group.guarded.emplace().group = group_->name();
        oracle_.tokens()->armed_by_hand();
        const auto max_ttl = group_->is_forgotten() ? group_->longest_ttl() : 0ms;
        run_command({.action = provision_action::arm_again, .max_ttl = max_ttl}, of_group, bound);
        // Clients that have found the new group may mark the masters that were retired as its members.
        is_shown = each > 0 && !changes_.back().succeeded() && group_->choose_shown_group();
        repeats = is_shown || retire_strangers(bound);
    }
}

/// An operator repeats a change that was interrupted, until it is finished. Then all clients are restarted.
void cluster_run::finish_change()
{
    constexpr int tries = 4;
    if (changes_.empty())
    {
        return;
    }
    const clock::duration bound =
        4 * longest_quarantine() + plan_.connect_timeout + plan_.reconnect_delay_max;
    bool have_all_ended = have_ended(bound);
    bool is_finished = have_all_ended && changes_.back().succeeded();
    for (int each = 0; each < tries && have_all_ended && !is_finished; ++each)
    {
        if (each > 0)
        {
            prepare_change(bound);
        }
        change_group(group_->longest_ttl(), each % 2 == 1);
        have_all_ended = have_ended(bound);
        is_finished = changes_.back().succeeded();
    }
    bool can_be_finished = true;
    for (std::size_t index = 0; index < masters_.size(); ++index)
    {
        can_be_finished = can_be_finished && !is_impaired(index) && !group_->may_evict(index) &&
                          !group_->has_other_marker(index);
    }
    oracle_.check(have_all_ended, "liveness", "a change of the group doesn't end in {} ms", bound / 1ms);
    oracle_.check(is_finished || !can_be_finished, "liveness", "a change of the group can't be finished");
    restart_clients();
}

/// A manager keeps the group that it has found first.
void cluster_run::restart_clients()
{
    for (const auto& each : processes_)
    {
        if (each->usable() && each->guarded())
        {
            each->drop_manager();
        }
    }
}

/// G6, counted from when the faults had ended and the disks had written what was sent until then. A client that is connected may
/// have to find out first that its connection is dead.
void cluster_run::check_armed_in_time(clock::time_point drained_at)
{
    const clock::duration notices = plan_.probe_interval + plan_.response_timeout + 1ms;
    const clock::duration reconnects = plan_.connect_timeout + plan_.reconnect_delay_max;
    const clock::time_point limit = drained_at + notices + reconnects + longest_quarantine();
    for (std::size_t index = 0; index < masters_.size(); ++index)
    {
        const bool is_slow = is_impaired(index) || could_evict_[index] || masters_[index]->fsync > 0ms;
        const clock::time_point armed_at = oracle_.tokens()->armed_at(index);
        oracle_.check(
            is_slow || armed_at <= limit, "liveness", "master {} is armed {} ms late", index,
            (armed_at - limit) / 1ms);
    }
}

/// Waits until the masters are armed. If the clients have to be able to do it, that is bounded.
void cluster_run::arm_masters(clock::time_point drained_at)
{
    if (!group_ || oracle_.found())
    {
        return;
    }
    const bool any_left = std::any_of(
        processes_.begin(), processes_.end(),
        [](const auto& each) { return each->usable() && each->guarded(); });
    if (!any_left)
    {
        add_process().open();
    }
    finish_change();
    const bool can_be_armed = can_be_armed_by_clients();
    const clock::duration reconnects = plan_.connect_timeout + plan_.reconnect_delay_max;
    // The clients put a master whose clock has jumped during the last faults into quarantine once they have compared it.
    run_for(reconnects + readings * (1s + 10 * (plan_.latency + plan_.jitter)));
    // And nobody arms a master that it suspects, which only wrong clocks can prolong.
    const bool may_suspect = plan_.breaks_assumptions && oracle_.jumps().were_wrong();
    const clock::duration bound = longest_quarantine() * (may_suspect ? 2 : 1) + reconnects;
    run_until_armed(bound, can_be_armed);
    if (any_left && can_be_armed && changes_.empty() && !oracle_.jumps().were_wrong())
    {
        check_armed_in_time(drained_at);
    }
    forbid_eviction(bound);
    if (oracle_.found())
    {
        return;
    }
    if (!are_armed(true))
    {
        arm_by_hand();
        if (!changes_.empty())
        {
            restart_clients();
        }
    }
    if (oracle_.jumps().were_wrong())
    {
        run_for(longest_quarantine()); // For so long, a client may suspect a master that can't be judged.
    }
    run_for(1s + reconnects + 10 * (plan_.latency + plan_.jitter)); // Every client looks at them.
}

} // namespace redlock::test
