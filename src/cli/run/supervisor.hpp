// SPDX-License-Identifier: BSL-1.0
// Supervises the child: forwards signals, handles stops, and ends it when the lease is lost.
#pragma once

#include "cli/common/arguments.hpp"
#include "cli/common/leave.hpp"
#include "cli/run/alarm.hpp"
#include "cli/run/child.hpp"
#include "cli/run/mailbox.hpp"
#include "cli/run/terminal.hpp"
#include "cli/run/verbose.hpp"

#include <redlock/lease.hpp>

#include <cstdint>

namespace redlock::cli
{

/// Starts and ends the child of a run, driven by events.
class supervisor
{
  public:
    /// All references must outlive the supervisor.
    supervisor(
        const run_arguments& asked, const lease& held, const terminal& shared, const mailbox& events,
        alarm& kill_alarm, const verbose_log& log);

    /// Starts the child. Throws `system_error` if no process can be created.
    void start();
    void on_event(const event& what);
    /// Returns true if the child has ended and, after a loss, all of its descendants.
    bool finished();
    /// Must be called once finished. Restores the terminal's settings if the child was killed, and reports an error of
    /// exec. Returns how the program ends.
    ending end();

  private:
    /// The stage of the child.
    enum class stage : std::uint8_t
    {
        running, ///< The lease is held, and the child may work.
        told,    ///< The lease is lost, and the child was sent SIGTERM.
        killed   ///< The child was sent SIGKILL.
    };

    void on_signal(int number, bool from_terminal);
    void on_child_changed();
    void on_continued();
    void say_stopped() const;
    void stop_ourselves(int stopped_by);
    void on_loss(const error_code& why);
    void kill_all();
    ending ending_of_command() const;

    const run_arguments& asked_;
    const lease& held_;
    const mailbox& events_;
    alarm& kill_alarm_;
    const verbose_log& log_;
    const terminal& terminal_;
    child child_;
    stage stage_ = stage::running;
    error_code why_lost_;
    bool stop_requested_ = false; // redlock was asked to stop, and stops once the child has.
    bool told_of_stop_ = false;   // That the command was stopped by SIGSTOP, without a terminal.
    int last_passed_on_ = 0;      // The last signal forwarded to the child.
};

} // namespace redlock::cli
