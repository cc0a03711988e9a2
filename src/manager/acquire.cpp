// SPDX-License-Identifier: BSL-1.0
// Acquire and try_acquire: rounds until one holds, or until there may be no more. Between two of them an acquire stands in
// line at the master that leads for the resource.
#include "core/backoff.hpp"
#include "manager/acquire_check.hpp"
#include "manager/lock_service.hpp"
#include "manager/operations.hpp"

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

/// A place among the acquires that pause between two rounds, if there is one.
class pausing
{
  public:
    explicit pausing(lock_service& service) : service_{service}, has_place_{service.begin_pause()} {}
    pausing(const pausing&) = delete;
    pausing& operator=(const pausing&) = delete;
    ~pausing()
    {
        if (has_place_)
        {
            service_.end_pause();
        }
    }

    explicit operator bool() const noexcept { return has_place_; }

  private:
    lock_service& service_;
    bool has_place_;
};

/// What stays of an acquire from one round to the next.
class acquisition
{
  public:
    acquisition(lock_service& service, acquire_call& call)
        : operation{service, call.id}, service_{service}, call_{call}, began_{service.strand().now()}
    {
    }

    running operation;

    env::scheduler& strand() noexcept { return service_.strand(); }

    void begin_round()
    {
        ++rounds_;
        began_by_turn_ = false;
        held_ = service_.make_holding(call_.resource);
        votes_ = service_.send_sets(*held_, call_.options.ttl, operation.wake);
    }

    bool undecided() const { return votes_->outcome() == core::verdict::undecided && !operation.stopped(); }
    /// For the report: how long the last round took.
    void note_decision() { took_ = service_.strand().now() - votes_->started(); }
    /// The error to end with. The reason of the last round is known at its node timeout at the latest. The acquire doesn't
    /// end without it, or a lock that is simply held would be reported as masters that are missing.
    env::task<error_code> reason()
    {
        const bool had_one = static_cast<bool>(votes_);
        while (had_one && !votes_->has_result() && !operation.stopped())
        {
            co_await operation.wake;
            note_decision();
        }
        co_return operation.stopped() ? operation.stopped() : votes_->result();
    }

    /// Until when the first round waits for a quorum of masters.
    clock::time_point warm_at_latest() const
    {
        return call_.once ? service_.warm_at_latest() : std::min(service_.warm_at_latest(), wait_ends());
    }

    /// Hands out the lease if the round was won and leaves validity. What is left is looked at last of all:
    /// however long the answers waited for us, that time is gone.
    bool win()
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

    /// Whatever was sent in this round is released, where it seemed refused as well.
    void give_back() { service_.give_back(*held_); }

    /// Where others were seen to stand in line it goes to the end of it, before its first round: until when at most.
    std::optional<clock::time_point> first_pause() const
    {
        const bool waits = !call_.once && call_.options.max_rounds != 1U &&
                           core::remaining(wait_ends(), service_.strand().now()) >= core::backoff_floor;
        return waits && service_.is_crowded(call_.resource) ? std::optional{end_of_patience()} : std::nullopt;
    }

    /// Waits for the time of the next round, or for the turn at the leading master: then the round has begun, and this is
    /// true.
    env::task<bool> pause(clock::time_point next)
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
                // Nothing speaks against a first round.
                co_await wait_until(had_round() ? next : now);
                co_return false;
            }
        }
        co_await wait_until(next);
        co_return false;
    }

    /// When the next round starts; empty if there is none after this one.
    std::optional<clock::time_point> next_round() const
    {
        const clock::time_point now = service_.strand().now();
        const clock::duration left = core::remaining(wait_ends(), now);
        const bool last = call_.once || rounds_ == call_.options.max_rounds || left < core::backoff_floor;
        if (last || votes_->hopeless())
        {
            return std::nullopt;
        }
        const config& options = service_.options();
        const core::backoff_policy policy{
            options.retry_delay_min, std::min<clock::duration>(options.retry_delay_max, left)};
        return now + core::backoff_delay(policy, rounds_, now - votes_->started(), service_.random_number());
    }

    bool had_round() const noexcept { return rounds_ > 0; }
    /// However long this process slept: the time in which a round may start. The first one always may.
    bool may_start() const { return !had_round() || service_.strand().now() <= wait_ends(); }

    void fail(error_code why)
    {
        if (call_.out != nullptr && !votes_)
        {
            *call_.out = report{};
        }
        finish(operation.stopped() ? operation.stopped() : why, {});
    }

    /// Before the first round.
    void refuse(error_code why, std::string complaint = {})
    {
        if (call_.out != nullptr)
        {
            *call_.out = report{};
            call_.out->complaint = complaint;
        }
        finish(why, {}, std::move(complaint));
    }

    /// Notifies the observer that the round was lost, as soon as it is known why.
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
    /// False if the acquire is stopped.
    env::task<bool> wait_until(clock::time_point then)
    {
        const alarm_clock alarm{service_.strand(), operation.wake, then};
        while (service_.strand().now() < then && !operation.stopped())
        {
            co_await operation.wake;
        }
        co_return !operation.stopped();
    }

    enum class turn : std::uint8_t
    {
        come,   // The leading master has set the key.
        later,  // It said when.
        unknown // It said nothing, or nobody listens any more.
    };

    env::task<turn> ask_for_turn()
    {
        if (turn_holding_ && service_.leader_of(*turn_holding_) != leader_)
        {
            place_.reset();
        }
        if (!place_)
        {
            turn_holding_ = service_.make_holding(call_.resource);
            leader_ = service_.leader_of(*turn_holding_);
        }
        turn_ = service_.ask_for_turn(*turn_holding_, call_.options.ttl, place_.has_value(), operation.wake);
        // With the wait the question is over as well: a round that began with it would begin too late.
        const alarm_clock end{service_.strand(), operation.wake, wait_ends()};
        while (turn_->awaits_turn() && !operation.stopped() && service_.strand().now() < wait_ends())
        {
            co_await operation.wake;
        }
        if (!operation.stopped() && may_start() && turn_->ballot().count(vote::granted) > 0)
        {
            co_return turn::come;
        }
        service_.give_back(*turn_holding_);
        place_ = turn_->turn();
        if (place_)
        {
            service_.note_crowd(call_.resource, true);
            co_return turn::later;
        }
        service_.forget_crowd(call_.resource);
        co_return turn::unknown;
    }

    /// Not where the leading master has just failed to answer. Nor where its word is worth nothing: it doesn't have the key
    /// that a quorum of the others have.
    bool stands_in_line() const
    {
        if (!had_round())
        {
            return true;
        }
        const std::optional<std::size_t> leader = service_.leader_of(*held_);
        const vote said = leader ? votes_->ballot().of(*leader) : vote::unsent;
        const bool overruled = votes_->ballot().count(vote::held) >= votes_->ballot().quorum();
        return !began_by_turn_ && (said == vote::held || (said == vote::granted && !overruled));
    }

    /// How long it stands in line before it asks all masters again, for the leading one may be wrong.
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
        held_ = std::move(turn_holding_);
        votes_ = std::move(turn_);
        service_.note_crowd(call_.resource, votes_->others_wait());
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
        lease won = result ? lease{} : lease{std::move(held_)};
        if (auto* const plain = std::get_if<detail::completion<void(error_code, lease)>>(&call_.done))
        {
            service_.complete(*plain, result, std::move(won));
            return;
        }
        std::exception_ptr thrown;
        if (result)
        {
            const auto said = std::make_unique<report>();
            said->complaint = std::move(complaint);
            describe(*said, result, validity);
            thrown = std::make_exception_ptr(lock_error{result, call_.resource, said->to_string()});
        }
        service_.complete(
            std::get<detail::completion<void(std::exception_ptr, lease)>>(call_.done), std::move(thrown),
            std::move(won));
    }

    lock_service& service_;
    acquire_call& call_; // The coroutine's.
    clock::time_point began_;
    std::uint32_t rounds_ = 0;
    clock::duration took_{0}; // The last round, until it was decided.
    detail::holding_ptr held_;
    awaited_round votes_;
    bool began_by_turn_ = false;             // The round, at the leading master.
    std::optional<clock::time_point> place_; // In the line: its turn.
    std::optional<std::size_t> leader_;      // Who said so.
    detail::holding_ptr turn_holding_;
    awaited_round turn_;
};

} // namespace

env::flow acquire(lock_service& service, acquire_call call)
{
    acquisition self{service, call};
    const error_code full = service.refusal();
    const refused_argument refused = check(service, call);
    if (full || refused.error)
    {
        self.refuse(full ? full : refused.error, refused.complaint);
        co_return;
    }
    if (service.warming_up())
    {
        const clock::time_point until = self.warm_at_latest();
        const alarm_clock warm{service.strand(), self.operation.wake, until};
        while (service.warming_up() && service.strand().now() < until && !self.operation.stopped())
        {
            co_await self.operation.wake;
        }
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
            const pausing place{service};
            if (place)
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
            co_await self.operation.wake;
        }
        self.note_decision();
        if (self.win())
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
