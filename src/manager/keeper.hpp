// SPDX-License-Identifier: BSL-1.0
// Keeps one lease alive by extensions, and declares its loss. Also declares the expiry of a lease that isn't kept.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/handles.hpp>

#include "core/lease_schedule.hpp"
#include "runtime/deadline_queue.hpp"

namespace redlock::manager
{

class lock_service;
using detail::lease_state;

/// Extends a kept lease, and declares its loss. Belongs to the lease state.
///
/// A single deadline is set to the next extension or the loss, whichever comes first. The loss depends on that
/// deadline alone, so an extension that hangs can't delay it. Extensions are aligned to the beats of the schedule:
/// leases that are extended in the same step share one write per master.
class keeper final : private runtime::deadline
{
  public:
    keeper(
        lock_service& service, lease_state& kept, const core::lease_schedule& schedule,
        clock::time_point hold_ends);

    /// Returns the time at which the loss is declared unless another extension is confirmed.
    clock::time_point ends() const noexcept;
    /// Returns the end of the validity, also if the lease was disowned since: its work may still be stopping, and the keys that
    /// are left keep the resource from others.
    clock::time_point confirmed_until() const noexcept { return confirmed_until_; }

    /// Called when a quorum has confirmed an extension.
    void on_extended(clock::time_point sent, std::chrono::milliseconds ttl);
    /// Called when the lease is lost, or the manager is destroyed. A confirmation may follow.
    void stop() noexcept
    {
        stopped_ = true;
        disarm();
    }

  private:
    void on_deadline() override;
    void set_next();
    void set_deadline();

    lock_service& service_;
    lease_state& kept_;
    core::lease_schedule schedule_;
    clock::time_point hold_ends_;
    clock::time_point confirmed_until_;
    clock::time_point next_{};
    clock::time_point soonest_{}; // When the last attempt has had its node timeout.
    bool stopped_ = false;
    std::uint32_t unanswered_ = 0; // Consecutive extensions without confirmation.
};

/// Declares the loss of a lease that isn't kept when its validity ends. Exists only for an observer: the holder of
/// the lease reads the clock instead.
class expiry_watch final : private runtime::deadline
{
  public:
    expiry_watch(lock_service& service, lease_state& watched);

  private:
    void on_deadline() override;

    lock_service& service_;
    lease_state& watched_;
};

} // namespace redlock::manager
