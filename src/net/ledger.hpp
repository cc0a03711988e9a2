// SPDX-License-Identifier: BSL-1.0
// What is owed to one master: every key that may be there for us, and that nobody has seen deleted.
#pragma once

#include "net/claim.hpp"

#include <cstddef>

namespace redlock::net
{

/// The debts of one master. Nothing is struck off by the clock: a key's ttl starts when its SET runs, which
/// may be long after it was sent. There is a bound: at it no further SET is sent.
class ledger
{
  public:
    explicit ledger(std::size_t most) noexcept : most_{most} {}
    ledger(const ledger&) = delete;
    ledger& operator=(const ledger&) = delete;
    ~ledger();

    /// Whether a debt more may be made. One that exists already needs no room.
    bool has_room(const debt& item) const noexcept
    {
        return item.state != debt_state::none || count_ < most_;
    }
    std::size_t count() const noexcept { return count_; }

    /// A SET goes out.
    void incur(debt& item);
    /// The key is to be released. Does nothing for what isn't there.
    void demand(debt& item);
    /// The next one to be released, or none.
    debt* next_due() noexcept { return due_.empty() ? nullptr : &due_.front(); }
    /// Its release goes out. One that was incurred isn't demanded before.
    void ask(debt& item);
    /// The release was answered, or its SET never went out: nothing is left.
    void settle(debt& item) noexcept;
    /// The release was lost with its connection, or is to be tried again.
    void ask_again(debt& item);

  private:
    using debt_list = intrusive::list<debt>;

    void move(debt& item, debt_state to);
    debt_list& list_of(debt_state state) noexcept;

    std::size_t most_;
    std::size_t count_ = 0;
    debt_list standing_; // Incurred or asked.
    debt_list due_;
};

} // namespace redlock::net
