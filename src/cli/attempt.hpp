// SPDX-License-Identifier: BSL-1.0
// The attempt to lock: until there is a lease, or a reason why there is none.
#pragma once

#include "cli/alarm.hpp"
#include "cli/arguments.hpp"
#include "cli/journal.hpp"
#include "cli/leave.hpp"
#include "cli/mailbox.hpp"
#include "cli/verbose.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <optional>

namespace redlock::cli
{

/// One attempt, which ends at `--wait` and one node timeout at the latest, however slow the masters are.
class attempt
{
  public:
    /// All of them must outlive this. The time of `--wait` begins now.
    attempt(
        const run_arguments& asked, lock_manager& locks, mailbox& events, alarm& timer, const journal& record,
        const verbose_log& log);

    /// Returns how the program ends if there is no lease; says why. Else `into` has it.
    asio::awaitable<ending> run(lease& into);

  private:
    asio::awaitable<ending> reach_masters();
    asio::awaitable<error_code> acquire(lease& into, ending& result);
    void start(lease& into);
    std::optional<error_code> settled_by_reaching() const;
    void on_signal(int number, ending& result);
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
    std::optional<clock::time_point> announce_at_; // When to say what is waited for.
    std::optional<clock::time_point> give_up_at_;
    asio::cancellation_signal cancel_;
    report report_;
    std::optional<inspection> found_; // What the masters said before the first round.
    bool waiting_ = true;
    bool refused_ = false; // By the system.
};

} // namespace redlock::cli
