// SPDX-License-Identifier: BSL-1.0
// fork, exec and waitpid.
#include "cli/run/child.hpp"

#include "cli/run/signals.hpp"

#include <redlock/error.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

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
constexpr int max_descriptors_by_hand = 65536;
constexpr int max_looks = 100;
constexpr int after_failed_exec = 127; // Nobody sees it: what exec said goes up the pipe.

/// What the child needs between fork and exec, made before: another thread may hold the heap's lock at the fork.
struct exec_plan
{
    char* const* arguments;
    char* const* environment;
    bool own_group;
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
    for (int descriptor = first_inherited; descriptor < max_descriptors_by_hand; ++descriptor)
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
    if (plan.own_group)
    {
        ::setpgid(0, 0);
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

/// Our environment with some variables in it, and without others.
std::vector<std::string> environment_of(const child_plan& plan)
{
    std::vector<std::string> all = plan.environment;
    for (char** each = environ; each != nullptr && *each != nullptr; ++each)
    {
        const std::string_view inherited{*each};
        const auto is_inherited = [name = name_of(inherited)](std::string_view other)
        { return name_of(other) == name; };
        if (std::none_of(plan.environment.begin(), plan.environment.end(), is_inherited) &&
            std::none_of(plan.without.begin(), plan.without.end(), is_inherited))
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
    std::vector<std::string> environment = environment_of(plan);
    const std::vector<char*> arguments = pointers_to(command);
    const std::vector<char*> variables = pointers_to(environment);
    processes_.open();
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    {
        fail("can't start a process: pipe");
    }
    exec_pipe_ = ends[0];
    // Else those of its group that lose their parent would end unseen.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    auto before = processes_.descendants();
    if (processes_.is_open() && !before)
    {
        const int error = errno;
        ::close(ends[1]);
        errno = error;
        fail("can't start a process: can't read /proc");
    }
    strangers_ = std::move(before).value_or(std::vector<pid_t>{});
    own_group_ = plan.own_group;
    const exec_plan prepared{arguments.data(), variables.data(), own_group_, ends[1], ::getpid()};
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
        fail("can't start a process");
    }
    pid_ = forked;
    if (own_group_)
    {
        // The child does it too. Either comes first, so that no signal to the group is lost.
        ::setpgid(pid_, pid_);
    }
}

void child::pass_on(int number) noexcept
{
    if (!started() || ended())
    {
        return;
    }
    if (own_group_)
    {
        ::kill(-pid_, number);
    }
    if (!own_group_ || ::getpgid(pid_) != pid_)
    {
        ::kill(pid_, number);
    }
}

bool child::in_our_group() const noexcept
{
    return started() && ::getpgid(pid_) == ::getpgrp();
}

void child::signal_all(int number)
{
    if (!started())
    {
        return;
    }
    const bool whole_group = own_group_ && !group_gone(false);
    if (whole_group)
    {
        // In one step: no member can escape it by a fork.
        ::kill(-pid_, number);
    }
    std::vector<pid_t> signalled;
    if (!whole_group && !ended())
    {
        // Ahead of a look, which takes its time, and finds nothing without /proc.
        ::kill(pid_, number);
        signalled.push_back(pid_);
    }
    // Those outside of the group, until a look finds no more of them: one may fork before its signal comes. What a
    // look misses becomes a child of ours when its parent ends, and is found by the next.
    for (int looks = 0; looks < max_looks; ++looks)
    {
        const std::size_t before = signalled.size();
        for (const pid_t each : everything())
        {
            if (std::find(signalled.begin(), signalled.end(), each) == signalled.end())
            {
                signalled.push_back(each);
                if (!whole_group || ::getpgid(each) != pid_)
                {
                    ::kill(each, number);
                }
            }
        }
        if (signalled.size() == before)
        {
            return;
        }
    }
}

std::vector<pid_t> child::everything()
{
    if (auto found = processes_.descendants(strangers_))
    {
        return *std::move(found);
    }
    return ended() ? std::vector<pid_t>{} : std::vector{pid_};
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
            if (WIFEXITED(status) || WIFSIGNALED(status))
            {
                std::erase(strangers_, changed); // Its number may become that of a process of the command.
            }
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
    const bool no_member = ::kill(-pid_, 0) != 0 && errno == ESRCH;
    const bool none_of_ours = ::waitpid(-pid_, nullptr, WNOHANG) < 0 && errno == ECHILD;
    group_gone_ = group_gone_ || no_member || (killed && none_of_ours);
    return group_gone_;
}

bool child::all_gone(bool killed)
{
    if (!ended() || (own_group_ && !group_gone(killed)))
    {
        return false;
    }
    const auto left = processes_.descendants(strangers_);
    return left ? left->empty() : !processes_.is_open();
}

int child::exit_code() const noexcept
{
    const int status = status_.value_or(0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int child::killed_by() const noexcept
{
    const int status = status_.value_or(0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

} // namespace redlock::cli
