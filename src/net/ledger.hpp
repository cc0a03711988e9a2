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
/// The state of each key (`outstanding_state`) is stored in its claim; the ledger changes it, counts the outstanding
/// keys, and queues those that are due. A key passes these states:
///
/// - `none` to `sent`: a SET is sent (`mark_sent`).
/// - `sent` to `due`: the key has to be released, but the release can't be sent now (`mark_due`).
/// - `sent` or `due` to `release_sent`: the release is sent (`mark_release_sent`).
/// - `release_sent` to `due`: the release was lost with its connection, or was refused temporarily (`requeue`).
/// - any to `none`: the release was answered, or no SET can have run (`clear`, `rule_out`).
///
/// The connection calls `mark_due`; the pipeline calls all other functions that change a state, when it sends a command,
/// receives a reply or loses the connection. All calls are made on the strand.
///
/// Guarantees:
/// - Time doesn't clear a key: its ttl starts when the SET runs, which may be long after it was sent.
/// - At most `max_keys` keys are outstanding. The caller checks `has_room` ahead of each SET.
/// - Claims that are due are kept alive. In state `release_sent`, the command in flight keeps the claim alive; in state
///   `sent`, the operation or lease that will release it.
class ledger
{
  public:
    ledger(std::size_t master, std::size_t max_keys) : master_{master}, max_keys_{max_keys} {}
    ledger(const ledger&) = delete;
    ledger& operator=(const ledger&) = delete;

    /// Returns whether a SET may be sent for a claim: its key is outstanding already, or there is room for another one.
    bool has_room(const claim& of) const noexcept
    {
        return of.at(master_).state != outstanding_state::none || count_ < max_keys_;
    }
    /// Returns the number of outstanding keys.
    std::size_t count() const noexcept { return count_; }

    /// Records that a SET is sent.
    void mark_sent(claim& of) noexcept;
    /// Records that a SET was answered with an error that rules out that it ran. Clears the key, unless another SET of
    /// the same owner id may have run.
    void rule_out(claim& of) noexcept;
    /// Records that the key has to be released. Does nothing if it isn't outstanding, is due already, or has its release
    /// in flight.
    void mark_due(claim& of);
    /// Returns whether a key may be due.
    bool has_due() const noexcept { return !due_.empty(); }
    /// Returns the next claim whose key is due, or null.
    claim* next_due() noexcept;
    /// Records that the release is sent. The caller keeps the claim alive from now on.
    void mark_release_sent(claim& of) noexcept;
    /// Clears the key: the release was answered, or no SET can have run.
    void clear(claim& of) noexcept;
    /// Makes the key due again: the release was lost with its connection, or is to be repeated.
    void requeue(claim& of);

  private:
    std::size_t master_;
    std::size_t max_keys_;
    std::size_t count_ = 0;
    std::deque<claim_ptr> due_; // May include claims that are no longer due.
};

} // namespace redlock::net
