// SPDX-License-Identifier: BSL-1.0
// What the manager reported so far, as far as a message may need it.
#pragma once

#include "cli/mailbox.hpp"
#include "cli/verbose.hpp"

#include <redlock/observer.hpp>
#include <redlock/report.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace redlock::cli
{

/// Takes the events of a manager: passes them on to -v, remembers the last rounds, and says at once what the user has
/// to correct. One thread only.
class journal
{
  public:
    /// Both must outlive this. Pushes `event_kind::refused` when the system refuses so many connections of `masters`
    /// that no quorum is left.
    journal(const verbose_log& log, mailbox& to, std::size_t masters);

    /// An observer that writes here. Must not outlive this.
    redlock::observer observer();
    /// The last round of an acquire; empty if there was none.
    const std::optional<report>& last_round() const noexcept { return last_round_; }
    /// The last extension that failed, unless one has succeeded since.
    const std::optional<report>& failed_extension() const noexcept { return failed_extension_; }
    /// Whether the system refuses so many connections that no quorum is left, and why.
    bool is_refused() const noexcept;
    const error_code& refusal() const noexcept { return refusal_; }

  private:
    void take(const redlock::event& what);
    void on_down(const master_down& what);

    const verbose_log& log_;
    mailbox& to_;
    std::optional<report> last_round_;
    std::optional<report> failed_extension_;
    std::vector<bool> refused_; // Of each master: the system refuses to connect to it.
    std::vector<bool> warned_;  // Of each master: it was said that it is the same server as another.
    error_code refusal_;
};

} // namespace redlock::cli
