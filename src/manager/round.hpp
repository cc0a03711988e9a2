// SPDX-License-Identifier: BSL-1.0
// One fan-out to all masters: who voted what and when, and the deadline of those who haven't.
#pragma once

#include <redlock/detail/gate_ptr.hpp>
#include <redlock/report.hpp>

#include "core/ballot.hpp"
#include "env/cache.hpp"
#include "env/scheduler.hpp"
#include "manager/holding.hpp"
#include "net/voter.hpp"

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::manager
{

class lock_service;

/// A round in flight. It outlives its operation by as long as commands of it are unanswered.
class alignas(env::cache_line) round final : public net::voter
{
  public:
    round(lock_service& service, std::size_t masters);

    /// Makes it fresh. What comes in wakes `listener`, until `ignore`.
    void begin(redlock::operation what, holding& about, std::chrono::milliseconds ttl, env::wake* listener);
    /// Nobody listens any more.
    void ignore() noexcept;
    /// Sets the deadline of the masters, once everything is sent.
    void await_votes();
    /// One master alone was asked, whether it is our turn: its answer wakes the listener, whatever it is.
    void await_turn(bool in_line);
    /// Until that has come, or the node timeout is over.
    bool awaits_turn() const noexcept { return awaits_turn_; }
    /// When it is, by the master that was asked; empty if it didn't say.
    std::optional<clock::time_point> turn() const noexcept { return turn_; }
    /// As far as that master knows: others stand in line.
    bool others_wait() const noexcept { return others_wait_; }

    core::verdict outcome() const noexcept { return ballot_.outcome(); }
    const core::ballot& ballot() const noexcept { return ballot_; }
    /// The node timeout is over. In an extension, votes still count after it.
    bool timed_out() const noexcept { return timed_out_; }
    /// Of a release: so many masters have nothing of it any more that they are a quorum.
    bool confirmed() const noexcept;
    /// Of a release: no vote to come makes a difference to `confirmed`.
    bool settled() const noexcept;

    /// What the round ended with is known: the votes that are missing make no difference to its error.
    bool has_result() const noexcept;
    /// That error; empty for a success. What an acquire won has too little validity, or it wouldn't ask.
    error_code result() const noexcept;
    /// The observer is notified as soon as there is a result, whether or not anything waits for it any more. `number` is
    /// that of the round in its operation.
    void report_to_observer(std::uint32_t number);
    /// The same at once, with what is known: its lease is lost.
    void report_now();
    /// The observer isn't notified: the round was given up.
    void drop_report() noexcept;

    /// So many masters refuse us for good (wrong password, no permission, bad certificate, not a master of its own) that the others
    /// are no quorum: another round would end the same.
    bool hopeless() const noexcept;

    clock::time_point started() const noexcept { return started_; }
    std::chrono::milliseconds ttl() const noexcept { return ttl_; }
    std::chrono::milliseconds node_timeout() const noexcept { return node_timeout_; }
    holding& about() const noexcept { return *about_; }

    /// Puts the votes into a report. A pending one whose time is over is reported as timed out.
    void describe(report& out) const;

    void on_vote(std::size_t master, const net::answer& said, clock::time_point at) noexcept override;
    bool append_in_full(std::string& out) const override;

  private:
    /// Why a master gave no answer, and what was said to it.
    struct failing
    {
        error_code reason;
        short_text said;
    };

    class node_deadline final : public env::deadline
    {
      public:
        explicit node_deadline(round& of) noexcept : of_{of} {}

      private:
        void on_deadline() override { of_.on_node_timeout(); }

        round& of_;
    };

    void book(std::size_t master, clock::duration elapsed, const net::answer& said);
    void report_if_known();
    void on_node_timeout();
    void recycle() noexcept override;
    bool is_worth_telling() const noexcept;
    void tell() noexcept;

    // What each vote needs, in the first two lines of the processor's cache.
    core::ballot ballot_;
    redlock::operation what_ = redlock::operation::acquire;
    bool timed_out_ = false;
    bool awaits_turn_ = false;
    bool others_wait_ = false;
    bool in_line_ = false;
    bool unreported_ = false; // The observer has to be notified.
    env::wake* listener_ = nullptr;
    clock::time_point started_{};
    boost::intrusive_ptr<holding> about_;
    std::array<clock::duration, max_masters> elapsed_{}; // Of each vote that was cast.

    lock_service& service_;
    std::chrono::milliseconds ttl_{0};
    std::chrono::milliseconds node_timeout_{0};
    node_deadline deadline_{*this};
    std::vector<failing> failed_; // Of each master; empty while all that voted answered.
    std::optional<clock::time_point> turn_{};
    std::uint32_t number_ = 1;
    unreported_extension in_flight_{*this};
};

using round_ptr = boost::intrusive_ptr<round>;

/// A round with somebody who waits for it. When this goes, the round goes on without a listener.
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
