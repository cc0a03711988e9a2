// SPDX-License-Identifier: BSL-1.0
// Starts the command, and waits for what it does.
#include "command/command.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

namespace redlock::test
{

namespace
{

using std::chrono::milliseconds;

constexpr int in_ms = static_cast<int>(milliseconds{patience}.count());

/// `sh` opens the files, since a child_process has only one for stdout and stderr. In a separate session the command
/// has no terminal except the given one.
strings words_of(
    const strings& arguments, const strings& environment, const std::string& errors,
    const std::string& terminal, const std::string& around)
{
    strings words{"env", "-u", "REDLOCK_MASTERS"};
    words.insert(words.end(), environment.begin(), environment.end());
    std::string script = "exec 2>>\"$0\" 7</dev/null; ";
    script += terminal.empty() ? "exec setsid \"$@\""
                               : fmt::format("exec setsid --ctty \"$@\" <{0} >{0}", terminal);
    words.insert(words.end(), {"sh", "-c", script, errors});
    if (!around.empty())
    {
        words.insert(words.end(), {"sh", "-c", around, "sh"});
    }
    words.emplace_back(REDLOCK_COMMAND);
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
}

/// Waits for bytes and reads them. Returns false if none came within `patience`.
bool read_more(int from, std::string& to)
{
    pollfd ready{from, POLLIN, 0};
    if (::poll(&ready, 1, in_ms) != 1)
    {
        return false;
    }
    char bytes[256];
    const ssize_t count = ::read(from, bytes, sizeof bytes);
    to.append(bytes, count > 0 ? static_cast<std::size_t>(count) : 0U);
    return count > 0;
}

/// Waits for a child's end.
process_end end_of(const child_process& child, const std::function<std::string()>& name)
{
    siginfo_t info{};
    if (!child.wait_for_end(patience) ||
        ::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT) != 0)
    {
        throw stuck{"hasn't ended within a minute: " + name()};
    }
    if (info.si_code == CLD_EXITED)
    {
        return {.exit_code = info.si_status, .signal = 0};
    }
    return {.exit_code = -1, .signal = info.si_status, .dumped = info.si_code == CLD_DUMPED};
}

void write_all(int to, std::string_view bytes)
{
    if (::write(to, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    {
        throw std::system_error{errno, std::generic_category(), "write"};
    }
}

} // namespace

std::ostream& operator<<(std::ostream& out, const process_end& value)
{
    if (value.signal == 0)
    {
        return out << "exit code " << value.exit_code;
    }
    return out << "signal " << value.signal << (value.dumped ? ", with a core" : "");
}

std::string text_of(const std::string& path)
{
    std::ifstream file{path};
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

named_pipe::named_pipe() : path_{directory_.path() + "/pipe"}
{
    if (::mkfifo(path_.c_str(), 0600) != 0)
    {
        throw std::system_error{errno, std::generic_category(), "mkfifo"};
    }
    both_ends_ = unique_fd{::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)};
}

std::string named_pipe::line()
{
    while (buffer_.find('\n') == std::string::npos)
    {
        if (!read_more(both_ends_.get(), buffer_))
        {
            throw stuck{"nothing came through the pipe within a minute"};
        }
    }
    const std::size_t end = buffer_.find('\n');
    const std::string first = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return first;
}

void named_pipe::write(std::string_view line)
{
    write_all(both_ends_.get(), std::string{line} + "\n");
}

namespace
{

/// Creates an unmounted file system of terminals, for machines without /dev/pts, such as a bare chroot. Requires root.
unique_fd own_terminals()
{
    const unique_fd files{::fsopen("devpts", FSOPEN_CLOEXEC)};
    if (!files || ::fsconfig(files.get(), FSCONFIG_SET_STRING, "ptmxmode", "666", 0) != 0 ||
        ::fsconfig(files.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    {
        return {};
    }
    return unique_fd{::fsmount(files.get(), FSMOUNT_CLOEXEC, 0)};
}

} // namespace

pseudo_terminal::pseudo_terminal() : side_{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)}
{
    std::string folder = "/dev/pts";
    if (!side_)
    {
        terminals_ = own_terminals();
        side_ = unique_fd{::openat(terminals_.get(), "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)};
        folder = fmt::format("/proc/{}/fd/{}", ::getpid(), terminals_.get());
    }
    unsigned int number = 0;
    if (!side_ || ::unlockpt(side_.get()) != 0 || ::ioctl(side_.get(), TIOCGPTN, &number) != 0)
    {
        throw std::system_error{
            errno, std::generic_category(), "opening a terminal (it takes /dev/ptmx and /dev/pts, or root)"};
    }
    path_ = fmt::format("{}/{}", folder, number);
}

void pseudo_terminal::type(std::string_view keys)
{
    write_all(side_.get(), keys);
}

std::string pseudo_terminal::wait_for(std::string_view text)
{
    std::size_t found = shown_.find(text);
    while (found == std::string::npos)
    {
        if (!read_more(side_.get(), shown_))
        {
            throw stuck{fmt::format("the terminal doesn't show '{}', but:\n{}", text, shown_)};
        }
        found = shown_.find(text);
    }
    std::string before = shown_.substr(0, found);
    shown_.erase(0, found + text.size());
    return before;
}

std::string pseudo_terminal::rest()
{
    pollfd ready{side_.get(), POLLIN, 0};
    while (::poll(&ready, 1, 0) == 1 && read_more(side_.get(), shown_))
    {
    }
    return std::exchange(shown_, {});
}

bool pseudo_terminal::is_cooked() const
{
    termios settings{};
    return ::tcgetattr(side_.get(), &settings) == 0 && (settings.c_lflag & ECHO) != 0 &&
           (settings.c_lflag & ICANON) != 0;
}

namespace
{

strings words_at_terminal(const strings& words, const strings& environment, const pseudo_terminal& terminal)
{
    strings all{"env", "-u", "REDLOCK_MASTERS", fmt::format("REDLOCK={}", REDLOCK_COMMAND)};
    all.insert(all.end(), environment.begin(), environment.end());
    all.insert(
        all.end(),
        {"sh", "-c", fmt::format("exec setsid --ctty \"$@\" <{0} >{0} 2>&1", terminal.path()), "sh"});
    all.insert(all.end(), words.begin(), words.end());
    return all;
}

} // namespace

program_at_terminal::program_at_terminal(
    const strings& words, const strings& environment, const pseudo_terminal& terminal)
    : process_{words_at_terminal(words, environment, terminal), directory_.path() + "/output"}
{
}

void program_at_terminal::signal(int number) const
{
    if (process_.pid() <= 0 || ::kill(process_.pid(), number) != 0)
    {
        throw std::system_error{errno, std::generic_category(), "kill"};
    }
}

process_end program_at_terminal::wait() const
{
    return end_of(process_, [] { return std::string{"the program"}; });
}

command_run::command_run(
    const strings& arguments, const strings& environment, const std::string& terminal,
    const std::string& around)
    : process_{
          words_of(arguments, environment, directory_.path() + "/errors", terminal, around),
          directory_.path() + "/output"}
{
}

std::string command_run::output() const
{
    return text_of(directory_.path() + "/output");
}

std::string command_run::errors() const
{
    return text_of(directory_.path() + "/errors");
}

void command_run::wait_for_error_line(server& pacemaker, std::string_view part) const
{
    if (!comes_true(pacemaker, [&] { return errors().find(part) != std::string::npos; }))
    {
        throw stuck{fmt::format("'{}' isn't written within a minute, but:\n{}", part, errors())};
    }
}

void command_run::signal(int number) const
{
    if (pid() <= 0 || ::kill(pid(), number) != 0)
    {
        throw std::system_error{errno, std::generic_category(), "kill"};
    }
}

namespace
{

/// Waits for a change of a child's state. Returns false if there is none within `patience`.
bool changes(pid_t child, int how)
{
    siginfo_t info{};
    for (const auto end = std::chrono::steady_clock::now() + patience;
         std::chrono::steady_clock::now() < end;)
    {
        if (::waitid(P_PID, static_cast<id_t>(child), &info, how | WNOHANG) == 0 && info.si_pid == child)
        {
            return true;
        }
        has_ended(child, milliseconds{1});
    }
    return false;
}

} // namespace

void command_run::wait_for_stop() const
{
    if (!changes(pid(), WSTOPPED))
    {
        throw stuck{"the command isn't stopped within a minute:\n" + errors()};
    }
}

process_end command_run::wait() const
{
    return end_of(process_, [this] { return "the command, which wrote:\n" + output() + errors(); });
}

namespace
{

std::size_t count_of(std::string_view part, std::string_view text)
{
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    {
        ++count;
    }
    return count;
}

} // namespace

process_end command_run::wait_unless(server& pacemaker, std::string_view part) const
{
    const auto decided = [&]
    { return has_ended(pid(), milliseconds{0}) || errors().find(part) != std::string::npos; };
    if (comes_true(pacemaker, decided) && !has_ended(pid(), milliseconds{0}))
    {
        throw stuck{fmt::format("it still runs, but wrote '{}':\n{}", part, errors())};
    }
    return wait();
}

bool command_run::handles_another_signal(server& pacemaker, int number) const
{
    const std::string line =
        number == SIGCONT ? std::string{"] continued\n"} : fmt::format("signal {} is forwarded\n", number);
    const std::size_t before = count_of(line, errors());
    bool ended = false;
    signal(number);
    const auto goes_on = [&]
    {
        ended = has_ended(pid(), milliseconds{0}) ||
                errors().find("the command has ended with ") != std::string::npos;
        return ended || count_of(line, errors()) > before;
    };
    if (!comes_true(pacemaker, goes_on))
    {
        throw stuck{"the command doesn't handle a signal within a minute:\n" + errors()};
    }
    return !ended;
}

process_end command_run::wait_after(pid_t child, server& pacemaker) const
{
    if (!has_ended(child))
    {
        throw stuck{"the child doesn't end within a minute:\n" + errors()};
    }
    // The first signals may be handled before the kernel reports the end.
    constexpr int enough = 5;
    int handled = 0;
    while (handles_another_signal(pacemaker))
    {
        if (++handled == enough)
        {
            throw stuck{"signals are handled, but not the end of the command:\n" + errors()};
        }
    }
    return wait();
}

std::string five_masters::urls() const
{
    std::string all;
    for (const server& each : servers)
    {
        all += (all.empty() ? "" : ",") + each.url();
    }
    return all;
}

std::size_t five_masters::keys(const std::string& resource)
{
    std::size_t count = 0;
    for (server& each : servers)
    {
        count += each.running() && each.command({"EXISTS", "lock:" + resource}) == 1 ? 1U : 0U;
    }
    return count;
}

bool five_masters::all_free(const std::string& resource)
{
    return comes_true(any(), [&] { return keys(resource) == 0; });
}

std::string five_masters::stop_of_quorum() const
{
    return fmt::format("kill -STOP {} {} {}", servers[0].pid(), servers[1].pid(), servers[2].pid());
}

void five_masters::resume_quorum()
{
    for (std::size_t index = 0; index < 3; ++index)
    {
        servers[index].stop(); // It is stopped already; this records it.
        servers[index].resume();
    }
}

strings run_shell(const std::string& script, const strings& options)
{
    strings words{"run"};
    words.insert(words.end(), options.begin(), options.end());
    bool limited = false;
    for (const std::string& each : options)
    {
        limited = limited || each == "--max-hold";
    }
    if (!limited)
    {
        words.insert(words.end(), {"--max-hold", "unlimited"});
    }
    words.insert(words.end(), {"job", "--", "sh", "-c", script});
    return words;
}

bool has_ended(pid_t process, milliseconds at_most)
{
    const unique_fd watched{static_cast<int>(::syscall(SYS_pidfd_open, process, 0))};
    if (!watched)
    {
        return errno == ESRCH;
    }
    pollfd ready{watched.get(), POLLIN, 0};
    return ::poll(&ready, 1, static_cast<int>(at_most.count())) == 1;
}

std::string state_of(pid_t process)
{
    const std::string stat = text_of(fmt::format("/proc/{}/stat", process));
    // The name before it is in parentheses, and may contain some.
    const std::size_t end_of_name = stat.rfind(')');
    return end_of_name == std::string::npos ? std::string{} : stat.substr(end_of_name + 2, 1);
}

std::string name_of(pid_t process)
{
    const std::string line = text_of(fmt::format("/proc/{}/comm", process));
    return line.substr(0, line.find('\n'));
}

} // namespace redlock::test
