// SPDX-License-Identifier: BSL-1.0
// fork, exec and waitpid.
#include "cli/child.hpp"

#include "cli/signals.hpp"

#include <redlock/error.hpp>

#include <cerrno>
#include <csignal>
#include <string_view>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redlock::cli
{

namespace
{

constexpr int first_inherited = 3;
constexpr int most_descriptors_by_hand = 65536;
constexpr int after_failed_exec = 127; // Nobody sees it: what exec said goes up the pipe.

/// What the child needs between fork and exec, made before: another thread may hold the heap's lock at the fork.
struct exec_plan
{
    char* const* arguments;
    char* const* environment;
    bool takes_terminal;
    int error_pipe;
    pid_t parent;
};

void close_the_rest_at_exec() noexcept
{
    if (::syscall(SYS_close_range, first_inherited, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
    {
        return;
    }
    // Linux before 5.11.
    for (int descriptor = first_inherited; descriptor < most_descriptors_by_hand; ++descriptor)
    {
        ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    }
}

/// The child's way from fork to exec.
[[noreturn]] void become(const exec_plan& plan) noexcept
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan.parent)
    {
        // The parent ended before the kernel knew whose death to look for.
        ::_exit(after_failed_exec);
    }
    ::setpgid(0, 0);
    if (plan.takes_terminal)
    {
        // The parent does it too: whoever is first, it is done before the command reads.
        ::tcsetpgrp(STDIN_FILENO, ::getpid());
    }
    close_the_rest_at_exec();
    restore_signals_of_child();
    ::execvpe(plan.arguments[0], plan.arguments, plan.environment);
    const int error = errno;
    [[maybe_unused]] const ssize_t written = ::write(plan.error_pipe, &error, sizeof error);
    ::_exit(after_failed_exec);
}

std::string_view name_of(std::string_view variable)
{
    return variable.substr(0, variable.find('='));
}

/// Our environment with these variables in it.
std::vector<std::string> environment_with(const std::vector<std::string>& additions)
{
    std::vector<std::string> all = additions;
    for (char** each = environ; each != nullptr && *each != nullptr; ++each)
    {
        const std::string_view inherited{*each};
        bool replaced = false;
        for (const std::string& addition : additions)
        {
            replaced = replaced || name_of(addition) == name_of(inherited);
        }
        if (!replaced)
        {
            all.emplace_back(inherited);
        }
    }
    return all;
}

/// As exec wants it. Good as long as `words` is.
std::vector<char*> pointers_to(std::vector<std::string>& words)
{
    std::vector<char*> pointers;
    for (std::string& word : words)
    {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

[[noreturn]] void fail(const char* what)
{
    throw system_error{error_code{errno, boost::system::system_category()}, what};
}

} // namespace

child::~child()
{
    if (exec_pipe_ >= 0)
    {
        ::close(exec_pipe_);
    }
}

void child::start(const child_plan& plan)
{
    std::vector<std::string> command = plan.command;
    std::vector<std::string> environment = environment_with(plan.environment);
    const std::vector<char*> arguments = pointers_to(command);
    const std::vector<char*> variables = pointers_to(environment);
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    {
        fail("pipe2");
    }
    exec_pipe_ = ends[0];
    // Else those of its group that lose their parent would end unseen.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    const exec_plan prepared{arguments.data(), variables.data(), plan.takes_terminal, ends[1], ::getpid()};
    const pid_t forked = ::fork();
    if (forked == 0)
    {
        become(prepared);
    }
    const int error = errno;
    ::close(ends[1]);
    if (forked < 0)
    {
        errno = error;
        fail("fork");
    }
    pid_ = forked;
    // The child does it too: whoever is first, no signal to the group goes astray.
    ::setpgid(pid_, pid_);
}

void child::signal(int number) noexcept
{
    if (!started() || group_gone_)
    {
        return;
    }
    ::kill(-pid_, number);
    if (!ended() && ::getpgid(pid_) != pid_)
    {
        ::kill(pid_, number);
    }
}

void child::reap() noexcept
{
    // Each turn takes one change of one process away; those that are dead are counted, and nothing forks here.
    for (;;)
    {
        int status = 0;
        const pid_t changed = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (changed <= 0)
        {
            return;
        }
        if (changed != pid_)
        {
            continue;
        }
        if (WIFSTOPPED(status))
        {
            stopped_by_ = WSTOPSIG(status);
        }
        else if (WIFCONTINUED(status))
        {
            stopped_by_ = 0;
        }
        else
        {
            stopped_by_ = 0;
            status_ = status;
            read_exec_error();
        }
    }
}

void child::read_exec_error() noexcept
{
    int error = 0;
    if (::read(exec_pipe_, &error, sizeof error) == static_cast<ssize_t>(sizeof error))
    {
        exec_error_ = error;
    }
}

bool child::group_gone(bool killed) noexcept
{
    if (!ended())
    {
        return false;
    }
    // Once it is gone its number may belong to strangers: that is why it is remembered.
    const bool nobody = ::kill(-pid_, 0) != 0 && errno == ESRCH;
    const bool nobody_of_ours = ::waitpid(-pid_, nullptr, WNOHANG) < 0 && errno == ECHILD;
    group_gone_ = group_gone_ || nobody || (killed && nobody_of_ours);
    return group_gone_;
}

int child::exit_code() const noexcept
{
    const int status = status_.value_or(0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

} // namespace redlock::cli
