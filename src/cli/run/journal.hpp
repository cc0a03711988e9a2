// SPDX-License-Identifier: BSL-1.0
// The events of a manager that later messages need.
#pragma once

#include "cli/run/mailbox.hpp"
#include "cli/run/verbose.hpp"

#include <redlock/observer.hpp>
#include <redlock/report.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace redlock::cli
{

/// Observes a manager: forwards its events to the log of -v, keeps the last rounds, and warns at once of two addresses
/// of one server. Not thread-safe.
class journal
{
  public:
    /// Both references must outlive the journal. It pushes `event_kind::queued` for each new position in the queue,
    /// and `event_kind::refused` when the system refuses connections to too many of the `masters` for a quorum.
    journal(const verbose_log& log, mailbox& to, std::size_t masters);

    /// Returns an observer that records here. The journal must outlive it.
    redlock::observer observer();
    /// Returns the last round of an acquire; empty if there was none.
    const std::optional<report>& last_round() const noexcept { return last_round_; }
    /// Returns the last position of the acquire in the queue; empty if there was none.
    const std::optional<queue_position>& position() const noexcept { return position_; }
    /// Returns the last failed extension, unless one has succeeded since.
    const std::optional<report>& failed_extension() const noexcept { return failed_extension_; }
    /// Returns true if the system refuses connections to too many masters for a quorum. `refusal()` is the last one.
    bool is_refused() const noexcept;
    const master_down& refusal() const noexcept { return refusal_; }

  private:
    void take(const redlock::event& what);
    void on_down(const master_down& what);

    const verbose_log& log_;
    mailbox& to_;
    std::optional<report> last_round_;
    std::optional<queue_position> position_;
    std::optional<report> failed_extension_;
    std::vector<bool> refused_; // For each master: the system refuses to connect to it.
    std::vector<bool> warned_;  // For each master: it was reported as the same server as another.
    master_down refusal_{};
};

} // namespace redlock::cli
