// SPDX-License-Identifier: BSL-1.0
// A child process that ends with the test, even if the test crashes.
#pragma once

#include "loopback.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace redlock::test
{

/// Returns the path of `program`, searched for on PATH; empty if it isn't found.
std::string find_program(const std::string& program);

/// Returns the last lines of a file, at most `count`, of those that begin at `offset` or later.
std::vector<std::string> last_lines(const std::string& path, std::size_t count, std::uintmax_t offset = 0);

/// Reads a pipe until all its writers have closed it.
std::string read_to_end(const unique_fd& from);

/// Owns one child process. Signals are only sent before the child is reaped, so they can't reach another process that
/// reuses its id.
class child_process
{
  public:
    /// Owns no process.
    child_process() = default;
    /// Starts `arguments[0]`, searched for on PATH. Its output is appended to the file `output`, the only descriptor it
    /// inherits. The kernel kills it when the thread that started it ends, so that thread must outlive it.
    /// Throws if the program can't be started.
    child_process(const std::vector<std::string>& arguments, const std::string& output);
    /// Starts a program whose standard input and output are connected to `conversation`, a stream that is created here.
    /// Only its standard error is written to the file.
    child_process(
        const std::vector<std::string>& arguments, const std::string& output, unique_fd& conversation);
    /// Forks this process: the child calls `run`, writes the returned text to the pipe `result` and exits.
    child_process(const std::function<std::string()>& run, unique_fd& result);
    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&& other) noexcept;
    /// Kills and reaps the child, even if it is stopped.
    ~child_process();

    /// Returns the process id, or -1 if there is no child or it was reaped.
    pid_t pid() const { return pid_; }
    /// True until the child has ended; a stopped child is running.
    bool running() const;
    /// Sends SIGKILL and reaps the child, if there is one.
    void kill();
    /// Sends SIGSTOP and waits until the child is stopped; does nothing if it is stopped already. Throws if there is no
    /// child, or it doesn't stop in time.
    void stop();
    /// Sends SIGCONT to a stopped child and waits until it continues or has ended. Throws if it doesn't in time.
    void resume();
    /// Waits for the end of the child. Returns false if it is still running after `at_most`.
    bool wait_for_end(std::chrono::milliseconds at_most) const;

  private:
    void start(const std::vector<std::string>& arguments, const std::string& output, int conversation);
    void signal_and_wait(int signal, int what_to_wait_for, const char* what);

    pid_t pid_ = -1;
    bool stopped_ = false;
};

} // namespace redlock::test
