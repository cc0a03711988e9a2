// SPDX-License-Identifier: BSL-1.0
// What the tests of the redlock command share: the executable as a child, and ways to talk with the child's child.
#pragma once

#include "integration/fixture.hpp"
#include "support/child_process.hpp"
#include "support/loopback.hpp"
#include "support/server.hpp"

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
    int exit_code = -1; ///< Unless a signal ended it.
    int signal = 0;     ///< The signal that ended it.

    friend bool operator==(const process_end&, const process_end&) = default;
};

/// Writes it for the message of a failed test.
std::ostream& operator<<(std::ostream& out, const process_end& value);

/// A named pipe, by which a shell script tells a test something, or waits for it.
class named_pipe
{
  public:
    named_pipe();

    const std::string& path() const { return path_; }
    /// The next line, without its end. Throws `stuck`.
    std::string line();
    /// A line for a script that reads one.
    void write(std::string_view line);

  private:
    temporary_directory directory_;
    std::string path_;
    unique_fd both_ends_; // So that it never ends.
    std::string buffer_;
};

/// A terminal, of which the test is the screen and the keyboard.
class pseudo_terminal
{
  public:
    pseudo_terminal();

    /// The device, for the program.
    const std::string& path() const { return path_; }
    void type(std::string_view keys);
    /// Waits until this is shown, and forgets what was shown up to there. Throws `stuck`.
    void wait_for(std::string_view text);
    /// What is shown now, without waiting for more; forgets it.
    std::string rest();
    /// Whether it shows what is typed, and hands it over line by line.
    bool is_cooked() const;

  private:
    unique_fd terminals_;
    unique_fd side_;
    std::string path_;
    std::string shown_;
};

/// One run of the redlock command, a child of this process.
class command
{
  public:
    /// `environment` is NAME=value, each. It inherits a descriptor 7, which nothing should see. With a terminal it
    /// leads a session there, else its stdin is empty.
    explicit command(
        const strings& arguments, const strings& environment = {}, const std::string& terminal = {});

    pid_t pid() const { return process_.pid(); }
    /// What it has written so far.
    std::string output() const;
    std::string errors() const;
    /// Waits for a line on stderr that has this in it. Throws `stuck` with all that is there.
    void wait_for_error_line(server& pacemaker, std::string_view part) const;
    void signal(int number) const;
    /// Waits until it is stopped. Throws `stuck`.
    void wait_for_stop() const;
    /// Waits for its end. Throws `stuck` with what it wrote.
    process_end wait() const;
    /// SIGKILL.
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
    /// REDLOCK_MASTERS for all of them.
    strings environment() const { return {"REDLOCK_MASTERS=" + urls()}; }
    /// How many have a key of the resource.
    std::size_t keys(const std::string& resource = "job");
    /// Waits until none has a key any more. False if one still has.
    bool all_free(const std::string& resource = "job");
};

/// redlock run --max-hold unlimited OPTIONS... job -- sh -c SCRIPT
strings run_shell(const std::string& script, const strings& options = {});

/// Waits until the process has ended and was reaped, or is a zombie. False if it hasn't.
bool has_ended(pid_t process, std::chrono::milliseconds at_most = patience);
/// The letter of /proc/PID/stat: T for stopped. Empty if there is no such process.
std::string state_of(pid_t process);
/// What a process runs. Empty if there is no such process.
std::string name_of(pid_t process);
/// A whole file.
std::string text_of(const std::string& path);

} // namespace redlock::test
