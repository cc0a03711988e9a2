// SPDX-License-Identifier: BSL-1.0
// The command that is run: a child, and all that descends from it.
#pragma once

#include "cli/run/descendants.hpp"

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace redlock::cli
{

/// What a child is started with.
struct child_plan
{
    /// The program, looked up on PATH if it has no slash, and its arguments.
    std::vector<std::string> command;
    /// NAME=value, each in the place of what the environment has by this name.
    std::vector<std::string> environment;
    /// Variables that it doesn't get.
    std::vector<std::string> without;
    /// It leads a process group of its own. Otherwise it stays in ours, and shares the terminal with us.
    bool own_group = true;
};

/// The child and everything that descends from it. Use it on the thread that lives as long as the process does: the
/// kernel kills the child when the thread that started it ends.
class child
{
  public:
    child() = default;
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child();

    /// Starts it, once. It gets no descriptors but 0, 1 and 2. Whatever descends from it and loses its parent becomes
    /// ours. Throws `system_error` if there can't be another process; a command that can't be run is told by
    /// `exec_error` when the child has ended.
    void start(const child_plan& plan);

    pid_t pid() const noexcept { return pid_; }
    /// Sends a signal to it as a shell would: to its group if it leads one, else to itself alone.
    void pass_on(int number) noexcept;
    /// Sends a signal to everything that descends from it, in whatever group or session. Processes of other users are
    /// left out, as kill(2) refuses them.
    void signal_all(int number);
    /// What descends from us since its start: it, and everything that descends from it. Empty if that can't be found out.
    std::vector<pid_t> everything();
    /// Whether what descends from it can be found. Otherwise signals reach its group, or it alone if it leads none.
    bool finds_everything() const noexcept { return processes_.is_open(); }
    /// Takes note of what has changed since the last time. To be called at each SIGCHLD.
    void reap() noexcept;

    bool started() const noexcept { return pid_ > 0; }
    /// Whether the child itself has ended.
    bool ended() const noexcept { return status_.has_value(); }
    /// Whether neither it nor anything that descends from it is left, as far as that can be found out. `killed` says that all were sent SIGKILL: then
    /// dead members of its group that others have to reap count as gone.
    bool all_gone(bool killed);
    /// Whether it is in our process group at this moment, so that the terminal's keys reach both or neither.
    bool in_our_group() const noexcept;
    /// The signal by which it is stopped, 0 if it isn't.
    int stopped_by() const noexcept { return stopped_by_; }
    /// That it is stopped was dealt with.
    void forget_stop() noexcept { stopped_by_ = 0; }
    /// Of one that has ended: its exit code, 128 + n if signal n killed it.
    int exit_code() const noexcept;
    /// Of one that has ended: the signal that killed it, 0 if it wasn't one.
    int killed_by() const noexcept;
    /// Of one that has ended: why it couldn't be run, 0 if it could.
    int exec_error() const noexcept { return exec_error_; }

  private:
    void read_exec_error() noexcept;
    bool group_gone(bool killed) noexcept;

    pid_t pid_ = -1;
    bool own_group_ = true;
    bool group_gone_ = false;
    process_table processes_;
    std::vector<pid_t> strangers_; // Children that this process had before it became redlock.
    std::optional<int> status_;    // As waitpid gives it.
    int stopped_by_ = 0;
    int exec_pipe_ = -1; // Its other end is closed by exec, or says why there was none.
    int exec_error_ = 0;
};

} // namespace redlock::cli
