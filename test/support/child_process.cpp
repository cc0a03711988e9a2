// SPDX-License-Identifier: BSL-1.0
// fork and exec, with nothing inherited; signals that are confirmed by waitid.
#include "child_process.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/// Defined if the address sanitizer is linked.
extern "C" [[gnu::weak]] int __lsan_do_recoverable_leak_check(); // NOLINT: the name is not ours.

/// What a name lookup of the parent owns looks like a leak in a child, which doesn't have that thread.
extern "C" const char* __lsan_default_suppressions(); // NOLINT: nor is this one.
extern "C" const char* __lsan_default_suppressions()  // NOLINT
{
    return "leak:__res_context_send\n";
}

namespace redlock::test
{
namespace
{

using std::chrono::steady_clock;

constexpr std::chrono::seconds signal_limit{20};
constexpr int first_inherited = 3;
constexpr int max_descriptors_by_hand = 65536;

/// Returns the reading and the writing end.
std::pair<unique_fd, unique_fd> make_pipe()
{
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0)
    {
        throw std::system_error{errno, std::generic_category(), "pipe2"};
    }
    return {unique_fd{ends[0]}, unique_fd{ends[1]}};
}

/// Forks. The child is killed when the calling thread ends.
pid_t fork_child()
{
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0)
    {
        throw std::system_error{errno, std::generic_category(), "fork"};
    }
    if (child == 0 && (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent))
    {
        ::_exit(1);
    }
    return child;
}

/// Noexcept, so that an exception ends the child with its message instead of unwinding the parent's frames.
[[noreturn]] void report_result(const std::function<std::string()>& run, int to) noexcept
{
    const std::string text = run();
    // The child ends without destructors and exit handlers, and so without the leak check of a sanitizer.
    if (__lsan_do_recoverable_leak_check != nullptr && __lsan_do_recoverable_leak_check() != 0)
    {
        ::_exit(1);
    }
    const bool written = ::write(to, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
}

/// Makes exec close everything but the standard streams. A server must not inherit a test's sockets, because a
/// connection is only closed with its last descriptor.
void close_the_rest_at_exec()
{
    if (::syscall(SYS_close_range, first_inherited, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
    {
        return;
    }
    for (int descriptor = first_inherited; descriptor < max_descriptors_by_hand; ++descriptor)
    {
        ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    }
}

/// Executes a program in the child of a fork. Makes only calls that are async-signal-safe, because the parent may have
/// several threads. `conversation` is -1 for none. An error number is written to the pipe; a successful exec closes it.
[[noreturn]] void become(char* const* arguments, const char* output, int conversation, int error_pipe)
{
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    const bool talks = conversation >= 0;
    const int file = ::open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int in = talks ? conversation : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int out = talks ? conversation : file;
    if (in >= 0 && file >= 0 && ::dup2(in, 0) == 0 && ::dup2(out, 1) == 1 && ::dup2(file, 2) == 2)
    {
        close_the_rest_at_exec();
        ::execv(arguments[0], arguments);
    }
    const int error = errno;
    const ssize_t written = ::write(error_pipe, &error, sizeof error);
    ::_exit(written > 0 ? 1 : 2);
}

/// Waits for the end of the process if the kernel supports that, otherwise only for the time.
void wait_a_little(pid_t pid, steady_clock::time_point until)
{
    const unique_fd process{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
    wait_for(process.get(), POLLIN, until);
}

} // namespace

std::string find_program(const std::string& program)
{
    if (program.find('/') != std::string::npos)
    {
        return ::access(program.c_str(), X_OK) == 0 ? program : std::string{};
    }
    const char* path = std::getenv("PATH");
    std::istringstream directories{path == nullptr ? "/usr/bin:/bin" : path};
    for (std::string directory; std::getline(directories, directory, ':');)
    {
        std::string candidate = fmt::format("{}/{}", directory, program);
        if (::access(candidate.c_str(), X_OK) == 0)
        {
            return candidate;
        }
    }
    return {};
}

std::vector<std::string> last_lines(const std::string& path, std::size_t count, std::uintmax_t offset)
{
    std::ifstream file{path};
    file.seekg(static_cast<std::streamoff>(offset));
    std::deque<std::string> lines;
    for (std::string line; std::getline(file, line);)
    {
        lines.push_back(std::move(line));
        if (lines.size() > count)
        {
            lines.pop_front();
        }
    }
    return {lines.begin(), lines.end()};
}

std::string read_to_end(const unique_fd& from)
{
    std::string text;
    char bytes[512];
    for (ssize_t count = 0; (count = ::read(from.get(), bytes, sizeof bytes)) > 0;)
    {
        text.append(bytes, static_cast<std::size_t>(count));
    }
    return text;
}

child_process::child_process(const std::vector<std::string>& arguments, const std::string& output)
{
    start(arguments, output, -1);
}

child_process::child_process(
    const std::vector<std::string>& arguments, const std::string& output, unique_fd& conversation)
{
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    {
        throw std::system_error{errno, std::generic_category(), "socketpair"};
    }
    conversation = unique_fd{ends[0]};
    const unique_fd other_end{ends[1]};
    start(arguments, output, other_end.get());
}

child_process::child_process(const std::function<std::string()>& run, unique_fd& result)
{
    auto [reading, writing] = make_pipe();
    std::fflush(nullptr); // Otherwise both processes would write what is buffered.
    pid_ = fork_child();
    if (pid_ == 0)
    {
        report_result(run, writing.get());
    }
    result = std::move(reading);
}

void child_process::start(
    const std::vector<std::string>& arguments, const std::string& output, int conversation)
{
    std::vector<std::string> words = arguments;
    const std::string program = words.at(0);
    words[0] = find_program(program);
    if (words[0].empty())
    {
        throw std::runtime_error{fmt::format("{} is not on PATH", program)};
    }
    std::vector<char*> pointers;
    for (std::string& word : words)
    {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);

    auto [reading, writing] = make_pipe();
    pid_ = fork_child();
    if (pid_ == 0)
    {
        become(pointers.data(), output.c_str(), conversation, writing.get());
    }
    writing.reset();
    int error = 0;
    if (::read(reading.get(), &error, sizeof error) > 0)
    {
        kill();
        throw std::system_error{error, std::generic_category(), fmt::format("starting {}", words[0])};
    }
}

child_process::child_process(child_process&& other) noexcept
    : pid_{std::exchange(other.pid_, -1)}, stopped_{std::exchange(other.stopped_, false)}
{
}

child_process& child_process::operator=(child_process&& other) noexcept
{
    std::swap(pid_, other.pid_);
    std::swap(stopped_, other.stopped_);
    return *this;
}

child_process::~child_process()
{
    kill();
}

bool child_process::running() const
{
    if (pid_ < 0)
    {
        return false;
    }
    siginfo_t info{};
    // WNOWAIT, because kill() reaps the child.
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

void child_process::kill()
{
    if (pid_ < 0)
    {
        return;
    }
    // Not preceded by SIGCONT, after which a stopped child would process what its sockets have received.
    ::kill(pid_, SIGKILL);
    int status = 0;
    // Needs no deadline, because the kernel ends a killed process.
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR)
    {
    }
    pid_ = -1;
    stopped_ = false;
}

void child_process::signal_and_wait(int signal, int what_to_wait_for, const char* what)
{
    if (pid_ < 0)
    {
        throw std::logic_error{fmt::format("{}: there is no process", what)};
    }
    if (::kill(pid_, signal) != 0)
    {
        throw std::system_error{errno, std::generic_category(), what};
    }
    const auto deadline = steady_clock::now() + signal_limit;
    while (steady_clock::now() < deadline)
    {
        siginfo_t info{};
        if (::waitid(P_PID, static_cast<id_t>(pid_), &info, what_to_wait_for | WNOHANG) == 0 &&
            info.si_pid == pid_)
        {
            return;
        }
        if (!running())
        {
            // It may have continued and ended already.
            if (signal == SIGCONT)
            {
                return;
            }
            throw std::runtime_error{fmt::format("{}: process {} has ended", what, pid_)};
        }
        wait_a_little(pid_, steady_clock::now() + std::chrono::milliseconds{1});
    }
    throw std::runtime_error{
        fmt::format("{}: process {} did not follow within {} s", what, pid_, signal_limit.count())};
}

void child_process::stop()
{
    if (!stopped_)
    {
        signal_and_wait(SIGSTOP, WSTOPPED, "stop");
        stopped_ = true;
    }
}

void child_process::resume()
{
    if (stopped_)
    {
        signal_and_wait(SIGCONT, WCONTINUED, "resume");
        stopped_ = false;
    }
}

bool child_process::wait_for_end(std::chrono::milliseconds at_most) const
{
    const auto deadline = steady_clock::now() + at_most;
    while (running())
    {
        if (steady_clock::now() >= deadline)
        {
            return false;
        }
        wait_a_little(pid_, deadline);
    }
    return true;
}

} // namespace redlock::test
