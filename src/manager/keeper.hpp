// SPDX-License-Identifier: BSL-1.0
// Keeps one lease alive: one deadline for its next extension and for its loss, whichever comes first. And sees the end of
// one that isn't kept.
#pragma once

#include <redlock/clock.hpp>

#include "core/lease_schedule.hpp"
#include "env/deadline_queue.hpp"

namespace redlock::manager
{

class holding;
class lock_service;

/// Belongs to the holding that it keeps. The loss depends on nothing but its deadline: no extension that
/// hangs can hold it up. Extensions fall on the beats of the schedule, and what leases extend in the same turn goes
/// out in one write for each master.
class keeper final : private env::deadline
{
  public:
    keeper(
        lock_service& service, holding& kept, const core::lease_schedule& schedule,
        clock::time_point hold_ends);

    /// When the loss is declared, as things stand.
    clock::time_point ends() const noexcept;

    /// A quorum has confirmed an extension.
    void on_extended(clock::time_point sent, std::chrono::milliseconds ttl);
    /// The lease is lost or given back: nothing more to keep.
    void stop() noexcept { disarm(); }

  private:
    void on_deadline() override;
    void set_next();
    void set_deadline();

    lock_service& service_;
    holding& kept_;
    core::lease_schedule schedule_;
    clock::time_point hold_ends_;
    clock::time_point next_{};
    std::uint32_t unanswered_ = 0; // Extensions in a row that weren't confirmed.
};

/// Declares the loss of a lease that isn't kept when its validity ends. Only an observer needs it: who holds the lease
/// sees the end by the clock.
class expiry_watch final : private env::deadline
{
  public:
    expiry_watch(lock_service& service, holding& watched);

  private:
    void on_deadline() override;

    lock_service& service_;
    holding& watched_;
};

} // namespace redlock::manager
