// SPDX-License-Identifier: BSL-1.0
// One attempt to lock a resource: its key, its owner id, and the masters that may have the key.
#pragma once

#include <redlock/vote.hpp>

#include "runtime/cache.hpp"

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

/// The state of a claim's key at one master. See `ledger`.
enum class outstanding_state : std::uint8_t
{
    none,        // The master doesn't have the key: no SET was sent, or the release was answered.
    sent,        // A SET was sent, so the master may have the key. No release has been requested.
    due,         // The release has to be sent as soon as a connection is ready.
    release_sent // The release was sent on the current connection. Its reply clears the key.
};

/// An outstanding key: one that a master may have, because its release has not been confirmed.
struct outstanding_key
{
    outstanding_state state = outstanding_state::none;
    /// A SET may have run. While this is false, the key is cleared if the SET turns out not to have been written, or is
    /// answered with an error that rules out that it ran.
    bool maybe_there = false;
};

/// The key and the owner id of one attempt, with the state of the key at each master.
///
/// Claims are reference-counted. They are kept alive by the lease, the manager's list of leases, operations, commands
/// in flight and ledgers. A lease may be destroyed on any thread, so `keep` and `let_go` are atomic. The references on
/// the strand (`claim_ptr`) have a separate, cheaper count, and together hold one of the atomic references.
class alignas(runtime::cache_line) claim
{
  public:
    static constexpr std::size_t owner_id_length = 32; // 128 bits in hexadecimal digits.

    claim() = default;
    claim(const claim&) = delete;
    claim& operator=(const claim&) = delete;

    std::string_view key() const noexcept { return key_; }
    std::string_view owner_id() const noexcept { return {owner_id_.data(), owner_id_.size()}; }
    /// Returns whether no master has an outstanding key.
    bool nothing_outstanding() const noexcept
    {
        return std::all_of(
            outstanding_.begin(), outstanding_.end(),
            [](const outstanding_key& each) { return each.state == outstanding_state::none; });
    }
    outstanding_key& at(std::size_t master) noexcept { return outstanding_[master]; }
    const outstanding_key& at(std::size_t master) const noexcept { return outstanding_[master]; }

    /// Adds a reference. Thread-safe, as is `let_go`.
    void keep() noexcept { keepers_.fetch_add(1, std::memory_order_relaxed); }
    void let_go() noexcept
    {
        if (keepers_.fetch_sub(1, std::memory_order_acq_rel) == 1)
        {
            recycle();
        }
    }

    /// Called on the strand only.
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
    /// Called without references left, on the thread that dropped the last one.
    virtual void recycle() noexcept = 0;

  private:
    // The members that are used for each reply are in the first cache line.
    std::uint32_t uses_ = 0;
    std::atomic<std::uint32_t> keepers_{0};
    std::array<outstanding_key, max_masters> outstanding_{};

  protected:
    std::string key_;
    std::array<char, owner_id_length> owner_id_{};
};

using claim_ptr = boost::intrusive_ptr<claim>;

} // namespace redlock::net
