// SPDX-License-Identifier: BSL-1.0
// The entry of one acquire in the wait queue of its resource.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/report.hpp>

#include "core/queue_timing.hpp"
#include "manager/wait_queues.hpp"
#include "net/queue_commands.hpp"
#include "runtime/tasks.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace redlock::manager
{

class lock_service;
struct acquire_call;

/// The entry of one acquire in the wait queue of its resource, as a queue master last reported it. It is lost with the
/// connection to that master, and counts only as long as it is the queue master.
class queue_entry
{
  public:
    queue_entry(lock_service& service, const acquire_call& call);

    /// Returns the time at which the acquire began. Its age determines its position.
    clock::time_point began() const noexcept { return began_; }

    /// Counts as a waiting client from now on. Messages notify `wake_event`. Returns false if there are too many.
    bool start_waiting(runtime::async_event& wake_event);
    bool is_waiting() const noexcept { return waiter_.has_value(); }
    /// Returns the message that has arrived since the last question, if any.
    std::optional<net::wake_reason> woken() const noexcept
    {
        return waiter_ ? waiter_->woken() : std::nullopt;
    }
    /// Returns whether a release has woken it since the last question.
    bool is_released() const noexcept { return woken() == net::wake_reason::released; }

    /// Returns the question to a master. It enters the acquire in the queue if that waits.
    net::question question_at(std::size_t master) const;
    /// Does so for a question that is sent now, so that earlier messages are out of date. The result exists until the
    /// next call.
    const net::question& next_question_at(std::size_t master);
    /// Returns the name of the entry at a master.
    net::queue_member member_at(std::size_t master) const noexcept;

    /// Returns whether the acquire is in the queue of the present queue master.
    bool is_at_queue_master() const;
    /// Returns whether it was the first in the queue when the master answered last. Requires that it is in one.
    bool is_first() const noexcept { return place_->rank == 0U; }
    /// Returns the master in whose queue it is. Requires that it is in one.
    std::size_t master() const noexcept { return place_->master; }
    /// Returns the time of the next question if no message arrives. Requires an entry.
    clock::time_point ask_at() const noexcept { return place_->ask_at; }
    /// Returns the last position, also after it has left.
    const std::optional<queue_position>& last_position() const noexcept { return reported_; }

    /// The queue master has entered it. Decides when to ask again, and notifies the observer of a new position.
    void enter(std::size_t queue_master, const core::queue_position& position);
    /// It keeps its position after a lost round, or a question without an answer may have entered it. The next question
    /// may be asked at any time. Does nothing if the acquire doesn't wait.
    void stay(std::size_t queue_master);
    /// It is in no queue any more.
    void drop() noexcept { place_.reset(); }
    /// Leaves the queue if it is in one.
    void leave();
    /// Leaves the queue if it is that of another master than this one, or if there is none.
    void leave_unless_at(const std::optional<std::size_t>& master);

  private:
    struct place
    {
        std::size_t master;
        std::uint64_t connection; // A reconnect may have ended the queue, or our subscription.
        net::queue_member member;
        std::optional<std::size_t> rank{}; // As the master answered last.
        clock::time_point rank_changed{};
        clock::time_point ask_at{};
    };

    place place_at(std::size_t master) const;
    bool has_connection() const;
    void report(std::size_t queue_master, const core::queue_position& position);

    lock_service& service_;
    const acquire_call& call_;
    clock::time_point began_;
    std::optional<waiter> waiter_;
    net::question sent_{};
    std::optional<place> place_;
    std::optional<queue_position> reported_;
};

} // namespace redlock::manager
