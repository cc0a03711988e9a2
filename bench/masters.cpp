// SPDX-License-Identifier: BSL-1.0
// What the masters tell of the work that they had.
#include "masters.hpp"

#include <string>

#include <fmt/format.h>

namespace redlock::bench
{

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

} // namespace redlock::bench
