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

std::uint64_t queue_weight(std::uint64_t master, std::uint64_t key) noexcept
{
    // The finalizer of SplitMix64 (Steele, Lea, Flood): every input bit affects every bit of the result.
    std::uint64_t mixed = master ^ (key * 0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

} // namespace redlock::core
