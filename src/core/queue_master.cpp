// SPDX-License-Identifier: BSL-1.0
// The queue master of a resource.
#include "core/queue_master.hpp"

namespace redlock::core
{

std::uint64_t stable_hash(std::string_view text, std::uint64_t prefix) noexcept
{
    std::uint64_t hash = prefix;
    for (const char each : text)
    {
        hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
    }
    return hash;
}

} // namespace redlock::core
