// SPDX-License-Identifier: BSL-1.0
// The command that is run: a child with a process group of its own.
#pragma once

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
    /// It takes the terminal on stdin.
    bool takes_terminal = false;
};

/// The child and the process group that it leads. Use it on the thread that lives as long as the process does: the
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

    /// Its process id, and that of its group.
    pid_t group() const noexcept { return pid_; }
    /// Sends a signal to its group, and to the child itself if it has left that. Nothing if they are gone.
    void signal(int number) noexcept;
    /// Takes note of what has changed since the last time. To be called at each SIGCHLD.
    void reap() noexcept;

    bool started() const noexcept { return pid_ > 0; }
    /// Whether the child itself has ended.
    bool ended() const noexcept { return status_.has_value(); }
    /// Whether nothing of its group is left. `killed` says that it was sent SIGKILL: then what isn't ours to reap
    /// counts as gone.
    bool group_gone(bool killed) noexcept;
    /// The signal by which it is stopped, 0 if it isn't.
    int stopped_by() const noexcept { return stopped_by_; }
    /// That it is stopped was dealt with.
    void forget_stop() noexcept { stopped_by_ = 0; }
    /// Of one that has ended: its exit code, 128 + n if signal n killed it.
    int exit_code() const noexcept;
    /// Of one that has ended: why it couldn't be run, 0 if it could.
    int exec_error() const noexcept { return exec_error_; }

  private:
    void read_exec_error() noexcept;

    pid_t pid_ = -1;
    bool group_gone_ = false;
    std::optional<int> status_; // As waitpid gives it.
    int stopped_by_ = 0;
    int exec_pipe_ = -1; // Its other end is closed by exec, or says why there was none.
    int exec_error_ = 0;
};

} // namespace redlock::cli
