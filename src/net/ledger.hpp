// SPDX-License-Identifier: BSL-1.0
// The outstanding keys of one master: keys that a SET of ours may have created, and whose release isn't confirmed.
#pragma once

#include "net/claim.hpp"

#include <cstddef>
#include <deque>

namespace redlock::net
{

/// The outstanding keys of one master. It outlives the individual connections to it.
///
/// The state of each key (`debt_state`) is stored in its claim; the ledger changes it, counts the outstanding keys, and
/// queues those that are due. A key passes these states:
///
/// - `none` to `incurred`: a SET is sent (`incur`).
/// - `incurred` to `due`: the key has to be released, but the release can't be sent now (`demand`).
/// - `incurred` or `due` to `asked`: the release is sent (`ask`).
/// - `asked` to `due`: the release was lost with its connection, or was refused temporarily (`ask_again`).
/// - any to `none`: the release was answered, or no SET can have run (`settle`, `rule_out`).
///
/// The connection calls `demand`; the pipeline calls all other functions that change a state, when it sends a command,
/// receives a reply or loses the connection. All calls are made on the strand.
///
/// Guarantees:
/// - Time doesn't clear a key: its ttl starts when the SET runs, which may be long after it was sent.
/// - At most `most` keys are outstanding. The caller checks `has_room` ahead of each SET.
/// - Claims that are due are kept alive. In state `asked`, the command in flight keeps the claim alive; in state
///   `incurred`, the operation or lease that will release it.
class ledger
{
  public:
    ledger(std::size_t master, std::size_t most) noexcept : master_{master}, most_{most} {}
    ledger(const ledger&) = delete;
    ledger& operator=(const ledger&) = delete;

    /// Returns whether a SET may be sent for a claim: its key is outstanding already, or there is room for another one.
    bool has_room(const claim& of) const noexcept
    {
        return of.at(master_).state != debt_state::none || count_ < most_;
    }
    /// Returns the number of outstanding keys.
    std::size_t count() const noexcept { return count_; }

    /// Records that a SET is sent.
    void incur(claim& of) noexcept;
    /// Records that a SET was answered with an error that rules out that it ran. Clears the key, unless another SET of
    /// the same owner id may have run.
    void rule_out(claim& of) noexcept;
    /// Records that the key has to be released. Does nothing if it isn't outstanding, or is due or asked already.
    void demand(claim& of);
    /// Returns whether a key may be due.
    bool has_due() const noexcept { return !due_.empty(); }
    /// Returns the next claim whose key is due, or null.
    claim* next_due() noexcept;
    /// Records that the release is sent. The caller keeps the claim alive from now on.
    void ask(claim& of) noexcept;
    /// Clears the key: the release was answered, or no SET can have run.
    void settle(claim& of) noexcept;
    /// Makes the key due again: the release was lost with its connection, or is to be repeated.
    void ask_again(claim& of);

  private:
    std::size_t master_;
    std::size_t most_;
    std::size_t count_ = 0;
    std::deque<claim_ptr> due_; // May include claims that are no longer due.
};

} // namespace redlock::net
