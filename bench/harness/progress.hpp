// SPDX-License-Identifier: BSL-1.0
// A status line on stderr. On a terminal each text replaces the previous one.
#pragma once

#include <cstdio>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

namespace redlock::bench
{

class progress
{
  public:
    progress() = default;
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;
    ~progress() { std::fputs(erase_, stderr); }

    void show(std::string_view what)
    {
        fmt::print(stderr, "{}bench: {}{}", erase_, what, *erase_ != '\0' ? "" : "\n");
        std::fflush(stderr);
    }
    /// Prints a line that isn't replaced.
    void print_line(std::string_view what) { fmt::print(stderr, "{}bench: {}\n", erase_, what); }

  private:
    const char* erase_ = ::isatty(STDERR_FILENO) == 1 ? "\r\033[K" : ""; // Erases the previous text.
};

} // namespace redlock::bench
