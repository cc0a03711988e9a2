// SPDX-License-Identifier: BSL-1.0
// A child process that ends with the test, whatever happens to the test.
#pragma once

#include "loopback.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace redlock::test
{

/// Where `program` is found on PATH; empty when it isn't.
std::string find_program(const std::string& program);

/// Reads a pipe until all its writers have closed it.
std::string read_to_end(const unique_fd& from);

/// Owns one child process. Only children that are not reaped yet are ever signalled, so no stranger that got
/// the same process id can be hit.
class child_process
{
  public:
    /// Owns no process.
    child_process() = default;
    /// Starts `arguments[0]`, looked up on PATH, with its output appended to the file `output`. The child
    /// inherits no descriptor but that. The kernel kills it when the thread that started it ends, so start
    /// children from a thread that outlives them. Throws when the program can't be started.
    child_process(const std::vector<std::string>& arguments, const std::string& output);
    /// Likewise, but its standard input and output are the other end of `conversation`, a stream that is made here;
    /// only what it says on standard error goes to the file.
    child_process(
        const std::vector<std::string>& arguments, const std::string& output, unique_fd& conversation);
    /// Forks this process: the child calls `run`, writes the returned text to `result` and exits.
    child_process(const std::function<std::string()>& run, unique_fd& result);
    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&& other) noexcept;
    /// Kills the child, also when it is stopped, and reaps it.
    ~child_process();

    /// The process id, -1 when there is no child or it was reaped.
    pid_t pid() const { return pid_; }
    /// Whether the child is there and has not ended. A stopped child is running.
    bool running() const;
    /// SIGKILL, and reaps the child. Nothing happens when there is none.
    void kill();
    /// SIGSTOP, and waits until the child is stopped; nothing when it is already. Throws when there is no
    /// child, or it doesn't stop in time.
    void stop();
    /// SIGCONT, and waits until the child goes on, or has ended by then; nothing when it isn't stopped. Throws when
    /// it doesn't go on in time.
    void resume();
    /// Waits until the child has ended, at most this long. True when it has ended.
    bool wait_for_end(std::chrono::milliseconds at_most) const;

  private:
    void start(const std::vector<std::string>& arguments, const std::string& output, int conversation);
    void signal_and_wait(int signal, int what_to_wait_for, const char* what);

    pid_t pid_ = -1;
    bool stopped_ = false;
};

} // namespace redlock::test
