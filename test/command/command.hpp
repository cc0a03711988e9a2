// SPDX-License-Identifier: BSL-1.0
// Shared parts of the tests of the redlock command: the executable as a child, and channels to the child's child.
#pragma once

#include "integration/fixture.hpp"
#include "support/child_process.hpp"
#include "support/loopback.hpp"
#include "support/server.hpp"

#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace redlock::test
{

using strings = std::vector<std::string>;

/// How a process ended.
struct process_end
{
    int exit_code = -1;  ///< -1 if a signal ended it.
    int signal = 0;      ///< The signal that ended it.
    bool dumped = false; ///< It left a core.

    friend bool operator==(const process_end&, const process_end&) = default;
};

/// Formats it for the message of a failed test.
std::ostream& operator<<(std::ostream& out, const process_end& value);

/// A named pipe, by which a shell script sends lines to a test, or waits for one.
class named_pipe
{
  public:
    named_pipe();

    const std::string& path() const { return path_; }
    /// Waits for the next line, and returns it without its end. Throws `stuck`.
    std::string line();
    /// Writes a line for a script that reads one.
    void write(std::string_view line);

  private:
    temporary_directory directory_;
    std::string path_;
    unique_fd both_ends_; // So that the pipe never reaches its end.
    std::string buffer_;
};

/// A terminal, whose screen and keyboard is the test.
class pseudo_terminal
{
  public:
    pseudo_terminal();

    /// The path of the device.
    const std::string& path() const { return path_; }
    void type(std::string_view keys);
    /// Waits until this text is shown, and discards what was shown up to it. Returns what was shown before the text.
    /// Throws `stuck`.
    std::string wait_for(std::string_view text);
    /// Returns and discards what is shown now, without waiting for more.
    std::string rest();
    /// Returns true if it echoes what is typed and delivers it line by line.
    bool is_cooked() const;

  private:
    unique_fd terminals_;
    unique_fd side_;
    std::string path_;
    std::string shown_;
};

/// One run of the redlock command, a child of this process.
class command_run
{
  public:
    /// `environment` is a list of NAME=value. The command inherits a descriptor 7, which its child must not get. With a
    /// terminal it leads a session there; else its stdin is empty. `around` is a script of sh that runs it as "$@".
    explicit command_run(
        const strings& arguments, const strings& environment = {}, const std::string& terminal = {},
        const std::string& around = {});

    pid_t pid() const { return process_.pid(); }
    /// Returns what it has written so far.
    std::string output() const;
    std::string errors() const;
    /// Waits for a line on stderr that contains `part`. Throws `stuck` with all of stderr.
    void wait_for_error_line(server& pacemaker, std::string_view part) const;
    void signal(int number) const;
    /// Waits until it is stopped. Throws `stuck`.
    void wait_for_stop() const;
    /// Waits for its end. Throws `stuck` with what it wrote.
    process_end wait() const;
    /// The same. Throws `stuck` as soon as its stderr contains `part` while it still runs.
    process_end wait_unless(server& pacemaker, std::string_view part) const;
    /// Sends SIGWINCH or SIGCONT to a run with -v, and waits until it has handled it, and so the signals of smaller
    /// numbers that were sent before. Returns false if the run, or its command, has ended instead.
    bool handles_another_signal(server& pacemaker, int number = SIGWINCH) const;
    /// Waits until `child`, the run's command, has ended, and then for the end of the run. Throws `stuck` once the run
    /// has handled several signals since, but not the end of its command.
    process_end wait_after(pid_t child, server& pacemaker) const;
    /// Sends SIGKILL.
    void kill() { process_.kill(); }

  private:
    temporary_directory directory_;
    child_process process_;
};

/// A program that leads a session at a terminal, with stdin, stdout and stderr there.
class program_at_terminal
{
  public:
    program_at_terminal(const strings& words, const strings& environment, const pseudo_terminal& terminal);

    void signal(int number) const;
    /// Waits for its end. Throws `stuck`.
    process_end wait() const;

  private:
    temporary_directory directory_;
    child_process process_;
};

/// Five masters, and the command's arguments for them.
struct five_masters
{
    std::vector<server> servers = start_servers(5);

    server& any() { return servers.front(); }
    std::string urls() const;
    /// Returns REDLOCK_MASTERS with all of them.
    strings environment() const { return {"REDLOCK_MASTERS=" + urls()}; }
    /// Returns how many masters have a key of the resource.
    std::size_t keys(const std::string& resource = "job");
    /// Waits until no master has a key of the resource. Returns false if one still has.
    bool all_free(const std::string& resource = "job");
    /// Returns a shell command that stops a quorum of them.
    std::string stop_of_quorum() const;
    /// Resumes those that `stop_of_quorum` has stopped.
    void resume_quorum();
};

/// Returns the words of redlock run --max-hold unlimited OPTIONS... job -- sh -c SCRIPT.
strings run_shell(const std::string& script, const strings& options = {});

/// Waits until the process has ended, reaped or not. Returns false if it hasn't.
bool has_ended(pid_t process, std::chrono::milliseconds at_most = patience);
/// Returns the state letter of /proc/PID/stat: T for stopped. Empty if there is no such process.
std::string state_of(pid_t process);
/// Returns the name of the program that a process runs. Empty if there is no such process.
std::string name_of(pid_t process);
/// Returns the contents of a file.
std::string text_of(const std::string& path);

} // namespace redlock::test
