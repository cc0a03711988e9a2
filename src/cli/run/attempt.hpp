// SPDX-License-Identifier: BSL-1.0
// The attempt to acquire the lock.
#pragma once

#include "cli/common/arguments.hpp"
#include "cli/common/leave.hpp"
#include "cli/run/alarm.hpp"
#include "cli/run/journal.hpp"
#include "cli/run/mailbox.hpp"
#include "cli/run/verbose.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <optional>

namespace redlock::cli
{

/// One attempt. It ends at `--wait` plus one node timeout at the latest, however slow the masters are.
class attempt
{
  public:
    /// All references must outlive the attempt. The time of `--wait` starts here.
    attempt(
        const run_arguments& asked, lock_manager& locks, mailbox& events, alarm& timer, const journal& record,
        const verbose_log& log);

    /// Acquires a lease into `into`. On failure, reports the reason on stderr and returns how the program ends.
    asio::awaitable<ending> run(lease& into);

  private:
    asio::awaitable<ending> reach_masters();
    asio::awaitable<error_code> acquire(lease& into, ending& result);
    void start(lease& into);
    std::optional<error_code> settled_by_reaching() const;
    void on_signal(int number, ending& result);
    void on_queued();
    void on_time();
    void set_timer();
    void announce();
    ending fail(error_code why);
    std::string votes() const;

    const run_arguments& asked_;
    lock_manager& locks_;
    mailbox& events_;
    alarm& timer_;
    const journal& record_;
    const verbose_log& log_;
    clock::time_point start_;
    std::optional<clock::time_point> announce_at_;  // When to report what the attempt waits for.
    std::optional<clock::time_point> announced_at_; // Only at a terminal.
    std::optional<clock::time_point> give_up_at_;
    asio::cancellation_signal cancel_;
    report report_;
    std::optional<inspection> found_; // The inspection made before the first round.
    bool waiting_ = true;
    bool refused_ = false; // The system refuses connections.
};

} // namespace redlock::cli
