// SPDX-License-Identifier: BSL-1.0
// A forked process that sleeps on the clock of leases. After the fork it makes only async-signal-safe calls.
#include "cli/run/stop_watch.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redlock::cli
{

namespace
{

void sleep_until(clock::time_point end) noexcept
{
    const auto since_boot = std::max(end.time_since_epoch(), clock::duration{1});
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
    timespec at{};
    at.tv_sec = static_cast<time_t>(seconds.count());
    at.tv_nsec = static_cast<long>((since_boot - seconds).count());
    while (::clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, nullptr) == EINTR)
    {
    }
}

[[noreturn]] void watch(clock::time_point end, const std::vector<pid_t>& stopped, pid_t redlock) noexcept
{
    // Leaves the process group, whose signals aren't meant for it. redlock has blocked all other signals already.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == redlock)
    {
        sleep_until(end);
        for (const pid_t each : stopped)
        {
            ::kill(each, SIGKILL);
        }
    }
    ::_exit(0);
}

} // namespace

stop_watch::stop_watch(clock::time_point end, const std::vector<pid_t>& stopped) noexcept : end_{end}
{
    const pid_t redlock = ::getpid();
    watcher_ = ::fork();
    if (watcher_ == 0)
    {
        watch(end, stopped, redlock);
    }
}

bool stop_watch::finish() noexcept
{
    if (watcher_ > 0)
    {
        ::kill(watcher_, SIGKILL);
        ::waitpid(watcher_, nullptr, 0);
        watcher_ = -1;
    }
    return clock::now() >= end_;
}

} // namespace redlock::cli
