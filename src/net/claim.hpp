// SPDX-License-Identifier: BSL-1.0
// One owner id's stake in one resource, and what each master may still have of it.
#pragma once

#include <redlock/vote.hpp>

#include "env/cache.hpp"

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::net
{

/// Where a claim stands with one master.
enum class debt_state : std::uint8_t
{
    none,     // No SET of it went there, or its release was answered: nothing is left there.
    incurred, // A SET was sent: the key may be there. It isn't to be released yet.
    due,      // It is to be released as soon as a connection is ready.
    asked     // The release was sent on the connection that is up; the answer settles it.
};

/// What one master may still have of a claim: a key that nobody has seen deleted.
struct debt
{
    debt_state state = debt_state::none;
    /// A SET of it may have run. Until then, a connection that breaks or an answer that rules it out leaves nothing behind.
    bool maybe_there = false;
};

/// The key and the owner id of one attempt, and a debt for each master. Counted: the lease, the manager's list of those,
/// the operations, the commands in flight and what is due keep it alive. What the strand has of it is counted on the strand,
/// and counts as one among those who keep it, of whom a lease may be dropped on any thread.
class alignas(env::cache_line) claim
{
  public:
    static constexpr std::size_t owner_id_length = 32; // 128 bits in hexadecimal digits.

    claim() = default;
    claim(const claim&) = delete;
    claim& operator=(const claim&) = delete;

    std::string_view key() const noexcept { return key_; }
    std::string_view owner_id() const noexcept { return {owner_id_.data(), owner_id_.size()}; }
    /// No master may have anything of it.
    bool is_settled() const noexcept
    {
        return std::all_of(
            debts_.begin(), debts_.end(), [](const debt& each) { return each.state == debt_state::none; });
    }
    debt& at(std::size_t master) noexcept { return debts_[master]; }
    const debt& at(std::size_t master) const noexcept { return debts_[master]; }

    /// On any thread.
    void keep() noexcept { keepers_.fetch_add(1, std::memory_order_relaxed); }
    void let_go() noexcept
    {
        if (keepers_.fetch_sub(1, std::memory_order_acq_rel) == 1)
        {
            recycle();
        }
    }

    /// On the strand.
    friend void intrusive_ptr_add_ref(claim* self) noexcept
    {
        if (self->uses_++ == 0)
        {
            self->keep();
        }
    }
    friend void intrusive_ptr_release(claim* self) noexcept
    {
        if (--self->uses_ == 0)
        {
            self->let_go();
        }
    }

  protected:
    virtual ~claim() = default;
    /// Nobody keeps it any more. On the thread of the last one.
    virtual void recycle() noexcept = 0;

  private:
    // What each reply needs, in one line of the processor's cache.
    std::uint32_t uses_ = 0;
    std::atomic<std::uint32_t> keepers_{0};
    std::array<debt, max_masters> debts_{};

  protected:
    std::string key_;
    std::array<char, owner_id_length> owner_id_{};
};

using claim_ptr = boost::intrusive_ptr<claim>;

} // namespace redlock::net
