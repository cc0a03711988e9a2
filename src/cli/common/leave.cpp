// SPDX-License-Identifier: BSL-1.0
// Ends the program by exit code or by signal.
#include "cli/common/leave.hpp"

#include "cli/common/message.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <sys/prctl.h>

namespace redlock::cli
{

void leave(const ending& how)
{
    if (how.signal != 0)
    {
        // The core would have the passwords of the masters in it, and replace that of the command.
        ::prctl(PR_SET_DUMPABLE, 0);
        std::signal(how.signal, SIG_DFL);
        sigset_t only;
        ::sigemptyset(&only);
        ::sigaddset(&only, how.signal);
        ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
        ::raise(how.signal);
        // Reached only if the signal didn't end the process. A shell would show this code.
        std::_Exit(128 + how.signal);
    }
    std::_Exit(how.exit_code);
}

void leave_with_output(exit_code code)
{
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    {
        say("can't write to stdout");
        code = exit_code::system_error;
    }
    leave({number_of(code), 0});
}

} // namespace redlock::cli
