// SPDX-License-Identifier: BSL-1.0
// Restores settings with tcsetattr and tcsetpgrp. SIGTTOU is blocked (signals.cpp), so neither stops redlock.
#include "cli/run/terminal.hpp"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace redlock::cli
{

namespace
{

bool is_pipe(int descriptor) noexcept
{
    struct stat about
    {
    };
    return ::fstat(descriptor, &about) == 0 && S_ISFIFO(about.st_mode);
}

int open_terminal() noexcept
{
    const int direct = ::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (direct >= 0)
    {
        return direct;
    }
    // A bare chroot has no /dev/tty.
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    {
        if (::isatty(standard) == 1 && ::tcgetsid(standard) == ::getsid(0))
        {
            return ::fcntl(standard, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        }
    }
    return -1;
}

} // namespace

terminal::terminal() : descriptor_{open_terminal()}
{
    termios now{};
    if (is_there() && ::tcgetattr(descriptor_, &now) == 0)
    {
        settings_ = now;
        was_ours_ = ::tcgetpgrp(descriptor_) == ::getpgrp();
    }
}

terminal::~terminal()
{
    if (is_there())
    {
        ::close(descriptor_);
    }
}

void terminal::restore() const noexcept
{
    if (!was_ours_)
    {
        return;
    }
    const pid_t foreground = ::tcgetpgrp(descriptor_);
    const bool gone = foreground > 0 && ::kill(-foreground, 0) != 0 && errno == ESRCH;
    if (foreground != ::getpgrp() && !(gone && ::tcsetpgrp(descriptor_, ::getpgrp()) == 0))
    {
        return;
    }
    // A pipe may lead to a pager, whose settings these are.
    if (!is_pipe(STDOUT_FILENO))
    {
        ::tcsetattr(descriptor_, TCSANOW, &*settings_);
    }
}

} // namespace redlock::cli
