// SPDX-License-Identifier: BSL-1.0
// A request to all masters.
#include "manager/round.hpp"

#include "manager/access.hpp"
#include "manager/guard.hpp"
#include "manager/lock_service.hpp"

#include <algorithm>
#include <utility>

namespace redlock::manager
{

round::round(lock_service& service, std::size_t masters) : ballot_{masters}, service_{service} {}

void round::begin(
    redlock::operation what, lease_state& lease, std::chrono::milliseconds ttl,
    runtime::async_event* listener)
{
    what_ = what;
    lease_ = &lease;
    ttl_ = ttl;
    node_timeout_ = service_.node_timeout(ttl);
    timed_out_ = asks_alone_ = respects_queue_ = false;
    queue_master_.reset();
    held_back_.reset();
    position_.reset();
    ballot_ = core::ballot{ballot_.masters()};
    failed_.clear();
    listener_ = listener;
    started_ = service_.strand().now();
    guarded_ = service_.guarded() != nullptr && what == redlock::operation::acquire;
    if (guarded_)
    {
        if (!tokens_)
        {
            tokens_ = std::make_unique<token_round>(service_, *this, ballot_.masters());
        }
        tokens_->begin(service_.guarded()->hint(started_));
    }
}

void round::ignore() noexcept
{
    listener_ = nullptr;
    if (guarded_)
    {
        tokens_->ignore();
    }
    // Without a listener the node timeout has no effect, except on an extension, on a pending notification, and on a
    // command that is held back.
    if (what_ != redlock::operation::extend && !unreported_ && !holds_back())
    {
        deadline_.disarm();
    }
}

void round::await_votes()
{
    asks_alone_ = false;
    if (ballot_.count(vote::pending) > 0)
    {
        service_.strand().arm(deadline_, service_.strand().now() + node_timeout_);
    }
    const bool explains_a_loss = what_ == redlock::operation::extend && lease_->kept;
    if (explains_a_loss || (service_.observed() && what_ != redlock::operation::acquire))
    {
        report_result(1);
    }
}

void round::await_queue_master(std::size_t master, const net::question& asked)
{
    queue_master_ = master;
    asked_ = &asked;
    member_ = asked.member;
    asks_alone_ = true;
    service_.strand().arm(deadline_, service_.strand().now() + node_timeout_);
}

void round::hold_back(std::size_t master, std::size_t first) noexcept
{
    held_back_ = {static_cast<std::uint8_t>(master), static_cast<std::uint8_t>(first)};
    service_.add(in_list_);
    if (ballot_.of(first) != vote::pending)
    {
        send_held_back();
    }
}

void round::send_held_back() noexcept
{
    held_back_->was_sent = true;
    elapsed_[held_back_->master] = service_.strand().now() - started_;
    in_list_.unlink();
    service_.send_held_back_release(*this, held_back_->master);
}

bool round::confirmed() const noexcept
{
    return ballot_.count(vote::granted) + ballot_.count(vote::denied) >= ballot_.quorum();
}

bool round::settled() const noexcept
{
    const std::size_t answered = ballot_.count(vote::granted) + ballot_.count(vote::denied);
    return answered + ballot_.count(vote::pending) < ballot_.quorum();
}

bool round::has_result() const noexcept
{
    switch (what_)
    {
    case redlock::operation::acquire:
        break;
    case redlock::operation::extend:
        return outcome() != core::verdict::undecided || timed_out_;
    case redlock::operation::release:
        return confirmed() || settled();
    }
    return outcome() == core::verdict::won ||
           (outcome() == core::verdict::lost && why_lost() != core::refusal::unknown);
}

error_code round::result() const noexcept
{
    switch (what_)
    {
    case redlock::operation::acquire:
        break;
    case redlock::operation::extend:
        if (const error_code why = lease_->why_not_extendable(service_.strand().now()))
        {
            return why;
        }
        if (outcome() != core::verdict::won)
        {
            return errc::no_quorum;
        }
        return lease_->confirmed() >= started_ ? error_code{} : error_code{errc::validity_exhausted};
    case redlock::operation::release:
        return confirmed() ? error_code{} : error_code{errc::unconfirmed};
    }
    if (outcome() == core::verdict::won)
    {
        return overtakes() ? errc::held_by_other : errc::validity_exhausted;
    }
    return why_lost() == core::refusal::held ? errc::held_by_other : errc::no_quorum;
}

void round::report_result(std::uint32_t number)
{
    unreported_ = true;
    number_ = number;
    if (what_ == redlock::operation::extend)
    {
        lease_->unreported.push_back(in_list_);
    }
    report_if_known();
}

void round::report_if_known()
{
    if (unreported_ && has_result())
    {
        report_now();
    }
}

void round::report_now()
{
    drop_report();
    // An extension that was overtaken by the release of its lease has no result.
    if (what_ == redlock::operation::extend && lease_->phase() == lease_phase::released)
    {
        return;
    }
    const error_code ended = result();
    const bool extended = what_ == redlock::operation::extend && !ended;
    const clock::duration validity =
        extended ? core::remaining(lease_->valid_until(), service_.strand().now()) : clock::duration::zero();
    // An older one may fail after a later one was confirmed.
    if (what_ == redlock::operation::extend && ended && lease_->kept && lease_->confirmed() < started_)
    {
        service_.keep_votes(*lease_, *this, ended);
    }
    if (service_.observed())
    {
        service_.notify_round(*this, ended, number_, validity);
    }
}

void round::drop_report() noexcept
{
    unreported_ = false;
    if (what_ == redlock::operation::extend) // Otherwise it may be a release that is still held back.
    {
        in_list_.unlink();
    }
}

bool round::quorum_permanently_unreachable() const noexcept
{
    std::size_t refused = 0;
    for (std::size_t master = 0; master < failed_.size(); ++master)
    {
        // Whether the queue master refuses a SET is unknown: it was sent a question.
        refused += master != queue_master_ && net::is_permanent(failed_[master].reason) ? 1U : 0U;
    }
    return ballot_.masters() - refused < ballot_.quorum();
}

std::vector<master_report> round::votes() const
{
    std::vector<master_report> votes(ballot_.masters());
    for (std::size_t master = 0; master < votes.size(); ++master)
    {
        master_report& one = votes[master];
        one.vote = ballot_.of(master);
        if (one.vote == vote::pending && timed_out_)
        {
            one = {vote::timed_out, node_timeout_, master_errc::timed_out, {}};
        }
        else if (one.vote != vote::pending)
        {
            one.elapsed = elapsed_[master];
            one.reason = failed_.empty() ? error_code{} : failed_[master].reason;
            one.detail = failed_.empty() ? short_text{} : failed_[master].detail;
        }
        if (guarded_)
        {
            tokens_->amend(master, one);
        }
    }
    return votes;
}

void round::describe(report& out) const
{
    out.fencing_token = guarded_ && outcome() == core::verdict::won ? tokens_->token() : std::nullopt;
    out.operation = what_;
    out.node_timeout = node_timeout_;
    detail::access::assign(out, service_.names(), votes());
}

void round::on_vote(std::size_t master, const net::answer& result, clock::time_point at) noexcept
{
    if (!ballot_.cast(master, result.vote))
    {
        return;
    }
    record(master, at - started_, result);
    if (ballot_.count(vote::pending) == 0)
    {
        deadline_.disarm();
    }
    if (guarded_)
    {
        on_guarded_vote(master, result);
    }
    if (what_ == redlock::operation::extend)
    {
        service_.on_extension_vote(*this, master);
    }
    if (holds_back() && held_back_->first == master)
    {
        send_held_back();
    }
    report_if_known();
    if (what_ == redlock::operation::release && (result.others_wait || service_.queues().any_contended()))
    {
        service_.note_contention(*lease_, master, result.others_wait);
    }
    if (master == queue_master_)
    {
        on_queue_vote(master, result);
        notify();
    }
    else if (is_worth_notifying())
    {
        notify();
    }
    else
    {
        // One of the next votes wakes the coroutine: prefetch its state.
        runtime::prefetch(listener_, 2 * runtime::cache_line);
    }
}

core::verdict round::guarded_outcome() const noexcept
{
    const core::verdict by_votes = ballot_.outcome();
    return by_votes == core::verdict::won ? tokens_->outcome(ballot_.count(vote::pending)) : by_votes;
}

/// Counts a vote towards the token. As soon as a quorum has granted, the counters are made equal.
void round::on_guarded_vote(std::size_t master, const net::answer& result)
{
    if (result.vote == vote::granted)
    {
        service_.guarded()->note_counter(result.counter);
        tokens_->add_grant(master, result.counter);
        if (listener_ != nullptr && ballot_.outcome() == core::verdict::won &&
            outcome() == core::verdict::undecided)
        {
            tokens_->raise();
        }
    }
    else if (net::is_guard_refusal(result))
    {
        service_.guarded()->look_again(master);
    }
}

void round::on_raised() noexcept
{
    report_if_known();
    notify();
}

void round::on_queue_vote(std::size_t master, const net::answer& result) noexcept
{
    position_ = result.position != nullptr ? std::optional{*result.position} : std::nullopt;
    waiter* const asker = service_.queues().find(member_.number);
    if (result.vote == vote::granted || result.vote == vote::denied)
    {
        service_.note_contention(*lease_, master, result.others_wait);
    }
    if (result.vote == vote::denied && asker != nullptr)
    {
        asker->sleep(); // An earlier message is out of date.
    }
    if (asks_alone_ && result.vote != vote::granted)
    {
        deadline_.disarm(); // No other master is asked.
    }
    // If the round was won before, no other code leaves the queue: the release of the lease doesn't name us. An earlier
    // question may have entered us if this one fails.
    const bool may_be_entered = position_ || (result.vote == vote::failed && member_.number != 0);
    if (may_be_entered && lease_->phase() != lease_phase::pending)
    {
        service_.leave_queue(lease_->resource(), ttl_, master, member_);
    }
}

/// Returns true if the listener has something to decide. Most votes change nothing.
bool round::is_worth_notifying() const noexcept
{
    switch (what_)
    {
    case redlock::operation::acquire:
        return outcome() != core::verdict::undecided;
    case redlock::operation::release:
        return confirmed() || settled();
    case redlock::operation::extend:
        break;
    }
    return true;
}

void round::record(std::size_t master, clock::duration elapsed, const net::answer& result)
{
    elapsed_[master] = elapsed;
    if (result.reason || !result.text.empty())
    {
        failed_.resize(ballot_.masters());
        failed_[master] = {result.reason, service_.redacted().show(result.text)};
    }
}

bool round::append_in_full(std::size_t master, std::string& out) const
{
    if (what_ == redlock::operation::acquire)
    {
        if (listener_ == nullptr)
        {
            return false;
        }
        if (guarded_)
        {
            net::answer refused;
            return service_.append_guarded(out, *this, master, net::script_form::text, refused);
        }
        net::append_ask(out, *lease_, *asked_, net::script_form::text);
        return true;
    }
    // An extension is useful on every master, even after a quorum has confirmed it, until the release begins.
    const bool wanted =
        what_ == redlock::operation::extend && !timed_out_ && lease_->phase() == lease_phase::held;
    if (wanted)
    {
        service_.append_extend(out, *lease_, ttl_, net::script_form::text);
    }
    return wanted;
}

void round::on_node_timeout()
{
    if (holds_back())
    {
        send_held_back();
    }
    // A release that was held back has its own node timeout.
    const bool waits = held_back_ && ballot_.of(held_back_->master) == vote::pending &&
                       service_.strand().now() < held_back_ends();
    const std::size_t held = waits ? held_back_->master : ballot_.masters();
    timed_out_ = !waits;
    // Votes of an extension count for as long as the lease is valid. All others are timed out.
    if (what_ != redlock::operation::extend)
    {
        const net::answer none = net::make_failed_vote(vote::timed_out, master_errc::timed_out);
        for (std::size_t master = 0; master < ballot_.masters(); ++master)
        {
            if (master != held && ballot_.cast(master, none.vote))
            {
                record(master, node_timeout_, none);
            }
        }
    }
    if (waits)
    {
        service_.strand().arm(deadline_, held_back_ends());
    }
    report_if_known();
    notify();
}

void round::notify() noexcept
{
    if (listener_ != nullptr)
    {
        listener_->notify();
    }
}

void round::recycle() noexcept
{
    deadline_.disarm();
    if (guarded_)
    {
        tokens_->ignore();
    }
    drop_report();
    in_list_.unlink();
    lease_ = {};
    service_.recycle(*this);
}

} // namespace redlock::manager
