// SPDX-License-Identifier: BSL-1.0
// tcsetpgrp and when to call it. SIGTTOU is blocked (signals.cpp), so it works from the background as well.
#include "cli/terminal.hpp"

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

} // namespace

terminal::terminal() : shared_{::isatty(STDIN_FILENO) == 1 && !is_pipe(STDOUT_FILENO)} {}

bool terminal::is_ours() const noexcept
{
    return shared_ && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

void terminal::give_to(pid_t group) noexcept
{
    if (!shared_)
    {
        return;
    }
    // The child takes it by itself when it starts, and may have been faster.
    const pid_t holder = ::tcgetpgrp(STDIN_FILENO);
    if (holder == group || (holder == ::getpgrp() && ::tcsetpgrp(STDIN_FILENO, group) == 0))
    {
        given_to_ = group;
    }
}

void terminal::take_back() noexcept
{
    if (given_to_ != -1 && ::tcgetpgrp(STDIN_FILENO) == given_to_)
    {
        ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
    }
    given_to_ = -1;
}

} // namespace redlock::cli
