// SPDX-License-Identifier: BSL-1.0
// Preloaded into the command, this makes a fork wait: it writes a line to the pipe LATE_FORK_TELLS, and forks once a
// line is written to the pipe LATE_FORK_WAITS.
#include <cstdlib>
#include <fstream>
#include <string>

#include <dlfcn.h>
#include <unistd.h>

extern "C" pid_t fork()
{
    const char* const tells = std::getenv("LATE_FORK_TELLS");
    const char* const waits = std::getenv("LATE_FORK_WAITS");
    if (tells != nullptr && waits != nullptr)
    {
        std::ofstream{tells} << "forks\n" << std::flush;
        std::string line;
        std::ifstream pipe{waits};
        std::getline(pipe, line);
    }
    return reinterpret_cast<pid_t (*)()>(::dlsym(RTLD_NEXT, "fork"))();
}
