// SPDX-License-Identifier: BSL-1.0
// The state of an acquire across its rounds.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/error.hpp>
#include <redlock/options.hpp>
#include <redlock/report.hpp>

#include "core/queue_timing.hpp"
#include "manager/lock_service.hpp"
#include "manager/operations/operations.hpp"
#include "manager/operations/queue_entry.hpp"
#include "manager/round.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace redlock::manager
{

/// The state of an acquire across its rounds.
///
/// The coroutine `acquire` drives it: `wait_for_turn` and `begin_next_round` wait as long as necessary and begin a round,
/// or return that there is none; `acquire` waits while the round is undecided, and calls `try_complete_with_lease`. It is
/// woken by votes, by messages, by its alarms and by `active_operation::stop`, and checks all conditions again after each
/// wake.
///
/// An acquire that waits is in one of these states, each of which is a function:
///
/// - *asking* (`ask`): only the queue master is asked. If it grants, the round begins.
/// - *waiting* (`wait_for_turn`): the queue master has entered us. We wait for its message, or ask again.
/// - *heading* (`begin_round_at_head`): after a message, or at the heartbeat of the first client. The queue master is asked
///   and all others are sent a SET at once.
/// - *resting* (`rest`): the round was lost although the queue master granted it. We keep our position if other clients
///   have won it, and give way otherwise.
/// - *backing off* (`back_off`): there is no queue master.
class acquisition
{
  public:
    acquisition(lock_service& service, acquire_call& call)
        : operation{service, call.id}, service_{service}, call_{call}, entry_{service, call}
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
    void begin_round();

    bool is_strict() const noexcept { return service_.options().order == order::strict; }
    bool undecided() const { return votes_->outcome() == core::verdict::undecided && !operation.stopped(); }
    /// In strict order, the answer of the queue master counts for more than a quorum. Waits for it after the decision,
    /// for half of what the round took. Returns whether it has come.
    runtime::task<bool> await_queue_master();
    /// Records for the report how long the last round took, and the fault of a queue master that gave no answer.
    void note_decision();
    /// Completes with a lease if the round was won and enough validity remains. The remaining validity is computed
    /// last, so that any delay of this process is included.
    bool try_complete_with_lease();
    /// Notifies the observer of a lost round as soon as the reason is known.
    void report_round();

    /// Waits after a lost round until the next one may begin, and begins it. Returns false if there is none.
    runtime::task<bool> begin_next_round();
    /// Waits in the queue until the next round may begin, and begins it. Returns false at the end of `wait`.
    runtime::task<bool> wait_for_turn();
    /// Leaves the queue if we are in one.
    void leave_queue() { entry_.leave(); }

    /// Returns the error to complete with, after `begin_next_round` has found no further round. Waits until the reason of
    /// the last round is known, at its node timeout at the latest; otherwise a resource that is held might be reported as
    /// `no_quorum`.
    runtime::task<error_code> reason();
    void fail(error_code why);
    /// Fails before the first round.
    void refuse(error_code why, std::string complaint = {});

  private:
    enum class reply : std::uint8_t
    {
        granted,   // The queue master has set the key.
        refused,   // It has entered us in the queue.
        missing,   // It gave no answer in time, or `wait` has ended.
        impossible // There is no queue master.
    };

    std::chrono::milliseconds node_timeout() const { return service_.node_timeout(call_.options.ttl); }
    clock::time_point wait_ends() const { return core::later(entry_.began(), call_.options.wait.value()); }
    bool is_over() const { return operation.stopped() || service_.strand().now() >= wait_ends(); }
    clock::time_point last_begin() const;
    /// The group became known after the beginning, and its `max_ttl` is shorter: no master is asked any more.
    bool is_refused_by_group() const { return !service_.group_complaint(call_.options.ttl).empty(); }
    bool start_waiting() { return entry_.start_waiting(operation.wake_event); }

    void begin_round_with_question(std::size_t queue_master);
    void begin_round_at_head(bool at_heartbeat);
    void begin_round_with_grant();

    runtime::task<reply> ask();
    runtime::task<bool> await_answer();
    runtime::task<bool> rest(std::size_t queue_master);
    runtime::task<bool> back_off();
    bool begin_first_round();
    bool is_due_at_head(clock::time_point now) const;
    void pass_over_unless_answered(std::size_t queue_master, vote said);
    void note_place();
    void give_back_round();

    void describe(report& out, error_code result, clock::duration validity, std::string complaint) const;
    void finish(error_code result, clock::duration validity, std::string complaint = {});

    lock_service& service_;
    acquire_call& call_; // Belongs to the coroutine.
    queue_entry entry_;
    std::uint32_t rounds_ = 0;
    clock::duration took_{0}; // Of the last round, until it was decided.
    detail::lease_state_ptr held_;
    awaited_round votes_;
    error_code refusal_; // There are too many waiting acquires.

    // Since it waits.
    detail::lease_state_ptr asked_;
    awaited_round question_;
    bool at_heartbeat_ = false; // The last round at the head began without a message or a pause.
    std::uint32_t losses_ = 0;  // In a row, although the queue master granted.
    core::overruled_watch overruled_;
};

} // namespace redlock::manager
