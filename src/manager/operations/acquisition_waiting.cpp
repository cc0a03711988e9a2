// SPDX-License-Identifier: BSL-1.0
// The states of an acquire that waits between its rounds.
#include "core/backoff.hpp"
#include "core/validity.hpp"
#include "manager/operations/acquisition.hpp"

#include <cstdint>
#include <limits>

namespace redlock::manager
{

/// Returns the time until which an acquire may wait for its turn. One without any round has its round at that time,
/// early enough to be decided within `wait`.
clock::time_point acquisition::last_begin() const
{
    const clock::time_point ends = wait_ends();
    const clock::duration half = (ends - entry_.began()) / 2;
    return rounds_ > 0 ? ends : ends - std::min<clock::duration>(node_timeout(), half);
}

runtime::task<bool> acquisition::begin_next_round()
{
    const bool last = call_.once || rounds_ == call_.options.max_rounds || is_over() ||
                      is_refused_by_group() || votes_->quorum_permanently_unreachable();
    if (last || !start_waiting())
    {
        refusal_ = last ? error_code{} : errc::too_many_operations;
        give_back_round();
        co_return false;
    }
    if (votes_->queue_vote() == vote::pending)
    {
        co_await await_answer();
    }
    const std::optional<std::size_t> queue_master = service_.queue_master_of(call_.resource);
    const vote said = queue_master ? votes_->ballot().of(*queue_master) : vote::unsent;
    if (said == vote::granted || (said == vote::pending && votes_->queue_master() == queue_master))
    {
        co_return co_await rest(*queue_master);
    }
    // It may have connected since a round of plain SETs began.
    if (queue_master && (said != vote::unsent || votes_->queue_master() == queue_master))
    {
        pass_over_unless_answered(*queue_master, said);
    }
    give_back_round();
    losses_ = 0;
    overruled_.reset();
    co_return co_await wait_for_turn();
}

runtime::task<bool> acquisition::wait_for_turn()
{
    while (!operation.stopped())
    {
        // Read once: an acquire without any round must not end between two readings.
        const clock::time_point now = service_.strand().now();
        if (now >= last_begin())
        {
            break;
        }
        const bool is_entered = entry_.is_at_queue_master();
        const bool woken = entry_.woken().has_value();
        if (is_entered && (woken || is_due_at_head(now)))
        {
            begin_round_at_head(!woken);
            co_return true;
        }
        if (is_entered && now < entry_.ask_at())
        {
            const alarm_clock alarm{
                service_.strand(), operation.wake_event, std::min(entry_.ask_at(), last_begin())};
            co_await operation.wake_event;
            continue;
        }
        switch (co_await ask())
        {
        case reply::granted:
            begin_round_with_grant();
            co_return true;
        case reply::refused:
        case reply::missing:
            break;
        case reply::impossible:
            co_return co_await back_off();
        }
    }
    co_return begin_first_round();
}

/// Returns whether the first client in the queue asks all masters instead of only the queue master. That may have a key
/// which no other master has, such as that of a client that died before it had a quorum, and its refusals would hold up
/// the whole queue until that key expires. Such a round leaves the last one of `max_rounds` for a message.
bool acquisition::is_due_at_head(clock::time_point now) const
{
    const clock::time_point last = votes_ ? votes_->started() : entry_.began();
    return entry_.is_first() && now >= entry_.ask_at() && now - last >= core::queue_heartbeat / 2 &&
           rounds_ + 1 < call_.options.max_rounds.value_or(std::numeric_limits<std::uint32_t>::max());
}

/// Begins a round at the end of the wait if there was none. Its votes tell why the resource can't be locked.
bool acquisition::begin_first_round()
{
    const bool begins = rounds_ == 0 && !operation.stopped();
    if (begins)
    {
        begin_round();
    }
    return begins;
}

/// Asks only the queue master.
runtime::task<acquisition::reply> acquisition::ask()
{
    const std::optional<std::size_t> queue_master =
        is_refused_by_group() ? std::nullopt : service_.queue_master_of(call_.resource);
    entry_.leave_unless_at(queue_master);
    if (!queue_master)
    {
        co_return reply::impossible;
    }
    asked_ = service_.make_lease_state(call_.resource);
    question_ =
        service_.ask(*asked_, entry_.next_question_at(*queue_master), *queue_master, operation.wake_event);
    const clock::time_point until = last_begin();
    {
        const alarm_clock alarm{service_.strand(), operation.wake_event, until};
        while (question_->queue_vote() == vote::pending && service_.strand().now() < until &&
               !operation.stopped())
        {
            co_await operation.wake_event;
        }
    }
    const vote said = question_->queue_vote();
    if (said == vote::granted && !is_over())
    {
        entry_.drop();
        co_return reply::granted;
    }
    if (said == vote::denied && question_->position())
    {
        entry_.enter(*queue_master, *question_->position());
        co_return reply::refused;
    }
    // A refusal that has not entered us is no answer to the question.
    pass_over_unless_answered(*queue_master, said == vote::denied ? vote::failed : said);
    service_.give_back_and_leave(*asked_, *queue_master, entry_.member_at(*queue_master));
    entry_.drop();
    co_return reply::missing;
}

/// Waits for the queue master's answer to the question of a lost round, which the other votes have decided. Without it,
/// it is unknown whether we are in the queue, and a queue master that hangs would never be passed over. It comes at the
/// node timeout at the latest. A release ends the wait.
runtime::task<bool> acquisition::await_answer()
{
    const alarm_clock alarm{service_.strand(), operation.wake_event, wait_ends()};
    while (votes_->queue_vote() == vote::pending && !is_over() && !entry_.is_released())
    {
        co_await operation.wake_event;
    }
    co_return true;
}

/// Rests after a round that was lost although the queue master has granted it, or may have. If others have won it, we
/// keep our position, and are served first after the pause. A release ends it at once. If it had too few answers, or took
/// too long, the next one may end in the same way: others are served meanwhile.
runtime::task<bool> acquisition::rest(std::size_t queue_master)
{
    ++losses_;
    const clock::duration pause = core::pause_after_loss(losses_, took_, service_.random_number());
    if (const std::optional<std::size_t> asked = votes_->queue_master(); asked && asked != queue_master)
    {
        // The queue master has been replaced during the round. The question may have set the key at the former one, or
        // entered us there.
        service_.leave_queue(*held_, *asked, votes_->question()->member);
        entry_.drop();
    }
    entry_.leave_unless_at(queue_master);
    const bool lost_to_others =
        votes_->outcome() == core::verdict::lost && votes_->why_lost() != core::refusal::no_quorum;
    if (lost_to_others)
    {
        const auto whole =
            std::chrono::duration_cast<std::chrono::milliseconds>(pause) + std::chrono::milliseconds{1};
        service_.give_back_and_stay(*held_, queue_master, entry_.question_at(queue_master), whole);
        entry_.stay(queue_master);
    }
    else
    {
        service_.give_back_and_leave(*held_, queue_master, entry_.member_at(queue_master));
        entry_.drop();
    }
    const clock::time_point until = service_.strand().now() + pause;
    {
        const alarm_clock alarm{service_.strand(), operation.wake_event, std::min(until, wait_ends())};
        while (service_.strand().now() < until && !entry_.is_released() && !is_over())
        {
            co_await operation.wake_event;
        }
    }
    const core::ballot& ballot = votes_->ballot();
    const bool disagrees =
        ballot.of(queue_master) == vote::granted && ballot.count(vote::denied) >= ballot.quorum();
    if (overruled_.on_lost(queue_master, disagrees, service_.strand().now()))
    {
        overruled_.reset();
        service_.overrule(call_.resource, queue_master);
    }
    if (!is_over() && entry_.is_at_queue_master())
    {
        begin_round_at_head(false);
        co_return true;
    }
    co_return co_await wait_for_turn();
}

/// Waits for a random time because there is no queue master, and begins a round.
runtime::task<bool> acquisition::back_off()
{
    const clock::time_point now = service_.strand().now();
    clock::time_point next = now;
    if (rounds_ > 0)
    {
        const config& options = service_.options();
        const core::backoff_policy policy{options.retry_delay_min, options.retry_delay_max};
        next += core::backoff_delay(policy, rounds_, took_, service_.random_number());
    }
    const alarm_clock alarm{service_.strand(), operation.wake_event, std::min(next, wait_ends())};
    while (service_.strand().now() < next && !is_over())
    {
        co_await operation.wake_event;
    }
    if (is_over())
    {
        co_return begin_first_round();
    }
    begin_round();
    co_return true;
}

/// Chooses another queue master for a while if this one can't be relied on: for all resources if it is silent or has no room for
/// another command; for this one if it refuses the question, for example because of a foreign key in the place of the queue, or
/// if a short ttl leaves it less time than others give it.
void acquisition::pass_over_unless_answered(std::size_t queue_master, vote said)
{
    const bool is_patient = node_timeout() >= service_.node_timeout(core::max_ttl);
    if ((said == vote::timed_out && is_patient) || said == vote::unsent)
    {
        service_.queues().suspect(queue_master, service_.strand().now());
    }
    else if (said == vote::timed_out || said == vote::failed)
    {
        service_.overrule(call_.resource, queue_master);
    }
}

} // namespace redlock::manager
