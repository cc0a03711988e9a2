// SPDX-License-Identifier: BSL-1.0
// Guarded mode: quarantine and arming.
#include "manager/arming.hpp"

#include "core/fencing.hpp"
#include "core/provision_plan.hpp"
#include "core/standing.hpp"
#include "manager/guard.hpp"
#include "manager/lock_service.hpp"
#include "net/arming_scripts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace redlock::manager
{

namespace
{

/// The managers end a quarantine one after the other, within this time.
constexpr std::chrono::milliseconds longest_delay{1000};

constexpr std::uint32_t bit_of(std::size_t master) noexcept
{
    return std::uint32_t{1} << master;
}

/// Returns whether another client, or another incarnation, came first: the next look shows it.
bool is_out_of_date(const net::arming_reply& said) noexcept
{
    return said.refusal == net::guard_differs || said.refusal == net::incarnation_differs;
}

} // namespace

arming::arming(lock_service& service, guard& of) : service_{service}, guard_{of}
{
    for (std::size_t master = 0; master < service.options().masters.size(); ++master)
    {
        masters_.push_back(std::make_unique<quarantine>(*this, master));
    }
}

void arming::reconsider()
{
    for (std::size_t master = 0; master < masters_.size(); ++master)
    {
        reconsider(master);
    }
    watch();
}

void arming::reconsider(std::size_t master)
{
    quarantine& one = *masters_[master];
    const std::optional<core::judgement>& found = guard_.found(master);
    if (!found)
    {
        return;
    }
    switch (found->what)
    {
    case core::standing::forgetful:
        one.forget();
        begin(master, found->why);
        break;
    case core::standing::quarantine:
        one.wait_for(guard_.marker_of(master));
        one.by_clock = one.by_clock || may_use_clock(one);
        if (!one.is_busy() && guard_.record() && guard_.looked_at(master) >= one.ends &&
            !guard_.is_suspected(master) && one.can_be_armed())
        {
            one.count();
        }
        break;
    case core::standing::armed:
        one.forget();
        one.was_refused = false;
        break;
    default:
        one.forget();
        break;
    }
}

bool arming::waits_for(std::size_t master, std::string_view marker) const noexcept
{
    const quarantine& one = *masters_[master];
    return !one.text.empty() && one.text == marker;
}

void arming::on_down(std::size_t master) noexcept
{
    masters_[master]->was_refused = false;
}

std::optional<clock::time_point> arming::since(std::size_t master) const noexcept
{
    const quarantine& one = *masters_[master];
    return one.text.empty() ? std::nullopt : std::optional{one.since};
}

std::optional<clock::time_point> arming::ends(std::size_t master) const noexcept
{
    const quarantine& one = *masters_[master];
    return one.text.empty() ? std::nullopt : std::optional{one.ends};
}

void arming::begin(std::size_t master, core::incarnation_end why)
{
    quarantine& one = *masters_[master];
    const std::optional<core::member_record>& record = guard_.record();
    const std::optional<std::uint32_t> seat =
        record ? core::seat_of(*record, service_.names()->at(master)) : std::nullopt;
    if (one.is_busy() || !seat)
    {
        return;
    }
    const core::guarded_group& group = *guard_.identity();
    const core::sight& seen = guard_.seen(master);
    one.begin(
        core::marker{
            .group = group.name,
            .seat = *seat,
            .masters = group.masters,
            .max_ttl = group.max_ttl,
            .policy = group.policy,
            .state = core::marker_state::quarantine,
            .why = why,
            .nonce = fmt::format("{:016x}", service_.random_number()),
            .replication_id = seen.replication_id},
        seen.marker.value_or(std::string{}));
}

/// Returns whether a master of the list shows that the group has changed. The last look that was answered counts, however old it
/// is, and whether or not the master can still be reached: those at the other masters may have been answered first.
bool arming::sees_other_group() const
{
    for (std::size_t master = 0; master < masters_.size(); ++master)
    {
        if (guard_.has_shown_other_group(master))
        {
            return true;
        }
    }
    return false;
}

/// Returns whether a master may be armed by the clock: a quorum of masters, this one included, were seen unarmed since its
/// quarantine began, each with the marker of a server that was restarted with its data, and no master belongs to another group.
bool arming::may_use_clock(const quarantine& of) const
{
    if (guard_.identity()->policy != core::arming_policy::clocks || sees_other_group())
    {
        return false;
    }
    std::size_t restarted = 0;
    for (std::size_t master = 0; master < masters_.size(); ++master)
    {
        const std::optional<core::judgement>& found = guard_.found(master);
        if (!found || guard_.looked_at(master) < of.since)
        {
            continue;
        }
        switch (found->what)
        {
        case core::standing::forgetful:
        case core::standing::quarantine:
            restarted += found->why == core::incarnation_end::stale ? 1U : 0U;
            break;
        default:
            break;
        }
    }
    const std::optional<core::marker> own = core::parse_marker(of.text);
    return own && own->why == core::incarnation_end::stale && restarted >= quorum_of(masters_.size());
}

/// Looks at the masters whose wait is over.
void arming::on_waited()
{
    const clock::time_point now = service_.strand().now();
    for (std::size_t master = 0; master < masters_.size(); ++master)
    {
        const quarantine& one = *masters_[master];
        if (!one.text.empty() && one.ends <= now && guard_.looked_at(master) < one.ends)
        {
            guard_.look_again(master);
        }
    }
    watch();
}

/// Arms the deadline for the next wait that ends.
void arming::watch()
{
    const clock::time_point now = service_.strand().now();
    std::optional<clock::time_point> next;
    for (const auto& each : masters_)
    {
        if (!each->text.empty() && each->ends > now)
        {
            next = std::min(next.value_or(each->ends), each->ends);
        }
    }
    if (next)
    {
        service_.strand().arm(next_, *next);
    }
}

void arming::report_refusal(std::size_t master, std::string why)
{
    if (!std::exchange(masters_[master]->was_refused, true))
    {
        service_.warn(master, risk::arming_refused, std::move(why));
    }
}

void arming::quarantine::begin(core::marker begun, const std::string& seen)
{
    step_ = step::beginning;
    std::string command;
    net::append_quarantine(
        command, of_.guard_.keys(), seen, begun, of_.service_.options().masters[index_].database(),
        *of_.guard_.record(), net::script_form::text);
    send(index_, command);
}

void arming::quarantine::wait_for(const std::string& seen)
{
    if (text == seen)
    {
        return;
    }
    lock_service& service = of_.service_;
    const auto delay =
        std::chrono::microseconds{service.random_number() % std::chrono::microseconds{longest_delay}.count()};
    text = seen;
    since = service.strand().now();
    ends =
        since + core::provision_wait(of_.guard_.identity()->max_ttl, service.options().drift_factor) + delay;
    by_clock = false;
    of_.guard_.on_quarantine(index_, ends);
}

void arming::quarantine::forget() noexcept
{
    text.clear();
}

void arming::quarantine::send(std::size_t master, const std::string& command)
{
    ++pending_;
    of_.service_.connection_to(master).send_query(command, *this, of_.service_.strand().now());
}

arming::floor_source arming::quarantine::floor_with(std::size_t kept, std::size_t others) const
{
    const std::size_t masters = of_.masters_.size();
    if (kept >= core::blocking_set(static_cast<std::uint32_t>(masters)))
    {
        return floor_source::counters;
    }
    const bool shows_clock = of_.service_.connection_to(index_).clock_readings().last().has_value();
    const bool is_by_clock =
        by_clock && !of_.sees_other_group() && kept + others >= quorum_of(masters) && shows_clock;
    return is_by_clock ? floor_source::clock : floor_source::none;
}

/// Returns whether the master is armed if all masters that would be asked show their counters. While an operator has to arm the
/// others, for example, no client asks for them.
bool arming::quarantine::can_be_armed() const
{
    std::size_t kept = 0;
    std::size_t others = 0;
    for (std::size_t master = 0; master < of_.masters_.size(); ++master)
    {
        if (is_asked(master))
        {
            (core::has_kept_counters(*of_.guard_.found(master)) ? kept : others) += 1;
        }
    }
    return floor_with(kept, others) != floor_source::none;
}

bool arming::quarantine::is_asked(std::size_t master) const
{
    const std::optional<core::judgement>& found = of_.guard_.found(master);
    return found && (core::has_kept_counters(*found) || found->what == core::standing::quarantine);
}

/// Asks all masters of the group for their largest counters.
void arming::quarantine::count()
{
    step_ = step::counting;
    counted_for_ = text;
    of_kept_ = of_others_ = 0;
    largest_ = largest_of_kept_ = 0;
    count_error_.clear();
    asked_kept_ = 0;
    const net::vote_sink_ptr self{this};
    ++pending_; // Until all are asked: one that can't be asked answers at once.
    for (std::size_t master = 0; master < of_.masters_.size(); ++master)
    {
        if (is_asked(master))
        {
            const bool has_kept = core::has_kept_counters(*of_.guard_.found(master));
            asked_kept_ |= has_kept ? bit_of(master) : 0U;
            std::string command;
            net::append_largest_counter(
                command, of_.guard_.keys(), of_.guard_.marker_of(master), net::script_form::text);
            send(master, command);
        }
    }
    if (--pending_ == 0)
    {
        on_counted();
    }
}

/// Arms the master if enough counters are known. If those that have kept theirs meet every quorum, they include each token that
/// was issued. Otherwise, if too many masters were restarted, the clock stands for those that are lost: see
/// docs/decisions/0024-guarded-rounds-and-arming.md.
void arming::quarantine::on_counted()
{
    if (counted_for_ != text)
    {
        return; // Another quarantine has begun meanwhile.
    }
    switch (floor_with(of_kept_, of_others_))
    {
    case floor_source::counters:
        arm(std::max<std::uint64_t>(largest_of_kept_, 1));
        break;
    case floor_source::clock:
    {
        const core::clock_reading& last = *of_.service_.connection_to(index_).clock_readings().last();
        arm(std::max(largest_, core::floor_by_clock(last, of_.service_.strand().now())));
        break;
    }
    case floor_source::none:
        if (!count_error_.empty())
        {
            of_.report_refusal(index_, count_error_);
        }
        break;
    }
}

void arming::quarantine::arm(std::uint64_t floor)
{
    const std::optional<core::marker> waited_for = core::parse_marker(text);
    const std::optional<core::member_record>& record = of_.guard_.record();
    if (!waited_for || !record || of_.guard_.is_suspected(index_))
    {
        return;
    }
    step_ = step::arming;
    std::string command;
    net::append_arm(command, of_.guard_.keys(), *waited_for, floor, *record, net::script_form::text);
    send(index_, command);
}

void arming::quarantine::on_vote(std::size_t, const net::answer&, clock::time_point) noexcept
{
    --pending_;
    if (step_ == step::counting && pending_ == 0)
    {
        on_counted();
    }
}

bool arming::quarantine::on_reply(std::size_t master, const resp::reply& reply) noexcept
{
    --pending_;
    const net::arming_reply said =
        step_ == step::beginning ? net::read_quarantine(reply) : net::read_counter(reply);
    if (said.reason == master_errc::protocol_error)
    {
        return false;
    }
    if (step_ == step::counting)
    {
        const bool has_kept = (asked_kept_ & bit_of(master)) != 0;
        if (!said.reason)
        {
            (has_kept ? of_kept_ : of_others_) += 1;
            largest_ = std::max(largest_, said.counter);
            largest_of_kept_ = has_kept ? std::max(largest_of_kept_, said.counter) : largest_of_kept_;
        }
        else if (said.error != core::server_error::none)
        {
            count_error_ = fmt::format(
                "{} doesn't show its largest counter: {}", of_.service_.names()->at(master), said.detail);
        }
        if (pending_ == 0)
        {
            on_counted();
        }
        return true;
    }
    // What is refused, or out of date for the second time, is tried again after the next look at its interval: at once, it
    // would be answered in the same way.
    const bool was_out_of_date = std::exchange(was_out_of_date_, is_out_of_date(said));
    if (said.reason && !was_out_of_date_)
    {
        on_refused(said);
    }
    else if (!was_out_of_date_ || !was_out_of_date)
    {
        of_.guard_.look_again(index_);
    }
    return true;
}

void arming::quarantine::on_refused(const net::arming_reply& said)
{
    std::string_view why = said.detail;
    switch (said.refusal)
    {
    case net::databases_unknown:
        why = "there may be markers in databases that it doesn't let this user select";
        break;
    case net::may_evict:
        why = "maxmemory-policy isn't noeviction, so that its markers and counters can vanish";
        break;
    default:
        break;
    }
    of_.report_refusal(index_, std::string{why});
}

} // namespace redlock::manager
