// SPDX-License-Identifier: BSL-1.0
// What is owed to one master: every key that may be there for us, and that nobody has seen deleted.
#pragma once

#include "net/claim.hpp"

#include <cstddef>
#include <deque>

namespace redlock::net
{

/// The debts of one master. Nothing is struck off by the clock: a key's ttl starts when its SET runs, which
/// may be long after it was sent. There is a bound: at it no further SET is sent.
///
/// It keeps the claims that are due. One whose release was asked for is kept by that command, and before that by whoever
/// will ask for it.
class ledger
{
  public:
    ledger(std::size_t master, std::size_t most) noexcept : master_{master}, most_{most} {}
    ledger(const ledger&) = delete;
    ledger& operator=(const ledger&) = delete;

    /// Whether a debt more may be made. One that exists already needs no room.
    bool has_room(const claim& of) const noexcept
    {
        return of.at(master_).state != debt_state::none || count_ < most_;
    }
    std::size_t count() const noexcept { return count_; }

    /// A SET is sent.
    void incur(claim& of) noexcept;
    /// It was answered with an error that rules out that it has run. Nothing is kept of it, unless an earlier or a later SET
    /// of the same owner id may have run.
    void rule_out(claim& of) noexcept;
    /// The key is to be released. Does nothing for what isn't there.
    void demand(claim& of);
    /// Whether one may be due.
    bool has_due() const noexcept { return !due_.empty(); }
    /// The next one to be released, or null.
    claim* next_due() noexcept;
    /// Its release is sent. One that was incurred isn't demanded before. The caller keeps it.
    void ask(claim& of) noexcept;
    /// The release was answered, or its SET never went out: nothing is left.
    void settle(claim& of) noexcept;
    /// The release was lost with its connection, or is to be tried again.
    void ask_again(claim& of);

  private:
    std::size_t master_;
    std::size_t most_;
    std::size_t count_ = 0;
    std::deque<claim_ptr> due_; // And some that aren't any more.
};

} // namespace redlock::net
