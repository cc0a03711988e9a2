// SPDX-License-Identifier: BSL-1.0
// A signalfd.
#include "cli/signals.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <sys/signalfd.h>
#include <unistd.h>

namespace redlock::cli
{

namespace
{

constexpr std::array ends{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array passed_on{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};
constexpr std::array of_jobs{SIGCHLD, SIGTSTP, SIGCONT};
constexpr std::array stops{SIGTSTP, SIGTTIN, SIGTTOU};

template <class Numbers>
bool contains(const Numbers& numbers, int number) noexcept
{
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

bool is_ignored(int number) noexcept
{
    struct sigaction now
    {
    };
    return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

int open_source()
{
    // Ignored, it would take the child's exit status away.
    std::signal(SIGCHLD, SIG_DFL);
    std::signal(SIGPIPE, SIG_IGN);
    sigset_t read;
    ::sigemptyset(&read);
    for (const int number : passed_on)
    {
        if (!is_ignored(number))
        {
            ::sigaddset(&read, number);
        }
    }
    for (const int number : of_jobs)
    {
        if (!is_ignored(number))
        {
            ::sigaddset(&read, number);
        }
    }
    sigset_t blocked = read;
    // Blocked, so that the terminal can be given and taken from the background; there is nothing to read of it.
    ::sigaddset(&blocked, SIGTTOU);
    ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
    const int descriptor = ::signalfd(-1, &read, SFD_NONBLOCK | SFD_CLOEXEC);
    if (descriptor < 0)
    {
        throw system_error{error_code{errno, boost::system::system_category()}, "signalfd"};
    }
    return descriptor;
}

} // namespace

signal_source::signal_source(asio::io_context& io, mailbox& to) : to_{to}, source_{io, open_source()}
{
    wait();
}

void signal_source::wait()
{
    source_.async_wait(
        asio::posix::stream_descriptor::wait_read,
        [this](error_code error)
        {
            if (!error)
            {
                read();
                wait();
            }
        });
}

void signal_source::read()
{
    // A signal waits once, however often it came: so there can't be more of them than this.
    for (std::size_t most = passed_on.size() + of_jobs.size(); most > 0; --most)
    {
        signalfd_siginfo came{};
        if (::read(source_.native_handle(), &came, sizeof came) != static_cast<ssize_t>(sizeof came))
        {
            return;
        }
        to_.push({.kind = event_kind::signal, .signal = static_cast<int>(came.ssi_signo)});
    }
}

void signal_source::close() noexcept
{
    error_code ignored;
    source_.close(ignored);
}

bool asks_to_end(int number) noexcept
{
    return contains(ends, number);
}

bool is_passed_on(int number) noexcept
{
    return contains(passed_on, number);
}

bool is_stop_of_terminal(int number) noexcept
{
    return contains(stops, number);
}

void restore_signals_of_child() noexcept
{
    ::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

} // namespace redlock::cli
