// SPDX-License-Identifier: BSL-1.0
// The masters of a guarded group, as one manager sees them.
#include "manager/guard.hpp"

#include "core/guarded_steps.hpp"
#include "core/provision_plan.hpp"
#include "core/validity.hpp"
#include "manager/lock_service.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace redlock::manager
{

namespace
{

/// Returns the reason why a master with this standing doesn't vote.
error_code reason_of(core::standing what) noexcept
{
    switch (what)
    {
    case core::standing::armed:
        break;
    case core::standing::quarantine:
        return master_errc::quarantined;
    case core::standing::forgetful:
        return master_errc::incarnation_changed;
    case core::standing::unprovisioned:
        return master_errc::not_provisioned;
    case core::standing::not_a_member:
        return master_errc::not_a_member;
    case core::standing::other_group:
    case core::standing::retired:
    case core::standing::unreadable:
        return master_errc::other_group;
    case core::standing::replica:
        return master_errc::read_only;
    }
    return {};
}

} // namespace

guard::guard(lock_service& service, std::string group)
    : service_{service},
      wanted_{std::move(group)},
      keys_{service.options().key_prefix},
      suspected_{service.options().masters.size()},
      arming_{service, *this}
{
    for (std::size_t master = 0; master < service.options().masters.size(); ++master)
    {
        members_.push_back(std::make_unique<member>(*this, master));
    }
}

std::string guard::ttl_complaint(std::chrono::milliseconds ttl) const
{
    if (!identity_ || ttl <= identity_->max_ttl)
    {
        return {};
    }
    return "a ttl of " + std::to_string(ttl.count()) + " ms can't be used: the group " + identity_->name +
           " allows " + std::to_string(identity_->max_ttl.count()) + " ms at most";
}

void guard::on_up(std::size_t master)
{
    look_again(master);
    if (!again_.armed())
    {
        service_.strand().arm(again_, service_.strand().now() + longest_interval);
    }
}

void guard::on_down(std::size_t master) noexcept
{
    member& down = *members_[master];
    down.has_looked = down.looks_again = false;
    down.found.reset();
    arming_.on_down(master);
    down.reason = master_errc::not_connected;
    down.detail = {};
}

void guard::look_again(std::size_t master)
{
    member& one = *members_[master];
    if (one.is_looking())
    {
        one.looks_again = true;
        return;
    }
    one.begin_look();
}

void guard::look_at_all()
{
    for (std::size_t master = 0; master < members_.size(); ++master)
    {
        if (service_.connection_to(master).ready() && !members_[master]->is_looking())
        {
            members_[master]->begin_look();
        }
    }
    const auto interval = std::min(longest_interval, service_.options().probe_interval);
    service_.strand().arm(again_, service_.strand().now() + interval);
}

void guard::member::begin_look()
{
    looks_again = false;
    began_ = of_.service_.strand().now();
    look_ = {};
    pending_ = net::look::commands;
    std::string command;
    for (std::size_t at = 0; at < net::look::commands; ++at)
    {
        if (look_.reason())
        {
            on_vote(
                index_, {},
                began_); // There was no room for the one before: replies are matched by their order.
            continue;
        }
        command.clear();
        net::look::append(command, of_.keys_, at);
        of_.service_.connection_to(index_).send_query(command, *this, of_.service_.strand().now());
    }
}

void guard::member::on_vote(std::size_t, const net::answer& none, clock::time_point) noexcept
{
    look_.take_failure(none);
    on_taken();
}

bool guard::member::on_reply(std::size_t, const resp::reply& reply) noexcept
{
    const bool fits = look_.take(reply);
    on_taken();
    return fits;
}

void guard::member::on_taken()
{
    --pending_;
    if (pending_ > 0 || !of_.service_.connection_to(index_).ready())
    {
        return;
    }
    looked_at = began_;
    of_.take(index_, look_);
    if (looks_again)
    {
        begin_look();
    }
}

void guard::take(std::size_t master, const net::look& shown)
{
    member& one = *members_[master];
    one.has_looked = true;
    one.reason = shown.reason();
    one.detail = service_.redacted().show(shown.detail());
    if (!one.reason)
    {
        one.seen = shown.seen();
        one.marker = one.seen.marker ? core::parse_marker(*one.seen.marker) : std::nullopt;
        one.record = core::parse_members(shown.members());
        const bool is_ours = one.marker && (!identity_ || one.marker->group == identity_->name);
        if (is_ours)
        {
            suspected_.on_marker(master, one.marker->nonce, one.looked_at);
        }
    }
    find_group();
    judge_all();
    if (identity_)
    {
        judge_clocks();
        arming_.reconsider();
        report_armed();
    }
    service_.on_looked();
}

void guard::on_quarantine(std::size_t master, clock::time_point ends)
{
    members_[master]->was_in_quarantine = true;
    if (service_.observed())
    {
        service_.notify(
            master_quarantined{master, service_.names()->at(master), members_[master]->marker->why, ends});
    }
}

/// Returns the nonce of the marker of a master that is armed or in quarantine.
std::string_view guard::voting_nonce(std::size_t master) const noexcept
{
    const bool has_one = is_armed(master) || is_in_quarantine(master);
    return has_one ? members_[master]->marker->nonce : std::string_view{};
}

void guard::on_clock_ahead(std::size_t master, const core::clock_deviation& seen)
{
    suspected_.on_ahead(master, seen, service_.strand().now());
    look_again(master);
}

/// Decides about the clocks that were seen ahead.
void guard::judge_clocks()
{
    if (!suspected_.has_any())
    {
        return;
    }
    std::vector<core::clock_witness> witnesses;
    for (std::size_t master = 0; master < members_.size(); ++master)
    {
        const net::connection& to = service_.connection_to(master);
        witnesses.push_back({&to.clock_readings(), voting_nonce(master), to.ready()});
    }
    const std::uint32_t accused = suspected_.judge(
        witnesses, service_.strand().now(),
        core::provision_wait(identity_->max_ttl, service_.options().drift_factor));
    for (std::size_t master = 0; master < members_.size(); ++master)
    {
        if ((accused >> master & 1U) != 0)
        {
            accuse(master);
        }
    }
}

/// Puts a master whose clock is ahead into quarantine. If it is in one, that begins again, because locks are extended all through
/// it. Only one member at a time is put into quarantine for its clock, and only if a quorum of others is armed, so that it costs no
/// lock.
void guard::accuse(std::size_t master)
{
    if (is_in_quarantine(master))
    {
        const std::optional<clock::time_point> since = arming_.since(master);
        if (since && service_.strand().now() >= *since + longest_interval)
        {
            arming_.begin(master, members_[master]->marker->why);
        }
        return;
    }
    const clock::time_point now = service_.strand().now();
    std::size_t armed = 0;
    bool another = false;
    for (std::size_t other = 0; other < members_.size(); ++other)
    {
        const member& each = *members_[other];
        const bool is_for_clock =
            each.found == core::judgement{core::standing::quarantine, core::incarnation_end::clock};
        armed += other != master && is_armed(other) && !is_suspected(other) ? 1U : 0U;
        another = another || is_for_clock || (other != master && now < each.accused_until);
    }
    if (is_armed(master) && !another && armed >= quorum_of(members_.size()))
    {
        members_[master]->accused_until = now + core::suspected_clocks::until_all_are_read;
        arming_.begin(master, core::incarnation_end::clock);
    }
}

/// Reports the masters that are armed after a quarantine that was reported.
void guard::report_armed()
{
    for (std::size_t master = 0; master < members_.size(); ++master)
    {
        if (is_armed(master) && std::exchange(members_[master]->was_in_quarantine, false) &&
            service_.observed())
        {
            service_.notify(
                master_armed{master, service_.names()->at(master), members_[master]->marker->nonce});
        }
    }
}

/// Returns the group that the last look at a master has shown, if it may be ours; empty for none. `if_armed`: only if it votes.
std::optional<core::guarded_group> guard::shown_group(const member& one, bool if_armed) const
{
    const bool is_wanted =
        one.has_looked && !one.reason && one.marker && one.marker->state != core::marker_state::retired &&
        one.marker->masters == members_.size() && (wanted_.empty() || one.marker->group == wanted_);
    if (!is_wanted)
    {
        return std::nullopt;
    }
    core::guarded_group shown = core::group_in(*one.marker);
    const bool fits = !if_armed || core::standing_of(one.seen, shown, true).what == core::standing::armed;
    return fits ? std::optional{std::move(shown)} : std::nullopt;
}

/// Returns the group that a quorum of masters show; empty for none. `of_armed`: only those count that are armed.
std::optional<core::guarded_group> guard::group_at_quorum(bool of_armed) const
{
    for (const std::unique_ptr<member>& each : members_)
    {
        std::optional<core::guarded_group> candidate = shown_group(*each, of_armed);
        const auto showing = std::count_if(
            members_.begin(), members_.end(),
            [&](const auto& other) { return candidate && shown_group(*other, of_armed) == candidate; });
        if (static_cast<std::size_t>(showing) >= quorum_of(members_.size()))
        {
            return candidate;
        }
    }
    return std::nullopt;
}

/// Takes the group that a quorum of masters show, once, and later the values of the same group that a quorum of armed ones show.
void guard::find_group()
{
    if (!identity_)
    {
        identity_ = group_at_quorum(false);
        return;
    }
    const bool has_other_values = std::any_of(
        members_.begin(), members_.end(),
        [this](const auto& each)
        {
            return each->marker && each->marker->group == identity_->name &&
                   !core::is_of_group(*each->marker, *identity_);
        });
    std::optional<core::guarded_group> present = has_other_values ? group_at_quorum(true) : std::nullopt;
    if (present && present->name == identity_->name)
    {
        identity_ = std::move(present);
    }
}

void guard::find_record()
{
    record_.reset();
    const auto record_in = [this](const member& each) -> const core::member_record*
    {
        const bool shows = each.has_looked && !each.reason && each.marker &&
                           core::is_of_group(*each.marker, *identity_) &&
                           each.marker->state != core::marker_state::retired && each.record &&
                           each.record->group == identity_->name;
        return shows ? &*each.record : nullptr;
    };
    for (const auto& candidate : members_)
    {
        const core::member_record* const found = record_in(*candidate);
        const auto showing = std::count_if(
            members_.begin(), members_.end(),
            [&](const auto& each)
            {
                const core::member_record* const other = record_in(*each);
                return found != nullptr && other != nullptr && *other == *found;
            });
        if (static_cast<std::uint32_t>(showing) >= core::blocking_set(identity_->masters))
        {
            record_ = *found;
            return;
        }
    }
}

/// Returns whether another connection shows the seat of this one, so that they lead to copies of one master. The one whose
/// name is on the record for this seat keeps it.
bool guard::has_other_seat(std::size_t master) const
{
    const member& one = *members_[master];
    const auto is_at_home = [&](std::size_t index)
    {
        const member& each = *members_[index];
        return each.record && core::seat_of(*each.record, service_.names()->at(index)) == each.marker->seat;
    };
    for (std::size_t other = 0; other < members_.size(); ++other)
    {
        const member& each = *members_[other];
        const bool same = other != master && each.has_looked && !each.reason && each.marker &&
                          each.marker->group == one.marker->group && each.marker->seat == one.marker->seat &&
                          each.marker->replication_id == each.seen.replication_id;
        if (same && !is_at_home(master))
        {
            return true;
        }
    }
    return false;
}

void guard::judge_all()
{
    if (!identity_)
    {
        for (const std::unique_ptr<member>& each : members_)
        {
            each->difference = difference_of(*each);
        }
        return;
    }
    find_record();
    for (std::size_t master = 0; master < members_.size(); ++master)
    {
        member& one = *members_[master];
        if (!one.has_looked || one.reason)
        {
            one.found.reset();
            continue;
        }
        // While too few masters show the record, a quarantine goes on, but nothing is armed.
        const bool is_on_record = record_
                                      ? core::seat_of(*record_, service_.names()->at(master)).has_value()
                                      : arming_.waits_for(master, one.seen.marker.value_or(std::string{}));
        one.found = core::standing_of(one.seen, *identity_, is_on_record);
        const bool has_seat =
            one.found->what == core::standing::armed || one.found->what == core::standing::quarantine;
        if (has_seat && has_other_seat(master))
        {
            one.found = core::judgement{core::standing::not_a_member};
        }
    }
}

bool guard::has_shown_other_group(std::size_t master) const
{
    switch (core::standing_of(members_[master]->seen, *identity_, true).what)
    {
    case core::standing::other_group:
    case core::standing::retired:
    case core::standing::unreadable:
        return true;
    default:
        return false;
    }
}

std::uint64_t guard::hint(clock::time_point now) const
{
    std::array<std::chrono::microseconds, max_masters> clocks{};
    std::size_t count = 0;
    for (std::size_t master = 0; master < members_.size(); ++master)
    {
        const net::connection& to = service_.connection_to(master);
        if (to.ready() && to.clock_readings().last())
        {
            const core::clock_reading& last = *to.clock_readings().last();
            clocks.at(count++) =
                last.theirs + std::chrono::duration_cast<std::chrono::microseconds>(now - last.sent);
        }
    }
    return core::counter_hint(std::span{clocks.data(), count}, largest_seen_);
}

net::answer guard::unarmed_vote(std::size_t master) const noexcept
{
    const net::connection& to = service_.connection_to(master);
    return to.ready()
               ? vote_of(*members_[master])
               : net::make_failed_vote(vote::unsent, to.last_failure().reason, to.last_failure().detail);
}

/// Returns the vote of a master that isn't armed, by the last look.
net::answer guard::vote_of(const member& unarmed) const noexcept
{
    if (unarmed.reason)
    {
        return net::make_failed_vote(vote::unsent, unarmed.reason, unarmed.detail.view());
    }
    if (unarmed.found && unarmed.found->what == core::standing::other_group &&
        unarmed.marker->group == identity_->name)
    {
        return net::make_failed_vote(
            vote::unsent, master_errc::other_group,
            "its group has another size, max_ttl or policy than a quorum has shown");
    }
    if (unarmed.found)
    {
        return net::make_failed_vote(vote::unsent, reason_of(unarmed.found->what));
    }
    if (unarmed.has_looked && unarmed.marker && unarmed.marker->state == core::marker_state::retired)
    {
        return net::make_failed_vote(vote::unsent, master_errc::other_group, "it has left its group");
    }
    if (!unarmed.has_looked)
    {
        return net::make_failed_vote(vote::unsent, master_errc::not_connected);
    }
    if (!unarmed.marker)
    {
        return net::make_failed_vote(vote::unsent, master_errc::not_provisioned);
    }
    return unarmed.difference.view().empty()
               ? net::make_failed_vote(
                     vote::unsent, master_errc::not_provisioned,
                     "fewer than a quorum of the masters show its group")
               : net::make_failed_vote(vote::unsent, master_errc::other_group, unarmed.difference.view());
}

/// Describes how a master's group differs from the one that is looked for; empty if it may be that one.
short_text guard::difference_of(const member& one) const
{
    std::string text;
    if (one.marker && !wanted_.empty() && one.marker->group != wanted_)
    {
        text = "it belongs to group " + one.marker->group;
    }
    else if (one.marker && one.marker->masters != members_.size())
    {
        text = "its group has " + std::to_string(one.marker->masters) + " masters, and this list " +
               std::to_string(members_.size());
    }
    return short_text{text};
}

guarded_examination guard::describe(std::size_t master) const
{
    const member& one = *members_[master];
    guarded_examination found;
    if (!is_armed(master))
    {
        const net::answer vote = vote_of(one);
        found.reason = vote.reason;
        found.detail = service_.redacted().show(vote.text).view();
    }
    if (one.has_looked && one.marker)
    {
        found.group = one.marker->group;
        found.seat = one.marker->seat;
        found.max_ttl = one.marker->max_ttl;
        found.masters = one.marker->masters;
        found.policy = one.marker->policy;
    }
    if (const std::optional<clock::time_point> ends = arming_.ends(master))
    {
        found.armed_in =
            std::chrono::ceil<std::chrono::milliseconds>(core::remaining(*ends, service_.strand().now()));
    }
    return found;
}

std::vector<guarded_advice> guard::advise() const
{
    std::vector<core::provision_sight> seen;
    std::vector<std::string> names;
    for (std::size_t master = 0; master < members_.size(); ++master)
    {
        const member& one = *members_[master];
        core::provision_sight& its = seen.emplace_back();
        its.is_known = one.has_looked && !one.reason;
        its.marker = one.seen.marker;
        its.members = one.record ? std::optional{core::to_text(*one.record)} : std::nullopt;
        its.has_floor = one.seen.has_floor;
        its.replication_id = one.seen.replication_id;
        its.is_master = one.seen.is_master;
        its.maxmemory_policy = "noeviction"; // Another one is a risk, which is reported.
        names.push_back(service_.names()->at(master));
    }
    return core::guarded_steps(seen, names, service_.options().drift_factor);
}

std::optional<net::voting_terms> guard::terms(
    std::size_t master, std::chrono::milliseconds ttl, std::uint64_t hint, clock::time_point now,
    net::answer& refused) const
{
    const net::connection& to = service_.connection_to(master);
    if (!to.ready() || !is_armed(master))
    {
        refused = unarmed_vote(master);
    }
    else if (is_suspected(master))
    {
        refused = net::make_failed_vote(vote::unsent, master_errc::clock_ahead);
    }
    else if (!to.clock_readings().last())
    {
        refused = net::make_failed_vote(vote::unsent, master_errc::no_permission, "it doesn't answer TIME");
    }
    else if (ttl > identity_->max_ttl)
    {
        refused = net::make_failed_vote(vote::unsent, errc::invalid_ttl);
    }
    else
    {
        return net::voting_terms{
            marker_of(master), hint,
            core::latest_at(
                *to.clock_readings().last(), now, service_.node_timeout(ttl),
                service_.options().drift_factor)};
    }
    return std::nullopt;
}

} // namespace redlock::manager
