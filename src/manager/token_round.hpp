// SPDX-License-Identifier: BSL-1.0
// The fencing token of a round in guarded mode: the counters of its grants, and the commands that make them equal.
#pragma once

#include <redlock/report.hpp>

#include "core/ballot.hpp"
#include "core/fencing.hpp"
#include "net/vote_sink.hpp"
#include "runtime/scheduler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace redlock::manager
{

class lock_service;
class round;

/// The second half of a round that acquires in guarded mode. The masters' grants carry counters. If a quorum has the same one,
/// that is the token. Otherwise the smaller ones are raised to the largest, and the round is won when a quorum has
/// acknowledged that. Each raise has a node timeout.
///
/// Belongs to its round, which it keeps alive until the last raise is answered.
class token_round final : public net::vote_sink
{
  public:
    token_round(lock_service& service, round& of, std::size_t masters);

    /// Resets it. `hint` is proposed to all masters as their next counter.
    void begin(std::uint64_t hint) noexcept;
    /// Returns what is proposed to the masters that haven't been asked yet.
    std::uint64_t hint() const noexcept { return std::max(hint_, choice_.largest()); }

    /// A master has granted with this counter.
    void add_grant(std::size_t master, std::uint64_t counter) noexcept;
    /// Sends a raise to each master whose counter is below the target, once.
    void raise() noexcept;
    /// Returns the result of a round in which a quorum granted, and as many masters as `pending` have not voted yet.
    core::verdict outcome(std::size_t pending) const noexcept;
    std::optional<std::uint64_t> token() const noexcept { return choice_.token(); }
    /// Returns how many masters granted, but have not acknowledged the raise.
    std::size_t failed_raises() const noexcept { return choice_.failed_raises(); }
    /// Changes the report of a master that granted, but has not acknowledged the raise.
    void amend(std::size_t master, master_report& out) const;
    /// Ends the node timeout, because nobody waits for the token any more.
    void ignore() noexcept { deadline_.disarm(); }

  private:
    struct failing
    {
        vote what = vote::granted;
        error_code reason;
        short_text detail;
    };

    class raise_deadline final : public runtime::deadline
    {
      public:
        explicit raise_deadline(token_round& of) noexcept : of_{of} {}

      private:
        void on_deadline() override { of_.on_timeout(); }

        token_round& of_;
    };

    void on_vote(std::size_t master, const net::answer& result, clock::time_point at) noexcept override;
    bool append_in_full(std::size_t master, std::string& out) const override;
    void recycle() noexcept override;
    void on_timeout() noexcept;
    void fail(std::size_t master, const net::answer& result) noexcept;

    lock_service& service_;
    round& of_;
    std::size_t masters_;
    std::uint64_t hint_ = 0;
    core::token_choice choice_;
    std::uint32_t sent_ = 0;    // One bit for each master that was sent a raise.
    std::uint32_t pending_ = 0; // And hasn't answered it.
    bool keeps_round_ = false;
    std::vector<failing> failed_; // By master; empty if no raise has failed.
    raise_deadline deadline_{*this};
};

} // namespace redlock::manager
