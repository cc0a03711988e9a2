// SPDX-License-Identifier: BSL-1.0
// The lines of a trace: the true time, the party, the time by its own clock, and the event.
#include "trace.hpp"

#include "simulation/virtual_world.hpp"

#include <fmt/format.h>

namespace redlock::test
{

std::string in_seconds(clock::time_point when)
{
    const auto microseconds = std::chrono::floor<std::chrono::microseconds>(when - beginning).count();
    const auto whole = microseconds < 0 ? -microseconds : microseconds;
    return fmt::format("{}{}.{:06}", microseconds < 0 ? "-" : "", whole / 1'000'000, whole % 1'000'000);
}

void trace::print(
    clock::time_point truth, std::string_view who, clock::time_point its_clock, std::string_view what)
{
    const std::string line =
        fmt::format("{:>12} {:<10} {:>12}  {}\n", in_seconds(truth), who, in_seconds(its_clock), what);
    std::fwrite(line.data(), 1, line.size(), out_);
}

} // namespace redlock::test
