// SPDX-License-Identifier: BSL-1.0
// Selects the queue master of a resource: the master at which its clients queue. All clients select the same one,
// whatever they call their masters, and resources are spread over all masters.
#pragma once

#include <cstdint>
#include <string_view>

namespace redlock::core
{

/// Returns the 64-bit FNV-1a hash (https://datatracker.ietf.org/doc/html/rfc9923). It is the same in every process and
/// every version. With the hash of a prefix, returns that of the prefix followed by the text.
std::uint64_t stable_hash(std::string_view text, std::uint64_t prefix = 0xcbf29ce484222325) noexcept;

/// Returns the weight of a master for a key, from the hashes of the master's run id and of the key. Of the connected
/// masters, the one with the highest weight is the queue master. This is rendezvous hashing (Thaler, Ravishankar,
/// 1998): if a master is disconnected, only the resources that were assigned to it get another queue master.
constexpr std::uint64_t queue_weight(std::uint64_t master, std::uint64_t key) noexcept
{
    // The finalizer of SplitMix64 (Steele, Lea, Flood): every input bit affects every bit of the result.
    std::uint64_t mixed = master ^ (key * 0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

} // namespace redlock::core
