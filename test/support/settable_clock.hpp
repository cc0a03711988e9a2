// SPDX-License-Identifier: BSL-1.0
// A wall clock that only some servers see, and that can be set while they run.
#pragma once

#include "server.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

namespace redlock::test
{

/// Applies to the servers that are started by `program()`.
class settable_clock
{
  public:
    /// `preload` is the path of the settable_clock_preload library.
    explicit settable_clock(const std::string& preload)
    {
        set(std::chrono::seconds{0});
        std::ofstream{program()} << fmt::format(
            "#!/bin/sh\nLD_PRELOAD={} SETTABLE_CLOCK={} exec {} \"$@\"\n", preload, file(),
            program_of("redis-server"));
        std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
    }

    std::string program() const { return directory_.path() + "/redis-with-a-clock"; }
    /// Sets the clock ahead of the machine's.
    void set(std::chrono::seconds ahead)
    {
        const std::int64_t seconds = ahead.count();
        // Written in place, because the server has mapped the file.
        std::fstream out{file(), std::ios::binary | std::ios::in | std::ios::out};
        if (!out)
        {
            out.open(file(), std::ios::binary | std::ios::out);
        }
        out.write(reinterpret_cast<const char*>(&seconds), sizeof seconds);
    }

  private:
    std::string file() const { return directory_.path() + "/clock"; }

    temporary_directory directory_;
};

} // namespace redlock::test
