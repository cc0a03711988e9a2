// SPDX-License-Identifier: BSL-1.0
// Which master leads for a resource: the one where those who were refused stand in line. Every client finds the same one,
// whatever the order in which it was told of them, and resources are spread over all of them.
#pragma once

#include <cstdint>
#include <string_view>

namespace redlock::core
{

/// The same in every process and every version: FNV-1a of 64 bits
/// (Fowler, Noll, Vo; https://datatracker.ietf.org/doc/html/rfc9923).
std::uint64_t stable_hash(std::string_view text) noexcept;

/// Of the masters that can be asked, the one with the highest claim leads. Takes hashes: of its name, of the key.
/// Rendezvous hashing (Thaler, Ravishankar, 1998): when one is gone, only what it led for gets another leader.
std::uint64_t claim_to_lead(std::uint64_t master, std::uint64_t key) noexcept;

} // namespace redlock::core
