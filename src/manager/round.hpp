// SPDX-License-Identifier: BSL-1.0
// A request to all masters: their votes, and the deadline of those that haven't voted.
#pragma once

#include <redlock/detail/handles.hpp>
#include <redlock/report.hpp>

#include "core/ballot.hpp"
#include "manager/lease_state.hpp"
#include "manager/token_round.hpp"
#include "net/queue_commands.hpp"
#include "net/vote_sink.hpp"
#include "runtime/cache.hpp"
#include "runtime/scheduler.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::manager
{

class lock_service;

/// A round in flight, from the first command to the last reply. It may outlive its operation.
///
/// It is driven from three sides, all on the strand:
///
/// - `lock_service` calls `begin`, passes the round to the connections with each command, and calls `await_votes`,
///   which starts the node timeout.
/// - The connections call `on_vote` once per command: with the reply, or at once if nothing can be sent. A vote that
///   decides something wakes the listener, which then reads `outcome()` and `result()`.
/// - The node timeout counts missing votes as timed out. The votes of an extension are accepted later as well, for
///   as long as the lease is valid.
///
/// Commands in flight hold references, so a late reply always finds its round. Afterwards it is reused for another
/// round.
class alignas(runtime::cache_line) round final : public net::vote_sink
{
  public:
    round(lock_service& service, std::size_t masters);

    /// Resets the round. Votes wake `listener`, which may be null, until `ignore`.
    void begin(
        redlock::operation what, lease_state& lease, std::chrono::milliseconds ttl,
        runtime::async_event* listener);
    /// Detaches the listener.
    void ignore() noexcept;
    /// Starts the node timeout, after all commands were sent.
    void await_votes();
    /// Starts the node timeout, before only the queue master is asked. Its answer always wakes the listener. `asked` must
    /// exist until `ignore`.
    void await_queue_master(std::size_t master, const net::question& asked);
    /// The queue master that was asked; empty if the round is one of plain SETs.
    std::optional<std::size_t> queue_master() const noexcept { return queue_master_; }
    /// The vote of the queue master that was asked; `unsent` if none was.
    vote queue_vote() const noexcept { return queue_master_ ? ballot_.of(*queue_master_) : vote::unsent; }
    /// True if the queue master refused, and has no other client in the queue.
    bool refused_without_others() const noexcept
    {
        return queue_vote() == vote::denied && position_ && position_->waiting == 1;
    }
    /// Our position, if the queue master has refused and entered us in the queue.
    const std::optional<core::queue_position>& position() const noexcept { return position_; }
    /// The queue master's refusal counts even if a quorum of masters has granted, because others came first.
    void respect_queue() noexcept { respects_queue_ = true; }
    /// True if the round was won, but ahead of other clients in the queue.
    bool overtakes() const noexcept { return respects_queue_ && queue_vote() == vote::denied; }

    /// Of a release that was sent to all masters but `master`: sends it there after the vote of `first`, or after its
    /// node timeout.
    void hold_back(std::size_t master, std::size_t first) noexcept;
    /// Sends it at once.
    void send_held_back() noexcept;

    /// In guarded mode, a round that acquires is won only with a fencing token.
    core::verdict outcome() const noexcept { return guarded_ ? guarded_outcome() : ballot_.outcome(); }
    /// Returns the reason why the round was lost. Meaningful only for a lost round.
    core::refusal why_lost() const noexcept
    {
        return ballot_.why_lost(guarded_ ? tokens_->failed_raises() : 0);
    }
    /// Of a round that was won: the fencing token; 0 in plain mode.
    std::uint64_t fencing_token() const noexcept
    {
        return guarded_ ? tokens_->token().value_or(0) : std::uint64_t{0};
    }
    /// In guarded mode, returns the counter that is proposed to the masters that haven't been asked yet.
    std::uint64_t hint() const noexcept { return tokens_->hint(); }
    /// A raise was answered, or has timed out.
    void on_raised() noexcept;
    const core::ballot& ballot() const noexcept { return ballot_; }
    /// True after the node timeout. Votes of an extension are still counted then.
    bool timed_out() const noexcept { return timed_out_; }
    /// Of a release: a quorum of masters has no key of this owner.
    bool confirmed() const noexcept;
    /// Of a release: the pending votes can't change `confirmed` any more.
    bool settled() const noexcept;

    /// True if the pending votes can't change the error any more.
    bool has_result() const noexcept;
    /// That error; empty for success. `validity_exhausted` for a won acquire, which reads the result only if it has no
    /// lease.
    error_code result() const noexcept;
    /// Reports the round as soon as there is a result, with or without a listener: to the observer, and if it is a failed
    /// extension of a kept lease, to that. `number` is that of the round in its operation.
    void report_result(std::uint32_t number);
    /// Reports it immediately with the present result, because the lease is lost.
    void report_now();
    /// Cancels the report, because the round was abandoned.
    void drop_report() noexcept;

    /// True if too many masters refuse permanently (wrong password, no permission, untrusted certificate, not an
    /// independent master) to leave a quorum. Another round would end in the same way.
    bool quorum_permanently_unreachable() const noexcept;

    clock::time_point started() const noexcept { return started_; }
    /// The question to the queue master. Null if it wasn't asked.
    const net::question* question() const noexcept { return queue_master_ ? asked_ : nullptr; }
    std::chrono::milliseconds ttl() const noexcept { return ttl_; }
    std::chrono::milliseconds node_timeout() const noexcept { return node_timeout_; }
    lease_state& lease() const noexcept { return *lease_; }

    /// Writes the votes to a report. A pending vote after the node timeout is reported as timed out.
    void describe(report& out) const;
    /// The present votes of all masters.
    std::vector<master_report> votes() const;

    void on_vote(std::size_t master, const net::answer& result, clock::time_point at) noexcept override;
    bool append_in_full(std::size_t master, std::string& out) const override;

  private:
    struct held_back
    {
        std::uint8_t master;
        std::uint8_t first;
        bool was_sent = false; // `elapsed_` has the time until then.
    };

    /// The reason for a missing answer, and the server's message.
    struct failing
    {
        error_code reason;
        short_text detail;
    };

    class node_deadline final : public runtime::deadline
    {
      public:
        explicit node_deadline(round& of) noexcept : of_{of} {}

      private:
        void on_deadline() override { of_.on_node_timeout(); }

        round& of_;
    };

    void record(std::size_t master, clock::duration elapsed, const net::answer& result);
    core::verdict guarded_outcome() const noexcept;
    bool holds_back() const noexcept { return held_back_ && !held_back_->was_sent; }
    clock::time_point held_back_ends() const noexcept
    {
        return started_ + elapsed_[held_back_->master] + node_timeout_;
    }
    void on_guarded_vote(std::size_t master, const net::answer& result);
    void report_if_known();
    void on_node_timeout();
    void recycle() noexcept override;
    void on_queue_vote(std::size_t master, const net::answer& result) noexcept;
    bool is_worth_notifying() const noexcept;
    void notify() noexcept;

    // Accessed for each vote: kept within the first two cache lines.
    core::ballot ballot_;
    redlock::operation what_ = redlock::operation::acquire;
    bool timed_out_ = false;
    bool asks_alone_ = false; // No SET was sent to the other masters yet.
    bool respects_queue_ = false;
    bool unreported_ = false; // The result is still to be reported.
    bool guarded_ = false;    // It acquires in guarded mode.
    runtime::async_event* listener_ = nullptr;
    clock::time_point started_{};
    boost::intrusive_ptr<lease_state> lease_;
    std::array<clock::duration, max_masters> elapsed_{}; // By master; set with its vote.

    lock_service& service_;
    std::chrono::milliseconds ttl_{0};
    std::chrono::milliseconds node_timeout_{0};
    node_deadline deadline_{*this};
    std::vector<failing> failed_; // By master; empty if no vote had an error or message.
    std::optional<std::size_t> queue_master_{};
    std::optional<core::queue_position> position_{};
    const net::question* asked_ = nullptr; // Exists as long as the listener.
    net::queue_member member_{};
    std::uint32_t number_ = 1;
    std::optional<held_back> held_back_{}; // The release that is sent later, or was.
    listed_round in_list_{*this};
    std::unique_ptr<token_round> tokens_; // Null in plain mode.
};

using round_ptr = boost::intrusive_ptr<round>;

/// The reference of an operation to its round. On destruction, the round continues without a listener.
class awaited_round
{
  public:
    awaited_round() = default;
    explicit awaited_round(round_ptr votes) noexcept : votes_{std::move(votes)} {}
    awaited_round(awaited_round&& other) noexcept = default;
    awaited_round& operator=(awaited_round&& other) noexcept
    {
        awaited_round replaced{std::move(*this)};
        votes_ = std::move(other.votes_);
        return *this;
    }
    ~awaited_round()
    {
        if (votes_)
        {
            votes_->ignore();
        }
    }

    round* operator->() const noexcept { return votes_.get(); }
    round& operator*() const noexcept { return *votes_; }
    explicit operator bool() const noexcept { return votes_ != nullptr; }

  private:
    round_ptr votes_;
};

} // namespace redlock::manager
