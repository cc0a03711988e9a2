// SPDX-License-Identifier: BSL-1.0
// The size of a cache line, and prefetching. With many concurrent operations, the memory of an operation is no longer
// in the processor's cache when it continues, and cache misses are most of its cost.
#pragma once

#include <cstddef>
#include <cstdint>

namespace redlock::runtime
{

inline constexpr std::size_t cache_line = 64; // Bytes, on x86-64 and most ARM processors.

/// Prefetches `bytes` bytes into the processor's cache. The memory need not be valid; a null pointer fetches nothing.
inline void prefetch(const void* first, std::size_t bytes) noexcept
{
    const auto begin = reinterpret_cast<std::uintptr_t>(first);
    const std::uintptr_t end = begin + (first != nullptr ? bytes : 0);
    for (std::uintptr_t next = begin; next < end; next += cache_line)
    {
        __builtin_prefetch(reinterpret_cast<const void*>(next));
    }
}

} // namespace redlock::runtime
