// SPDX-License-Identifier: BSL-1.0
// Reads signals from a signalfd.
#include "cli/run/signals.hpp"

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

constexpr std::array ends_of_both{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array of_jobs{SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU};
constexpr std::array stops{SIGTSTP, SIGTTIN, SIGTTOU};
constexpr std::array keys_of_terminal{SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH};

bool sigpipe_was_ignored = false; // When redlock was started.

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

/// Returns true if the kernel sends the signal to the whole foreground group. A hangup of a session leader is sent to
/// it alone.
bool is_sent_by_terminal(int number) noexcept
{
    return contains(keys_of_terminal, number) || (number == SIGHUP && ::getsid(0) != ::getpid());
}

int open_source()
{
    // An ignored SIGCHLD would discard the child's exit status.
    std::signal(SIGCHLD, SIG_DFL);
    sigpipe_was_ignored = std::signal(SIGPIPE, SIG_IGN) == SIG_IGN;
    sigset_t read;
    ::sigfillset(&read);
    ::sigdelset(&read, SIGURG); // Has no effect by default.
    for (int number = 1; number <= SIGRTMAX; ++number)
    {
        if (is_ignored(number))
        {
            ::sigdelset(&read, number);
        }
    }
    // SIGTTOU is always blocked, so that the terminal's settings can be restored from the background.
    sigset_t blocked = read;
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
    for (int most = NSIG; most > 0; --most)
    {
        signalfd_siginfo came{};
        if (::read(source_.native_handle(), &came, sizeof came) != static_cast<ssize_t>(sizeof came))
        {
            return;
        }
        const auto number = static_cast<int>(came.ssi_signo);
        to_.push(
            {.kind = event_kind::signal,
             .signal = number,
             .from_terminal = came.ssi_code == SI_KERNEL && is_sent_by_terminal(number)});
    }
}

void signal_source::close() noexcept
{
    error_code ignored;
    source_.close(ignored);
}

bool requests_end(int number) noexcept
{
    return is_passed_on(number) && number != SIGWINCH;
}

bool is_passed_on(int number) noexcept
{
    return !contains(of_jobs, number);
}

bool is_stop_of_terminal(int number) noexcept
{
    return contains(stops, number);
}

bool ends_both(int number) noexcept
{
    return contains(ends_of_both, number);
}

bool is_continued(const mailbox& events) noexcept
{
    sigset_t pending;
    ::sigemptyset(&pending);
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGCONT) == 1 ||
           events.contains({.kind = event_kind::signal, .signal = SIGCONT});
}

void restore_signals_of_child() noexcept
{
    if (!sigpipe_was_ignored)
    {
        ::signal(SIGPIPE, SIG_DFL);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

} // namespace redlock::cli
