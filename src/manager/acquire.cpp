// SPDX-License-Identifier: BSL-1.0
// Acquire and try_acquire: rounds until one holds, or until there may be no more.
#include "core/backoff.hpp"
#include "manager/lock_service.hpp"
#include "manager/operations.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace redlock::manager
{

namespace
{

struct refused_argument
{
    error_code error;
    std::string complaint;
};

refused_argument check(const lock_service& service, const acquire_call& call)
{
    if (!has_lockable_length(call.resource))
    {
        return {
            errc::invalid_resource, "a resource of " + std::to_string(call.resource.size()) +
                                        " bytes can't be locked: its name must have from 1 to " +
                                        std::to_string(longest_resource) + " bytes"};
    }
    const acquire_options& options = call.options;
    const core::timing given = service.timing(options.ttl, options.min_validity);
    if (std::string complaint = core::ttl_complaint(given); !complaint.empty())
    {
        return {errc::invalid_ttl, std::move(complaint)};
    }
    if (std::string complaint = core::min_validity_complaint(given); !complaint.empty())
    {
        return {errc::invalid_min_validity, std::move(complaint)};
    }
    if (options.wait.value() < std::chrono::milliseconds{0})
    {
        return {
            errc::invalid_wait, "a wait of " + std::to_string(options.wait.value().count()) +
                                    " ms can't be used: it must be 0 ms or more, or redlock::no_limit"};
    }
    if (options.max_rounds == 0U)
    {
        return {
            errc::invalid_max_rounds,
            "a max_rounds of 0 can't be used: it must be 1 or more, or be left empty"};
    }
    if (call.keep)
    {
        if (std::string complaint = core::schedule_complaint(call.keep->schedule); !complaint.empty())
        {
            return {errc::invalid_schedule, std::move(complaint)};
        }
        if (call.keep->max_hold.value() <= std::chrono::milliseconds{0})
        {
            return {
                errc::invalid_max_hold,
                "a max_hold of " + std::to_string(call.keep->max_hold.value().count()) +
                    " ms can't be used: it must be 1 ms or more, or redlock::no_limit"};
        }
    }
    return {};
}

/// The last round's error. It is lost, or won too late.
error_code error_of(const round& last)
{
    if (last.outcome() == core::verdict::won)
    {
        return errc::validity_exhausted;
    }
    return last.ballot().why_lost() == core::refusal::held ? errc::held_by_other : errc::no_quorum;
}

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

    void begin_round()
    {
        ++rounds_;
        held_ = service_.make_holding(call_.resource);
        votes_ = service_.send_sets(*held_, call_.options.ttl, operation.wake);
    }

    bool undecided() const { return votes_->outcome() == core::verdict::undecided && !operation.stopped(); }
    /// It is decided that the round is lost, but not yet why.
    bool unexplained() const
    {
        return votes_->outcome() == core::verdict::lost &&
               votes_->ballot().why_lost() == core::refusal::unknown && !operation.stopped();
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
        tell_decision({}, left);
        finish({}, left);
        return true;
    }

    /// Whatever was sent in this round is released, where it seemed refused as well.
    void give_back() { service_.give_back(*held_); }

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

    /// However long this process slept: the time in which a round may start.
    bool may_start() const { return service_.strand().now() <= wait_ends(); }

    void fail(error_code why = {})
    {
        const error_code result = why ? why : error_of(*votes_);
        finish(operation.stopped() ? operation.stopped() : result, {});
    }

    /// Before the first round.
    void refuse(error_code why, std::string complaint = {})
    {
        if (call_.out != nullptr)
        {
            *call_.out = report{};
            call_.out->complaint = std::move(complaint);
        }
        finish(why, {});
    }

    /// Tells the observer that the round was lost.
    void tell_loss()
    {
        if (votes_->outcome() != core::verdict::undecided)
        {
            tell_decision(error_of(*votes_), {});
        }
    }

  private:
    clock::time_point wait_ends() const { return core::later(began_, call_.options.wait.value()); }

    void tell_decision(error_code result, clock::duration validity)
    {
        if (service_.observed())
        {
            round_decided what{call_.resource, {}};
            what.report.validity = validity;
            describe(what.report, result);
            service_.notify(std::move(what));
        }
    }

    void describe(report& out, error_code result) const
    {
        out.result = result;
        out.rounds = rounds_;
        if (votes_)
        {
            out.elapsed = service_.strand().now() - votes_->started();
            votes_->describe(out);
        }
    }

    void finish(error_code result, clock::duration validity)
    {
        if (call_.out != nullptr)
        {
            call_.out->validity = validity;
            describe(*call_.out, result);
        }
        lease won = result ? lease{} : lease{std::move(held_)};
        service_.complete(call_.done, result, std::move(won));
    }

    lock_service& service_;
    acquire_call& call_; // The coroutine's.
    clock::time_point began_;
    std::uint32_t rounds_ = 0;
    detail::holding_ptr held_;
    awaited_round votes_;
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
        const alarm_clock warm{service.strand(), self.operation.wake, service.warm_at_latest()};
        while (service.warming_up() && !self.operation.stopped())
        {
            co_await self.operation.wake;
        }
    }
    if (self.operation.stopped())
    {
        self.refuse(self.operation.stopped());
        co_return;
    }
    for (;;)
    {
        self.begin_round();
        while (self.undecided())
        {
            co_await self.operation.wake;
        }
        if (self.win())
        {
            co_return;
        }
        self.give_back();
        const std::optional<clock::time_point> next = self.next_round();
        while (!next && self.unexplained())
        {
            co_await self.operation.wake;
        }
        self.tell_loss();
        if (next && !self.operation.stopped())
        {
            const pausing place{service};
            if (!place)
            {
                self.fail(errc::too_many_operations);
                co_return;
            }
            const alarm_clock pause{service.strand(), self.operation.wake, *next};
            while (service.strand().now() < *next && !self.operation.stopped())
            {
                co_await self.operation.wake;
            }
        }
        if (!next || self.operation.stopped() || !self.may_start())
        {
            self.fail();
            co_return;
        }
    }
}

} // namespace redlock::manager
