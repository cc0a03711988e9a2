// SPDX-License-Identifier: BSL-1.0
// A status line on stderr.
#include "harness/progress.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace redlock::bench
{

progress::progress() : terminal_{::isatty(STDERR_FILENO) == 1} {}

progress::~progress()
{
    if (terminal_)
    {
        std::fputs("\r\033[K", stderr);
    }
}

void progress::show(std::string_view what)
{
    fmt::print(stderr, "{}bench: {}{}", terminal_ ? "\r\033[K" : "", what, terminal_ ? "" : "\n");
    std::fflush(stderr);
}

void progress::print_line(std::string_view what)
{
    fmt::print(stderr, "{}bench: {}\n", terminal_ ? "\r\033[K" : "", what);
}

} // namespace redlock::bench
