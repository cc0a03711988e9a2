// SPDX-License-Identifier: BSL-1.0
// The next step of each master in guarded mode.
#include "core/guarded_steps.hpp"

#include "core/arming_plan.hpp"
#include "core/standing.hpp"

#include <redlock/vote.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace redlock
{

std::string_view to_string(guarded_step value) noexcept
{
    constexpr std::array<std::string_view, 14> names{
        "none",           "provision",        "finish_provision",
        "use_group_list", "use_latest_group", "use_recorded_name",
        "check_address",  "check_empty",      "wait_for_clients",
        "bring_back",     "mend_others",      "arm",
        "arm_again",      "check_version"};
    const auto index = static_cast<std::size_t>(value);
    return index < names.size() ? names[index] : "unknown";
}

} // namespace redlock

namespace redlock::core
{

namespace
{

using sights = std::vector<provision_sight>;

/// The time in which a client arms a master after the wait: its delay, and two looks.
constexpr std::chrono::milliseconds after_the_wait{3000};

/// Returns the marker of a master that hasn't left its group; empty if it has none.
std::optional<marker> member_marker(const provision_sight& seen)
{
    std::optional<marker> its = marker_in(seen);
    return its && its->state != marker_state::retired ? its : std::nullopt;
}

/// Returns whether a master shows the group of `one`, with the same values.
bool shows(const provision_sight& seen, const marker& one)
{
    const std::optional<marker> its = member_marker(seen);
    return its && is_of_group(*its, group_in(one));
}

/// Returns whether a master has answered, and has no marker.
bool is_blank(const provision_sight& seen)
{
    return seen.is_known && seen.is_master && !seen.marker;
}

/// The group that most masters of a list show.
class group_view
{
  public:
    group_view(
        std::span<const provision_sight> seen, const std::vector<std::string>& names, double drift_factor)
        : seen_{seen.begin(), seen.end()}, names_{names}
    {
        find();
        if (!group_)
        {
            return;
        }
        record_ = record_among(seen_, group_->group);
        fits_ = group_->masters == names_.size() && is_list_of(record_, names_);
        group_advice_.group = group_->group;
        if (record_)
        {
            group_advice_.lacking = without(record_->names, names_);
            group_advice_.unknown = without(names_, record_->names);
        }
        const auto wait = provision_wait(group_->max_ttl, drift_factor);
        decide(std::chrono::ceil<std::chrono::milliseconds>(wait) + after_the_wait);
    }

    guarded_advice advice_for(std::size_t master) const
    {
        guarded_advice one = group_advice_;
        one.step = step_of(master);
        if (one.step != group_advice_.step)
        {
            one.concerned.clear();
            one.within = {};
        }
        return one;
    }

  private:
    template <class Predicate>
    std::vector<std::string> names_of(Predicate is_one) const
    {
        std::vector<std::string> found;
        for (std::size_t master = 0; master < seen_.size(); ++master)
        {
            if (is_one(master))
            {
                found.push_back(names_[master]);
            }
        }
        return found;
    }

    std::size_t showing(std::span<const provision_sight> of, const marker& one) const
    {
        return static_cast<std::size_t>(
            std::count_if(of.begin(), of.end(), [&one](const auto& each) { return shows(each, one); }));
    }

    void find()
    {
        std::size_t most = 0;
        for (const provision_sight& each : seen_)
        {
            const std::optional<marker> candidate = member_marker(each);
            if (!candidate)
            {
                continue;
            }
            if (const std::size_t count = showing(seen_, *candidate); count > most)
            {
                most = count;
                group_ = candidate;
            }
        }
    }

    /// Returns whether a master of the group was armed: until then, all are in the quarantine of the run that makes it.
    bool is_in_use() const
    {
        return std::any_of(
            seen_.begin(), seen_.end(),
            [this](const provision_sight& each)
            {
                const std::optional<marker> its = member_marker(each);
                const bool is_new =
                    its && its->state == marker_state::quarantine && its->why == incarnation_end::created;
                return shows(each, *group_) && !is_new;
            });
    }

    judgement standing_in_group(const provision_sight& of) const
    {
        return standing_of(
            sight{of.marker, of.has_floor, of.replication_id, of.is_master}, group_in(*group_), true);
    }

    /// Returns whether a master votes: it is armed, and a quorum of the list shows its group.
    bool votes(const provision_sight& one) const
    {
        return group_->masters == names_.size() && standing_in_group(one).what == standing::armed &&
               showing(seen_, *group_) >= quorum_of(names_.size());
    }

    provision_plan plan(const sights& of, bool accepts_losses) const
    {
        return plan_arming(of, {.names = names_, .group = group_->group, .accepts_losses = accepts_losses});
    }

    /// Returns whether clients arm the masters that aren't armed.
    bool is_for_clients(sights of) const
    {
        const std::vector<std::uint32_t> seats = seats_of(of, group_->group, record_, names_);
        std::uint32_t kept = 0;
        for (std::size_t master = 0; master < of.size(); ++master)
        {
            provision_sight& each = of[master];
            std::optional<marker> its = marker_in(each);
            if (its && is_of_group(*its, group_in(*group_)))
            {
                its->seat = seats[master]; // Clients go by the name, and write the seat that belongs to it.
                each.marker = to_text(*its);
            }
            kept += each.is_known && has_kept_counters(standing_in_group(each)) ? 1U : 0U;
        }
        const provision_plan by_rule = plan(of, false);
        const bool is_left = std::any_of(
            by_rule.masters.begin(), by_rule.masters.end(),
            [](const provision_seat& each) { return each.found == provision_finding::in_service; });
        return is_left ||
               (kept >= blocking_set(group_->masters) && showing(of, *group_) >= quorum_of(of.size()));
    }

    /// Returns what would be seen if the masters that give no answer were back with their data: as they were, or restarted.
    sights with_all_back(bool restarted) const
    {
        sights all = seen_;
        const std::vector<std::uint32_t> seats = seats_of(all, group_->group, record_, names_);
        for (std::size_t master = 0; master < all.size(); ++master)
        {
            if (!all[master].is_known)
            {
                marker its = *group_;
                its.seat = seats[master];
                its.state = marker_state::armed;
                its.replication_id = std::string(replication_id_length, '0');
                all[master] = {};
                all[master].marker = to_text(its);
                all[master].has_floor = true;
                all[master].maxmemory_policy = "noeviction";
                all[master].replication_id = std::string(replication_id_length, restarted ? '1' : '0');
            }
        }
        return all;
    }

    bool helps_to_bring_back() const
    {
        const sights restarted = with_all_back(true);
        return is_for_clients(with_all_back(false)) || is_for_clients(restarted) ||
               plan(restarted, false).next == provision_step::proceed;
    }

    /// Decides about the group as a whole, if the list is right.
    void decide(std::chrono::milliseconds by_clients)
    {
        const auto blank = names_of([this](std::size_t master) { return is_blank(seen_[master]); });
        const auto away = names_of([this](std::size_t master) { return !seen_[master].is_known; });
        const provision_plan with_losses = plan(seen_, true);
        const auto preventing =
            names_of([&](std::size_t master) { return prevents_arming(with_losses.masters[master].found); });
        const auto advise = [this](guarded_step step, std::vector<std::string> concerned = {})
        {
            group_advice_.step = step;
            group_advice_.concerned = std::move(concerned);
        };
        if (!is_in_use())
        {
            advise(guarded_step::finish_provision);
        }
        else if (!fits_)
        {
            advise(guarded_step::use_group_list);
        }
        else if (!record_ && !blank.empty())
        {
            advise(guarded_step::check_empty, blank);
        }
        else if (is_for_clients(seen_))
        {
            advise(guarded_step::wait_for_clients);
            group_advice_.within = by_clients;
        }
        else if (plan(seen_, false).next == provision_step::proceed)
        {
            advise(guarded_step::arm);
        }
        else if (!away.empty() && helps_to_bring_back())
        {
            advise(guarded_step::bring_back, away);
        }
        else if (with_losses.next == provision_step::proceed)
        {
            advise(record_ ? guarded_step::arm_again : guarded_step::check_empty, blank);
        }
        else if (!preventing.empty())
        {
            advise(guarded_step::mend_others, preventing);
        }
        else if (!away.empty())
        {
            advise(guarded_step::bring_back, away);
        }
    }

    /// Returns the step of a master that shows the group, or no group at all.
    guarded_step step_of_member(std::size_t master) const
    {
        if (votes(seen_[master]))
        {
            return guarded_step::none;
        }
        const bool is_unknown = record_ && !seat_of(*record_, names_[master]);
        const bool is_concerned =
            std::find(group_advice_.concerned.begin(), group_advice_.concerned.end(), names_[master]) !=
            group_advice_.concerned.end();
        if (group_advice_.step == guarded_step::finish_provision)
        {
            return group_advice_.step;
        }
        if (is_unknown)
        {
            return is_blank(seen_[master]) ? guarded_step::check_address : guarded_step::use_recorded_name;
        }
        if (!fits_ && !record_ && is_blank(seen_[master]))
        {
            return guarded_step::check_address;
        }
        return group_advice_.step == guarded_step::mend_others && is_concerned ? guarded_step::none
                                                                               : group_advice_.step;
    }

    guarded_step step_of(std::size_t master) const
    {
        const provision_sight& its = seen_[master];
        if (!its.is_known || !its.is_master)
        {
            return guarded_step::none;
        }
        const std::optional<marker> shown = marker_in(its);
        if (its.marker && !shown)
        {
            return guarded_step::check_version;
        }
        if (shown && shown->state == marker_state::retired)
        {
            const bool is_moving = group_ && shown->group == group_->group &&
                                   group_advice_.step == guarded_step::finish_provision;
            return is_moving ? guarded_step::finish_provision : guarded_step::use_latest_group;
        }
        if (!group_)
        {
            return guarded_step::provision;
        }
        return is_blank(its) || shows(its, *group_) ? step_of_member(master) : guarded_step::none;
    }

    sights seen_;
    const std::vector<std::string>& names_;
    std::optional<marker> group_; // One of its markers.
    std::optional<member_record> record_;
    bool fits_ = false; // The list is that of the group, as far as it is known.
    guarded_advice group_advice_;
};

} // namespace

std::vector<guarded_advice> guarded_steps(
    std::span<const provision_sight> seen, const std::vector<std::string>& names, double drift_factor)
{
    const group_view all{seen, names, drift_factor};
    std::vector<guarded_advice> steps;
    for (std::size_t master = 0; master < names.size(); ++master)
    {
        steps.push_back(all.advice_for(master));
    }
    return steps;
}

} // namespace redlock::core
