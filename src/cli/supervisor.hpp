// SPDX-License-Identifier: BSL-1.0
// Sees to the child while it runs: signals, stops, and its end when the lease is lost.
#pragma once

#include "cli/alarm.hpp"
#include "cli/arguments.hpp"
#include "cli/child.hpp"
#include "cli/leave.hpp"
#include "cli/mailbox.hpp"
#include "cli/terminal.hpp"
#include "cli/verbose.hpp"

#include <redlock/lease.hpp>

#include <cstdint>

namespace redlock::cli
{

/// The child's part of a run. It is told what happens, and obeys.
class supervisor
{
  public:
    /// All of them must outlive this.
    supervisor(
        const run_arguments& asked, const lease& held, const terminal& shared, alarm& kill_alarm,
        const verbose_log& log);

    /// Throws `system_error` if there can't be another process.
    void start();
    void on_event(const event& what);
    /// Whether the child has ended, and, after a loss, everything that descends from it.
    bool finished();
    /// When it is finished: puts the terminal's settings back if it was killed. Returns how the whole program ends, and
    /// says why the command couldn't be run, if so.
    ending end();

  private:
    /// What is being done about the child.
    enum class stage : std::uint8_t
    {
        running, ///< The lease holds, and it may work.
        told,    ///< The lease is lost, and it was told to end by SIGTERM.
        killed   ///< It was sent SIGKILL.
    };

    void on_signal(int number, bool from_terminal);
    void on_child_changed();
    void on_continued();
    void stop_ourselves(int stopped_by);
    void on_loss(const error_code& why);
    void kill_all();
    ending ending_of_command() const;

    const run_arguments& asked_;
    const lease& held_;
    alarm& kill_alarm_;
    const verbose_log& log_;
    const terminal& terminal_;
    child child_;
    stage stage_ = stage::running;
    error_code why_lost_;
    bool stop_asked_ = false; // We were asked to stop, and stop when the child has.
    int last_passed_on_ = 0;  // The last signal that was passed on to the child.
};

} // namespace redlock::cli
