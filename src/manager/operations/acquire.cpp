// SPDX-License-Identifier: BSL-1.0
// Acquire and try_acquire: rounds until one succeeds or no further one is allowed. Between rounds, an acquire waits for
// a slot in the queue of the resource.
#include "core/backoff.hpp"
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

/// Counts as an acquire that waits between two rounds, unless the limit is reached.
class waiting_slot
{
  public:
    explicit waiting_slot(lock_service& service) : service_{service}, has_place_{service.take_waiting_slot()}
    {
    }
    waiting_slot(const waiting_slot&) = delete;
    waiting_slot& operator=(const waiting_slot&) = delete;
    ~waiting_slot()
    {
        if (has_place_)
        {
            service_.free_waiting_slot();
        }
    }

    explicit operator bool() const noexcept { return has_place_; }

  private:
    lock_service& service_;
    bool has_place_;
};

/// The state of an acquire across its rounds.
///
/// The coroutine `acquire` below drives it: it begins a round, waits while the round is undecided, and then calls
/// `try_complete_with_lease`, or `give_back` and waits until the next round. It is woken by votes, by its alarms and by
/// `active_operation::stop`, and checks all conditions again after each wake. A pause that ends with a slot at the queue
/// master has begun the next round already.
class acquisition
{
  public:
    acquisition(lock_service& service, acquire_call& call)
        : operation{service, call.id}, service_{service}, call_{call}, began_{service.strand().now()}
    {
    }

    active_operation operation;

    runtime::scheduler& strand() noexcept { return service_.strand(); }

    void begin_round()
    {
        ++rounds_;
        began_by_turn_ = false;
        held_ = service_.make_lease_state(call_.resource);
        votes_ = service_.send_sets(*held_, call_.options.ttl, operation.wake_event);
    }

    bool undecided() const { return votes_->outcome() == core::verdict::undecided && !operation.stopped(); }
    /// Records for the report how long the last round took.
    void note_decision() { took_ = service_.strand().now() - votes_->started(); }
    /// Returns the error to complete with. Waits until the reason of the last round is known, at its node timeout at
    /// the latest; otherwise a resource that is held might be reported as `no_quorum`.
    runtime::task<error_code> reason()
    {
        const bool had_one = static_cast<bool>(votes_);
        while (had_one && !votes_->has_result() && !operation.stopped())
        {
            co_await operation.wake_event;
            note_decision();
        }
        co_return operation.stopped() ? operation.stopped() : votes_->result();
    }

    /// Returns the time until which the first round waits for connections, unless it is woken.
    clock::time_point first_round_at() const
    {
        const clock::time_point at = service_.first_round_at(service_.node_timeout(call_.options.ttl));
        return call_.once ? at : std::min(at, wait_ends());
    }

    /// Completes with a lease if the round was won and enough validity remains. The remaining validity is computed
    /// last, so that any delay of this process is included.
    bool try_complete_with_lease()
    {
        if (operation.stopped() || votes_->outcome() != core::verdict::won)
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

    /// Releases everything that the round sent, including to masters that seem to have refused.
    void give_back() { service_.give_back(*held_); }

    /// Returns the latest end of the wait before the first round; empty if no other client was seen to wait.
    std::optional<clock::time_point> first_pause() const
    {
        const bool waits = !call_.once && call_.options.max_rounds != 1U &&
                           core::remaining(wait_ends(), service_.strand().now()) >= core::backoff_floor;
        return waits && service_.is_contended(call_.resource) ? std::optional{end_of_patience()}
                                                              : std::nullopt;
    }

    /// Waits until the next round may begin, or for a slot at the queue master. Returns true if the queue master has
    /// granted a slot, which begins the round.
    runtime::task<bool> pause(clock::time_point next)
    {
        const clock::time_point now = service_.strand().now();
        const clock::time_point at_latest = std::max(next, end_of_patience());
        bool goes_on = co_await wait_until(had_round() ? std::min(next, now + core::backoff_floor) : now);
        while (goes_on && stands_in_line())
        {
            goes_on = co_await wait_until(std::min(next, place_.value_or(now)));
            if (!goes_on || service_.strand().now() >= next)
            {
                break;
            }
            switch (co_await ask_for_turn())
            {
            case turn::come:
                begin_round_with_turn();
                co_return true;
            case turn::later:
                next = at_latest;
                break;
            case turn::unknown:
                // Before the first round there is nothing to back off from.
                co_await wait_until(had_round() ? next : now);
                co_return false;
            }
        }
        co_await wait_until(next);
        co_return false;
    }

    /// Returns the time of the next round; empty if there is none.
    std::optional<clock::time_point> next_round() const
    {
        const clock::time_point now = service_.strand().now();
        const clock::duration left = core::remaining(wait_ends(), now);
        const bool last = call_.once || rounds_ == call_.options.max_rounds || left < core::backoff_floor;
        if (last || votes_->quorum_permanently_unreachable())
        {
            return std::nullopt;
        }
        const config& options = service_.options();
        const core::backoff_policy policy{
            options.retry_delay_min, std::min<clock::duration>(options.retry_delay_max, left)};
        return now + core::backoff_delay(policy, rounds_, now - votes_->started(), service_.random_number());
    }

    bool had_round() const noexcept { return rounds_ > 0; }
    /// Returns true if a round may start: the first always, a later one within `wait`, even if this process was
    /// stopped.
    bool may_start() const { return !had_round() || service_.strand().now() <= wait_ends(); }

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
    /// Returns false if the acquire is stopped.
    runtime::task<bool> wait_until(clock::time_point then)
    {
        const alarm_clock alarm{service_.strand(), operation.wake_event, then};
        while (service_.strand().now() < then && !operation.stopped())
        {
            co_await operation.wake_event;
        }
        co_return !operation.stopped();
    }

    enum class turn : std::uint8_t
    {
        come,   // The queue master has set the key.
        later,  // The queue master has assigned a slot.
        unknown // There is no slot, or the acquire was stopped.
    };

    runtime::task<turn> ask_for_turn()
    {
        if (turn_state_ && service_.leader_of(*turn_state_) != leader_)
        {
            place_.reset();
        }
        if (!place_)
        {
            turn_state_ = service_.make_lease_state(call_.resource);
            leader_ = service_.leader_of(*turn_state_);
        }
        turn_ =
            service_.ask_for_turn(*turn_state_, call_.options.ttl, place_.has_value(), operation.wake_event);
        // The query ends with `wait`, because a round must not begin later.
        const alarm_clock end{service_.strand(), operation.wake_event, wait_ends()};
        while (turn_->awaits_turn() && !operation.stopped() && service_.strand().now() < wait_ends())
        {
            co_await operation.wake_event;
        }
        if (!operation.stopped() && may_start() && turn_->ballot().count(vote::granted) > 0)
        {
            co_return turn::come;
        }
        service_.give_back(*turn_state_);
        place_ = turn_->turn();
        if (place_)
        {
            service_.note_contention(call_.resource, true);
            co_return turn::later;
        }
        service_.forget_contention(call_.resource);
        co_return turn::unknown;
    }

    /// Returns true if the acquire should queue: not if the queue master failed to answer, and not if it granted a
    /// key that a quorum of masters has for another client, because then it doesn't know the holder.
    bool stands_in_line() const
    {
        if (!had_round())
        {
            return true;
        }
        const std::optional<std::size_t> leader = service_.leader_of(*held_);
        const vote said = leader ? votes_->ballot().of(*leader) : vote::unsent;
        const bool overruled = votes_->ballot().count(vote::denied) >= votes_->ballot().quorum();
        return !began_by_turn_ && (said == vote::denied || (said == vote::granted && !overruled));
    }

    /// Returns the time at which all masters are asked again even without a slot, because the queue master may be
    /// wrong.
    clock::time_point end_of_patience() const
    {
        const clock::time_point now = service_.strand().now();
        const clock::duration left = core::remaining(wait_ends(), now);
        const auto longest = std::min<clock::duration>(service_.options().retry_delay_max, left);
        const auto jitter = static_cast<std::uint64_t>(longest.count()) / 2;
        const clock::duration drawn{static_cast<clock::rep>(service_.random_number() % (jitter + 1))};
        return now + longest - drawn;
    }

    void begin_round_with_turn()
    {
        ++rounds_;
        began_by_turn_ = true;
        place_.reset();
        held_ = std::move(turn_state_);
        votes_ = std::move(turn_);
        service_.note_contention(call_.resource, votes_->others_wait());
        service_.send_other_sets(*votes_);
    }

    clock::time_point wait_ends() const { return core::later(began_, call_.options.wait.value()); }

    void describe(report& out, error_code result, clock::duration validity) const
    {
        out.result = result;
        out.rounds = rounds_;
        out.validity = validity;
        out.elapsed = took_;
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
    awaited_round votes_;
    bool began_by_turn_ = false;             // The round began with a slot at the queue master.
    std::optional<clock::time_point> place_; // The assigned slot.
    std::optional<std::size_t> leader_;      // The queue master that assigned it.
    detail::lease_state_ptr turn_state_;
    awaited_round turn_;
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
    std::optional<clock::time_point> next = self.first_pause();
    for (;;)
    {
        bool begun = false;
        if (next)
        {
            const waiting_slot slot{service};
            if (slot)
            {
                begun = co_await self.pause(*next);
            }
            else if (self.had_round())
            {
                self.fail(errc::too_many_operations);
                co_return;
            }
            if (!begun && (self.operation.stopped() || !self.may_start()))
            {
                const error_code why = co_await self.reason();
                self.fail(why);
                co_return;
            }
        }
        if (!begun)
        {
            self.begin_round();
        }
        while (self.undecided())
        {
            co_await self.operation.wake_event;
        }
        self.note_decision();
        if (self.try_complete_with_lease())
        {
            co_return;
        }
        self.give_back();
        self.report_round();
        next = self.next_round();
        if (!next || self.operation.stopped())
        {
            const error_code why = co_await self.reason();
            self.fail(why);
            co_return;
        }
    }
}

} // namespace redlock::manager
