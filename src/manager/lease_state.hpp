// SPDX-License-Identifier: BSL-1.0
// The state of a lease: its key and owner id, its validity, and its keeper.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/handles.hpp>
#include <redlock/report.hpp>

#include "net/claim.hpp"
#include "runtime/environment.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::manager
{

class expiry_watch;
class keeper;
class round;

} // namespace redlock::manager

namespace redlock::detail
{

/// The life of a lease state, which only moves forward.
enum class lease_phase : std::uint8_t
{
    pending, // There is no lease, because its round is pending or was lost.
    held,    // A lease was handed out.
    lost,    // The lease isn't known to be valid any more, or not for long enough.
    released // The release has begun.
};

/// A coroutine in one of the lists of a lease state: waiting to extend it, or watching it.
struct place_in_line : runtime::unlinking_hook
{
    explicit place_in_line(runtime::async_event& waiter) noexcept : waiting{waiter} {}
    runtime::async_event& waiting;
};

/// A round in a list: an extension of which the observer is still to be notified, or a release that is held back.
struct listed_round : runtime::unlinking_hook
{
    explicit listed_round(manager::round& votes) noexcept : of{votes} {}
    manager::round& of;
};

/// The votes of an extension that failed. A report has room for the largest number of masters, and a lease may keep these for as
/// long as an outage lasts.
struct failed_extension
{
    error_code result;
    std::chrono::nanoseconds elapsed{};
    std::chrono::milliseconds node_timeout{};
    std::vector<master_report> votes;
    std::shared_ptr<const master_names> names;

    report to_report() const;
};

/// The hook for the manager handle's lists: handed back, or unused.
using handle_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<struct handle_lists>>;
/// The hook for the manager's list of leases.
using lease_hook = boost::intrusive::list_base_hook<
    boost::intrusive::tag<struct lease_list>, boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

/// The state that a `lease` refers to, and a claim on the masters from the first SET to the last confirmed release.
///
/// An acquire takes one from the manager handle's pool for each attempt and calls `assign`, which draws the owner id. If
/// the round is won, `hold` starts the validity, and `extend`, `lose`, `disown` and `begin_release` follow. It returns
/// to the pool when the lease, all operations and all outstanding commands have dropped it.
///
/// Key, owner id, state, validity, and what came before the loss may be read on any thread; everything else belongs to the strand.
class lease_state final : public net::claim, public handle_hook, public lease_hook
{
    // First, because every access needs them: they share a cache line.
    std::atomic<lease_phase> phase_{lease_phase::pending};
    std::atomic<bool> release_requested_{false};
    std::atomic<bool> loss_explained_{false};
    std::uint16_t prefix_length_ = 0; // At most 1024. Here, because it fits into a gap.
    std::atomic<clock::rep> valid_until_{0};
    clock::time_point confirmed_{};

  public:
    lease_state();
    ~lease_state() override;

    /// Resets the lease state for a resource, with a new owner id.
    void assign(
        std::shared_ptr<manager_handle> handle, const runtime::environment& outside, std::string_view prefix,
        std::string_view resource);

    std::string_view resource() const noexcept { return std::string_view{key_}.substr(prefix_length_); }
    const std::shared_ptr<manager_handle>& handle() const noexcept { return handle_; }

    lease_phase phase() const noexcept { return phase_.load(std::memory_order_acquire); }
    clock::time_point valid_until() const noexcept
    {
        return clock::time_point{clock::duration{valid_until_.load(std::memory_order_acquire)}};
    }

    /// Starts the validity after a won round.
    void hold(clock::time_point until, clock::time_point confirmed) noexcept;
    /// Prolongs the validity after a confirmed extension that was sent at `sent`. Never shortens it.
    void extend(clock::time_point until, clock::time_point sent) noexcept;
    /// Declares the loss, and leaves `valid_until` unchanged. Returns false if it isn't held.
    bool lose(errc why) noexcept;
    /// Declares the loss and ends the validity: the key is missing or not ours. Returns false if it isn't held.
    bool disown() noexcept;
    /// Ends the lease and its validity. Returns false if it is neither held nor lost.
    bool begin_release() noexcept;

    /// Records that `async_release` was called, so that the destructor of the lease doesn't hand it back as well.
    void request_release() noexcept { release_requested_.store(true, std::memory_order_relaxed); }
    /// Revokes that, because the release couldn't be started.
    void withdraw_release() noexcept { release_requested_.store(false, std::memory_order_relaxed); }
    bool release_requested() const noexcept { return release_requested_.load(std::memory_order_relaxed); }

    /// The reason of the loss.
    error_code lost_because() const noexcept { return lost_because_; }
    /// Publishes `failed`, which doesn't change any more: the lease is lost, and all extensions are reported.
    void explain_loss() noexcept { loss_explained_.store(true, std::memory_order_release); }
    /// Returns the failed extension before the loss, on any thread; null if there was none, or the loss isn't explained yet.
    const failed_extension* before_loss() const noexcept
    {
        return loss_explained_.load(std::memory_order_acquire) ? failed.get() : nullptr;
    }
    /// The reason why it can't be extended; empty if it can.
    error_code why_not_extendable(clock::time_point now) const noexcept;
    /// The time at which the latest confirmed attempt was sent.
    clock::time_point confirmed() const noexcept { return confirmed_; }

    std::uint64_t fencing_token = 0;                    // Written before `hold`. 0: none.
    std::chrono::milliseconds ttl{0};                   // As requested last; once held, as confirmed last.
    runtime::unlinking_list<place_in_line> extending{}; // Extensions; the first one is active.
    runtime::unlinking_list<place_in_line> watching{};  // Waits for the loss.
    runtime::unlinking_list<listed_round> unreported{}; // Extensions without a result yet.
    std::unique_ptr<failed_extension> failed;           // The last extension of a kept lease, if it failed.
    std::unique_ptr<manager::keeper> kept;              // Null unless it is extended in the background.
    std::unique_ptr<manager::expiry_watch> expiry;      // Null unless an observer waits for its expiry.

  private:
    void recycle() noexcept override;

    std::shared_ptr<manager_handle> handle_;
    errc lost_because_{};
};

} // namespace redlock::detail

namespace redlock::manager
{

using detail::lease_hook;
using detail::lease_phase;
using detail::lease_state;
using detail::listed_round;
using detail::place_in_line;

} // namespace redlock::manager
