// SPDX-License-Identifier: BSL-1.0
// Acquire and try_acquire: rounds until one succeeds or no further one is allowed. Between rounds, an acquire waits in
// the queue of the resource.
#include "core/backoff.hpp"
#include "core/queue_timing.hpp"
#include "manager/access.hpp"
#include "manager/lock_service.hpp"
#include "manager/operations/acquire_check.hpp"
#include "manager/operations/operations.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

namespace redlock::manager
{

namespace
{

/// The state of an acquire across its rounds.
///
/// The coroutine `acquire` below drives it: `wait_for_turn` and `begin_next_round` wait as long as necessary and begin a
/// round, or return that there is none; `acquire` waits while the round is undecided, and calls
/// `try_complete_with_lease`. It is woken by votes, by messages, by its alarms and by `active_operation::stop`, and
/// checks all conditions again after each wake.
///
/// An acquire that waits is in one of these states, each of which is a function:
///
/// - *asking* (`ask`): only the queue master is asked. If it grants, the round begins.
/// - *waiting* (`wait_for_turn`): the queue master has entered us. We wait for its message, or ask again.
/// - *heading* (`begin_round_at_head`): after a message. The queue master is asked and all others are sent a SET at once.
/// - *resting* (`rest`): the round was lost although the queue master granted it. We keep our position if other clients
///   have won it, and give way otherwise.
/// - *backing off* (`back_off`): there is no queue master.
class acquisition
{
  public:
    acquisition(lock_service& service, acquire_call& call)
        : operation{service, call.id}, service_{service}, call_{call}, began_{service.strand().now()}
    {
    }

    active_operation operation;

    /// For the frames of the coroutines below.
    runtime::scheduler& strand() noexcept { return service_.strand(); }

    /// Returns the time until which the first round waits for connections, unless it is woken.
    clock::time_point first_round_at() const
    {
        const clock::time_point at = service_.first_round_at(node_timeout());
        return call_.once ? at : std::min(at, wait_ends());
    }

    /// Returns whether the first round waits for a grant of the queue master, because other clients were seen to wait.
    bool begins_in_queue()
    {
        return service_.is_contended(call_.resource) && !call_.once && call_.options.max_rounds != 1U &&
               service_.strand().now() < last_begin() && start_waiting();
    }

    void begin_round()
    {
        ++rounds_;
        held_ = service_.make_lease_state(call_.resource);
        const std::optional<std::size_t> queue_master =
            is_strict() ? service_.queue_master_of(*held_) : std::nullopt;
        if (!queue_master)
        {
            votes_ = service_.send_sets(*held_, call_.options.ttl, operation.wake_event);
            return;
        }
        if (!call_.once)
        {
            start_waiting(); // Without room, the question doesn't enter us in the queue.
        }
        begin_round_with_question(*queue_master);
        votes_->respect_queue();
    }

    bool is_strict() const noexcept { return service_.options().order == order::strict; }
    bool undecided() const { return votes_->outcome() == core::verdict::undecided && !operation.stopped(); }

    /// In strict order, the answer of the queue master counts for more than a quorum. Waits for it after the decision,
    /// for half of what the round took. Returns whether it has come.
    runtime::task<bool> await_queue_master()
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

    /// Records for the report how long the last round took, and the fault of a queue master that gave no answer.
    void note_decision()
    {
        took_ = service_.strand().now() - votes_->started();
        if (const std::optional<std::size_t> asked = votes_->queue_master())
        {
            pass_over_unless_answered(*asked, votes_->queue_vote());
        }
    }

    /// Completes with a lease if the round was won and enough validity remains. The remaining validity is computed
    /// last, so that any delay of this process is included.
    bool try_complete_with_lease()
    {
        if (operation.stopped() || votes_->outcome() != core::verdict::won || votes_->overtakes())
        {
            return false;
        }
        const clock::time_point until =
            core::valid_until(votes_->started(), call_.options.ttl, service_.options().drift_factor);
        const clock::duration left = core::remaining(until, service_.strand().now());
        if (left <= call_.options.min_validity)
        {
            return false;
        }
        note_place();
        leave_queue();
        held_->hold(until, votes_->started());
        service_.keep(*held_);
        if (call_.keep)
        {
            service_.start_keeping(*held_, call_.keep->schedule, call_.keep->max_hold);
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

    /// Waits after a lost round until the next one may begin, and begins it. Returns false if there is none.
    runtime::task<bool> begin_next_round()
    {
        const bool last = call_.once || rounds_ == call_.options.max_rounds || is_over() ||
                          votes_->quorum_permanently_unreachable();
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
        const std::optional<std::size_t> queue_master = service_.queue_master_of(*held_);
        const vote said = queue_master ? votes_->ballot().of(*queue_master) : vote::unsent;
        if (said == vote::granted || (said == vote::pending && votes_->queue_master() == queue_master))
        {
            co_return co_await rest(*queue_master);
        }
        if (queue_master)
        {
            pass_over_unless_answered(*queue_master, said);
        }
        give_back_round();
        losses_ = 0;
        overruled_.reset();
        co_return co_await wait_for_turn();
    }

    /// Waits in the queue until the next round may begin, and begins it. Returns false at the end of `wait`.
    runtime::task<bool> wait_for_turn()
    {
        while (!operation.stopped())
        {
            const clock::time_point now = service_.strand().now();
            if (rounds_ == 0 && now >= last_begin())
            {
                begin_round();
                co_return true;
            }
            if (is_over())
            {
                break;
            }
            if (has_place() && waiter_->woken())
            {
                begin_round_at_head();
                co_return true;
            }
            if (has_place() && now < ask_at_)
            {
                const alarm_clock alarm{
                    service_.strand(), operation.wake_event, std::min(ask_at_, last_begin())};
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
        co_return false;
    }

    /// Leaves the queue if we are in one.
    void leave_queue()
    {
        if (has_connection_of_place())
        {
            service_.leave_queue(call_.resource, place_->master, place_->member);
        }
        place_.reset();
    }

    /// Returns the error to complete with, after `begin_next_round` has found no further round. Waits until the reason of
    /// the last round is known, at its node timeout at the latest; otherwise a resource that is held might be reported as
    /// `no_quorum`.
    runtime::task<error_code> reason()
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

    void fail(error_code why)
    {
        if (call_.out != nullptr && !votes_)
        {
            *call_.out = report{};
        }
        finish(operation.stopped() ? operation.stopped() : why, {});
    }

    /// Fails before the first round.
    void refuse(error_code why, std::string complaint = {})
    {
        if (call_.out != nullptr)
        {
            *call_.out = report{};
            call_.out->argument_error = complaint;
        }
        finish(why, {}, std::move(complaint));
    }

    /// Notifies the observer of a lost round as soon as the reason is known.
    void report_round()
    {
        const core::verdict outcome = votes_->outcome();
        const bool lost =
            outcome == core::verdict::lost || (outcome == core::verdict::won && !operation.stopped());
        if (service_.observed() && lost)
        {
            votes_->report_to_observer(rounds_);
        }
    }

  private:
    /// Our entry in the queue of the resource.
    struct place
    {
        std::size_t master;
        std::uint64_t connection; // A reconnect may have ended the queue, or our subscription.
        net::queue_member member;
    };

    enum class reply : std::uint8_t
    {
        granted,   // The queue master has set the key.
        refused,   // It has entered us in the queue.
        missing,   // It gave no answer in time, or `wait` has ended.
        impossible // There is no queue master.
    };

    clock::time_point wait_ends() const { return core::later(began_, call_.options.wait.value()); }
    bool is_over() const { return operation.stopped() || service_.strand().now() >= wait_ends(); }
    std::chrono::milliseconds node_timeout() const { return service_.node_timeout(call_.options.ttl); }
    /// Chooses another queue master for a while if this one can't be relied on: for all resources if it is silent, for
    /// this one if it refuses the question, for example because of a foreign key in the place of the queue.
    void pass_over_unless_answered(std::size_t queue_master, vote said)
    {
        if (said == vote::timed_out)
        {
            service_.queues().suspect(queue_master, service_.strand().now());
        }
        else if (said == vote::failed || said == vote::unsent)
        {
            service_.overrule(call_.resource, queue_master);
        }
    }

    /// Waits for the queue master's answer to the question of a lost round, which the other votes have decided. Without
    /// it, it is unknown whether we are in the queue, and a queue master that hangs would never be passed over. It comes
    /// at the node timeout at the latest. A release ends the wait.
    runtime::task<bool> await_answer()
    {
        const alarm_clock alarm{service_.strand(), operation.wake_event, wait_ends()};
        while (votes_->queue_vote() == vote::pending && !is_over() &&
               waiter_->woken() != net::wake_reason::released)
        {
            co_await operation.wake_event;
        }
        co_return true;
    }

    /// Returns the time until which an acquire may wait for its turn. One without any round has its round at that time,
    /// early enough to be decided within `wait`: its votes tell why the resource can't be locked.
    clock::time_point last_begin() const
    {
        const clock::time_point ends = wait_ends();
        const clock::duration half = (ends - began_) / 2;
        return rounds_ > 0 ? ends : ends - std::min<clock::duration>(node_timeout(), half);
    }

    /// Counts as a waiting client from now on. Returns false if there are too many.
    bool start_waiting()
    {
        if (!waiter_ && service_.queues().has_room())
        {
            waiter_.emplace(service_.queues(), operation.wake_event);
        }
        return waiter_.has_value();
    }

    place place_at(std::size_t master) const
    {
        return {
            master, service_.connection_number(master),
            service_.member_at(master, waiter_ ? waiter_->number() : 0)};
    }
    bool has_connection_of_place() const
    {
        return place_ && service_.connection_number(place_->master) == place_->connection;
    }
    /// Returns whether we are in the queue of the present queue master.
    bool has_place() const
    {
        return has_connection_of_place() && service_.queue_master_of(*held_or_asked()) == place_->master;
    }
    const detail::lease_state_ptr& held_or_asked() const { return asked_ ? asked_ : held_; }

    net::question question_at(std::size_t master) const
    {
        const auto waited =
            std::chrono::duration_cast<std::chrono::milliseconds>(service_.strand().now() - began_);
        return {
            place_at(master).member, call_.options.ttl, waited,
            waiter_ ? core::queue_liveness : std::chrono::milliseconds{0}, core::queue_grace(node_timeout())};
    }

    void begin_round_with_question(std::size_t queue_master)
    {
        if (waiter_)
        {
            waiter_->sleep();
        }
        sent_ = question_at(queue_master);
        votes_ = service_.send_sets_and_ask(*held_, sent_, queue_master, operation.wake_event);
    }

    void begin_round_at_head()
    {
        ++rounds_;
        held_ = service_.make_lease_state(call_.resource);
        begin_round_with_question(place_->master);
    }

    void begin_round_with_grant()
    {
        ++rounds_;
        held_ = std::move(asked_);
        votes_ = std::move(question_);
        service_.send_other_sets(*votes_);
    }

    /// Asks only the queue master.
    runtime::task<reply> ask()
    {
        detail::lease_state_ptr fresh = service_.make_lease_state(call_.resource);
        const std::optional<std::size_t> queue_master = service_.queue_master_of(*fresh);
        if (place_ && place_->master != queue_master)
        {
            leave_queue();
        }
        if (!queue_master)
        {
            co_return reply::impossible;
        }
        asked_ = std::move(fresh);
        waiter_->sleep();
        sent_ = question_at(*queue_master);
        question_ = service_.ask(*asked_, sent_, *queue_master, operation.wake_event);
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
            place_.reset();
            co_return reply::granted;
        }
        if (said == vote::denied && question_->position())
        {
            take_place(*queue_master, *question_->position());
            co_return reply::refused;
        }
        // A refusal that has not entered us is no answer to the question.
        pass_over_unless_answered(*queue_master, said == vote::denied ? vote::failed : said);
        service_.give_back_and_leave(*asked_, *queue_master, place_at(*queue_master).member);
        place_.reset();
        co_return reply::missing;
    }

    /// Records our position, and decides when to ask again if no message arrives.
    void take_place(std::size_t queue_master, const core::queue_position& position)
    {
        const clock::time_point now = service_.strand().now();
        if (!has_place() || !position_ || position_->rank != position.rank)
        {
            rank_changed_ = now;
        }
        place_ = place_at(queue_master);
        position_ = position;
        note_position(queue_master, position);
        ask_at_ = now + (place_->member.receives ? core::next_heartbeat(position, service_.random_number())
                                                 : core::next_poll(position, now - rank_changed_));
    }

    /// Records the position for the report, and notifies the observer of a new one.
    void note_position(std::size_t queue_master, const core::queue_position& position)
    {
        const queue_position now{queue_master, position.rank, position.waiting, position.key_expires_in};
        const bool moved = !reported_ || reported_->master != now.master || reported_->ahead != now.ahead;
        reported_ = now;
        if (moved && service_.observed())
        {
            service_.notify(acquire_queued{call_.resource, now, service_.names()->at(queue_master)});
        }
    }

    /// Updates our place by the answer to the question of the last round. Called once after its decision.
    void note_place()
    {
        const std::optional<std::size_t> queue_master = votes_ ? votes_->queue_master() : std::nullopt;
        if (!queue_master || (place_ && place_->master != *queue_master))
        {
            return;
        }
        if (votes_->position())
        {
            take_place(*queue_master, *votes_->position());
        }
        else
        {
            // It granted, or a late refusal makes the round leave the queue.
            place_.reset();
        }
    }

    /// Releases everything that the last round sent, including to masters that seem to have refused.
    void give_back_round()
    {
        note_place();
        const std::optional<std::size_t> asked = votes_->queue_master();
        const std::optional<std::size_t> queue_master = asked ? asked : service_.queue_master_of(*held_);
        if (!queue_master || votes_->ballot().of(*queue_master) == vote::denied)
        {
            service_.give_back(*held_);
            return;
        }
        const bool may_be_entered = asked.has_value() && waiter_.has_value();
        service_.give_back_and_leave(
            *held_, *queue_master,
            may_be_entered ? std::optional{place_at(*queue_master).member} : std::nullopt);
    }

    /// Rests after a round that was lost although the queue master has granted it, or may have. If others have won it, we
    /// keep our position, and are served first after the pause. A release ends it at once. If it had too few answers, or
    /// took too long, the next one may end in the same way: others are served meanwhile.
    runtime::task<bool> rest(std::size_t queue_master)
    {
        ++losses_;
        const clock::duration pause = core::pause_after_loss(losses_, took_, service_.random_number());
        const auto whole =
            std::chrono::duration_cast<std::chrono::milliseconds>(pause) + std::chrono::milliseconds{1};
        if (place_ && place_->master != queue_master)
        {
            leave_queue();
        }
        const bool lost_to_others = votes_->outcome() == core::verdict::lost &&
                                    votes_->ballot().why_lost() != core::refusal::no_quorum;
        if (lost_to_others)
        {
            service_.give_back_and_stay(*held_, queue_master, question_at(queue_master), whole);
            place_ = place_at(queue_master);
        }
        else
        {
            service_.give_back_and_leave(*held_, queue_master, place_at(queue_master).member);
            place_.reset();
        }
        position_.reset();
        ask_at_ = clock::time_point{};
        const clock::time_point until = service_.strand().now() + pause;
        {
            const alarm_clock alarm{service_.strand(), operation.wake_event, std::min(until, wait_ends())};
            while (service_.strand().now() < until && waiter_->woken() != net::wake_reason::released &&
                   !is_over())
            {
                co_await operation.wake_event;
            }
        }
        const core::ballot& ballot = votes_->ballot();
        const bool disagrees =
            ballot.of(queue_master) == vote::granted && ballot.count(vote::denied) >= ballot.quorum();
        if (overruled_.on_lost(disagrees, service_.strand().now()))
        {
            overruled_.reset();
            service_.overrule(call_.resource, queue_master);
        }
        if (!is_over() && has_place())
        {
            begin_round_at_head();
            co_return true;
        }
        co_return co_await wait_for_turn();
    }

    /// Waits for a random time because there is no queue master, and begins a round.
    runtime::task<bool> back_off()
    {
        const clock::time_point now = service_.strand().now();
        clock::time_point next = now;
        if (rounds_ > 0)
        {
            const config& options = service_.options();
            const core::backoff_policy policy{options.retry_delay_min, options.retry_delay_max};
            next += core::backoff_delay(policy, rounds_, now - votes_->started(), service_.random_number());
        }
        const alarm_clock alarm{service_.strand(), operation.wake_event, std::min(next, wait_ends())};
        while (service_.strand().now() < next && !is_over())
        {
            co_await operation.wake_event;
        }
        if (is_over())
        {
            co_return false;
        }
        begin_round();
        co_return true;
    }

    void describe(report& out, error_code result, clock::duration validity) const
    {
        out.result = result;
        out.rounds = rounds_;
        out.validity = validity;
        out.elapsed = took_;
        out.queue = reported_;
        if (votes_)
        {
            votes_->describe(out);
        }
    }

    void finish(error_code result, clock::duration validity, std::string complaint = {})
    {
        if (call_.out != nullptr)
        {
            describe(*call_.out, result, validity);
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
            said->argument_error = std::move(complaint);
            describe(*said, result, validity);
            thrown = std::make_exception_ptr(lock_error{result, call_.resource, said->to_string()});
        }
        service_.complete(
            std::get<detail::completion<void(std::exception_ptr, lease)>>(call_.done), std::move(thrown),
            std::move(won));
    }

    lock_service& service_;
    acquire_call& call_; // Belongs to the coroutine.
    clock::time_point began_;
    std::uint32_t rounds_ = 0;
    clock::duration took_{0}; // Of the last round, until it was decided.
    detail::lease_state_ptr held_;
    net::question sent_{}; // The last one.
    awaited_round votes_;
    error_code refusal_; // There are too many waiting acquires.

    // Since it waits.
    std::optional<waiter> waiter_;
    detail::lease_state_ptr asked_;
    awaited_round question_;
    std::optional<place> place_;
    std::optional<core::queue_position> position_; // As the queue master answered last.
    std::optional<queue_position> reported_;       // Also after we have left.
    clock::time_point rank_changed_{};
    clock::time_point ask_at_{};
    std::uint32_t losses_ = 0; // In a row, although the queue master granted.
    core::overruled_watch overruled_;
};

} // namespace

runtime::detached_task acquire(lock_service& service, acquire_call call)
{
    acquisition self{service, call};
    const error_code full = service.refusal();
    if (const refused_argument refused = full ? refused_argument{full, {}} : check(service, call);
        refused.error)
    {
        self.refuse(refused.error, refused.complaint);
        co_return;
    }
    while (service.strand().now() < self.first_round_at() && !self.operation.stopped())
    {
        const alarm_clock warm{service.strand(), self.operation.wake_event, self.first_round_at()};
        co_await self.operation.wake_event;
    }
    if (self.operation.stopped())
    {
        self.refuse(self.operation.stopped());
        co_return;
    }
    bool begun = true;
    if (self.begins_in_queue())
    {
        begun = co_await self.wait_for_turn();
    }
    else
    {
        self.begin_round();
    }
    while (begun)
    {
        while (self.undecided())
        {
            co_await self.operation.wake_event;
        }
        if (self.is_strict())
        {
            co_await self.await_queue_master();
        }
        self.note_decision();
        if (self.try_complete_with_lease())
        {
            co_return;
        }
        self.report_round();
        begun = co_await self.begin_next_round();
    }
    self.leave_queue();
    const error_code why = co_await self.reason();
    self.fail(why);
}

} // namespace redlock::manager
