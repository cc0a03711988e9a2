// SPDX-License-Identifier: BSL-1.0
// The rounds of an acquire, and its completion.
#include "manager/operations/acquisition.hpp"

#include "manager/access.hpp"

#include <exception>
#include <memory>
#include <utility>
#include <variant>

namespace redlock::manager
{

void acquisition::begin_round()
{
    ++rounds_;
    held_ = service_.make_lease_state(call_.resource);
    const std::optional<std::size_t> queue_master =
        is_strict() ? service_.queue_master_of(call_.resource) : std::nullopt;
    if (!queue_master)
    {
        votes_ = service_.send_sets(*held_, call_.options.ttl, operation.wake_event);
        return;
    }
    if (!call_.once)
    {
        start_waiting(); // Without room, the question doesn't enter us in the queue.
    }
    entry_.leave_unless_at(queue_master);
    begin_round_with_question(*queue_master);
    votes_->respect_queue();
}

void acquisition::begin_round_with_question(std::size_t queue_master)
{
    votes_ = service_.send_sets_and_ask(
        *held_, entry_.next_question_at(queue_master), queue_master, operation.wake_event);
}

void acquisition::begin_round_at_head(bool at_heartbeat)
{
    ++rounds_;
    at_heartbeat_ = at_heartbeat;
    held_ = service_.make_lease_state(call_.resource);
    begin_round_with_question(entry_.master());
}

void acquisition::begin_round_with_grant()
{
    ++rounds_;
    held_ = std::move(asked_);
    votes_ = std::move(question_);
    service_.send_other_sets(*votes_);
}

runtime::task<bool> acquisition::await_queue_master()
{
    constexpr clock::duration least = std::chrono::microseconds{500};
    const clock::time_point now = service_.strand().now();
    const clock::time_point until = now + std::max(least, (now - votes_->started()) / 2);
    const alarm_clock alarm{service_.strand(), operation.wake_event, until};
    while (votes_->queue_vote() == vote::pending && votes_->outcome() == core::verdict::won &&
           service_.strand().now() < until && !operation.stopped())
    {
        co_await operation.wake_event;
    }
    co_return votes_->queue_vote() != vote::pending;
}

void acquisition::note_decision()
{
    took_ = service_.strand().now() - votes_->started();
    if (const std::optional<std::size_t> asked = votes_->queue_master())
    {
        pass_over_unless_answered(*asked, votes_->queue_vote());
    }
}

bool acquisition::try_complete_with_lease()
{
    if (operation.stopped() || votes_->outcome() != core::verdict::won || votes_->overtakes())
    {
        return false;
    }
    const clock::time_point until =
        core::valid_until(votes_->started(), call_.options.ttl, service_.options().drift_factor);
    const clock::duration left = core::remaining(until, service_.strand().now());
    const auto schedule = [this]
    { return service_.schedule(call_.options.ttl, call_.keep->extend_every, call_.keep->stop_margin); };
    clock::duration least = call_.options.min_validity;
    if (call_.keep)
    {
        least = std::max<clock::duration>(least, schedule().stop_margin); // Else it would be lost at once.
    }
    if (left <= least)
    {
        return false;
    }
    if (at_heartbeat_ && votes_->refused_without_others())
    {
        // It has a key that belongs to no holder, and would refuse each of our questions.
        service_.overrule(call_.resource, *votes_->queue_master());
    }
    note_place();
    leave_queue();
    held_->fencing_token = votes_->fencing_token();
    held_->hold(until, votes_->started());
    service_.keep(*held_);
    if (call_.keep)
    {
        service_.start_keeping(*held_, schedule(), call_.keep->max_hold);
    }
    else if (service_.observed())
    {
        service_.watch_expiry(*held_);
    }
    if (service_.observed())
    {
        service_.notify_round(*votes_, {}, rounds_, left);
    }
    finish({}, left);
    return true;
}

void acquisition::report_round()
{
    const core::verdict outcome = votes_->outcome();
    const bool lost =
        outcome == core::verdict::lost || (outcome == core::verdict::won && !operation.stopped());
    if (service_.observed() && lost)
    {
        votes_->report_result(rounds_);
    }
}

/// Updates our place by the answer to the question of the last round. Called at most once after its decision.
void acquisition::note_place()
{
    const std::optional<std::size_t> asked = votes_->queue_master();
    if (!asked)
    {
        return;
    }
    switch (votes_->queue_vote())
    {
    case vote::denied:
        if (votes_->position())
        {
            entry_.enter(*asked, *votes_->position());
        }
        break;
    case vote::granted:
    case vote::pending: // If it refuses or fails later, the round leaves the queue.
        entry_.drop();
        break;
    case vote::timed_out:
    case vote::failed:
    case vote::unsent:
        entry_.stay(*asked); // This question or an earlier one may have entered us.
        break;
    }
}

/// Releases everything that the last round sent, including to masters that seem to have refused.
void acquisition::give_back_round()
{
    note_place();
    const std::optional<std::size_t> asked = votes_->queue_master();
    const std::optional<std::size_t> queue_master = asked ? asked : service_.queue_master_of(call_.resource);
    if (!queue_master || votes_->ballot().of(*queue_master) == vote::denied)
    {
        service_.give_back(*held_);
        return;
    }
    const bool may_be_entered = asked.has_value() && entry_.is_waiting();
    service_.give_back_and_leave(
        *held_, *queue_master, may_be_entered ? std::optional{votes_->question()->member} : std::nullopt);
    if (may_be_entered)
    {
        entry_.drop();
    }
}

runtime::task<error_code> acquisition::reason()
{
    while (votes_ && !refusal_ && !votes_->has_result() && !operation.stopped())
    {
        co_await operation.wake_event;
        note_decision();
    }
    if (operation.stopped())
    {
        co_return operation.stopped();
    }
    co_return refusal_ ? refusal_ : votes_->result();
}

void acquisition::fail(error_code why)
{
    if (call_.out != nullptr && !votes_)
    {
        *call_.out = report{};
    }
    finish(operation.stopped() ? operation.stopped() : why, {});
}

void acquisition::refuse(error_code why, std::string complaint)
{
    if (call_.out != nullptr)
    {
        *call_.out = report{};
    }
    finish(why, {}, std::move(complaint));
}

void acquisition::describe(
    report& out, error_code result, clock::duration validity, std::string complaint) const
{
    out.argument_error = std::move(complaint);
    out.result = result;
    out.rounds = rounds_;
    out.validity = validity;
    out.elapsed = took_;
    out.queue = entry_.last_position();
    if (votes_)
    {
        votes_->describe(out);
    }
}

void acquisition::finish(error_code result, clock::duration validity, std::string complaint)
{
    if (call_.out != nullptr)
    {
        describe(*call_.out, result, validity, complaint);
    }
    lease won = result ? lease{} : detail::access::make_lease(std::move(held_));
    if (auto* const plain = std::get_if<detail::completion<void(error_code, lease)>>(&call_.done))
    {
        service_.complete(*plain, result, std::move(won));
        return;
    }
    std::exception_ptr thrown;
    if (result)
    {
        const auto said = std::make_unique<report>();
        describe(*said, result, validity, std::move(complaint));
        thrown = std::make_exception_ptr(lock_error{result, call_.resource, said->to_string()});
    }
    service_.complete(
        std::get<detail::completion<void(std::exception_ptr, lease)>>(call_.done), std::move(thrown),
        std::move(won));
}

} // namespace redlock::manager
