// SPDX-License-Identifier: BSL-1.0
// Ports, command counts and CPU time of the masters.
#include "harness/masters.hpp"

#include "harness/client.hpp"

#include <ctime>
#include <string>
#include <system_error>

#include <fmt/format.h>

namespace redlock::bench
{

std::vector<int> ports_of(std::span<const test::server> masters)
{
    std::vector<int> ports;
    for (const test::server& master : masters)
    {
        ports.push_back(master.port());
    }
    return ports;
}

double commands_run(std::span<test::server> masters, std::string_view name)
{
    const std::string field = fmt::format("cmdstat_{}:calls=", name);
    double count = 0;
    for (test::server& master : masters)
    {
        const std::string stats = master.command({"INFO", "commandstats"}).text;
        if (const std::size_t at = stats.find(field); at != std::string::npos)
        {
            count += std::stod(stats.substr(at + field.size(), 20));
        }
    }
    return count;
}

std::chrono::nanoseconds cpu_of(std::span<const test::server> masters)
{
    std::chrono::nanoseconds sum{0};
    for (const test::server& master : masters)
    {
        clockid_t clock{};
        if (const int problem = ::clock_getcpuclockid(master.pid(), &clock); problem != 0)
        {
            throw std::system_error{problem, std::generic_category(), "reading the CPU time of a master"};
        }
        sum += cpu_time(clock);
    }
    return sum;
}

} // namespace redlock::bench
