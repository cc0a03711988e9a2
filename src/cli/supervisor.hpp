// SPDX-License-Identifier: BSL-1.0
// Sees to the child while it runs: signals, stops, and its end when the lease is lost.
#pragma once

#include "cli/alarm.hpp"
#include "cli/arguments.hpp"
#include "cli/child.hpp"
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
    supervisor(const run_arguments& asked, const lease& held, alarm& kill_alarm, const verbose_log& log);

    /// Throws `system_error` if there can't be another process.
    void start();
    void on_event(const event& what);
    /// Whether the child has ended, and, after a loss, all of its group.
    bool finished() noexcept;
    /// When it is finished: takes the terminal back. What the whole program ends with; says why the command couldn't
    /// be run, if so.
    int end();

  private:
    /// What is being done about the child.
    enum class stage : std::uint8_t
    {
        running, ///< The lease holds, and it may work.
        told,    ///< The lease is lost, and it was told to end by SIGTERM.
        killed   ///< It was sent SIGKILL.
    };

    void on_signal(int number);
    void on_child_changed();
    void on_continued();
    void stop_ourselves();
    void on_loss(const error_code& why);
    void kill_group();

    const run_arguments& asked_;
    const lease& held_;
    alarm& kill_alarm_;
    const verbose_log& log_;
    terminal terminal_;
    child child_;
    stage stage_ = stage::running;
    error_code why_lost_;
    bool stop_asked_ = false; // We were asked to stop, and stop when the child has.
};

} // namespace redlock::cli
