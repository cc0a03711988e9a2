// SPDX-License-Identifier: BSL-1.0
// The processor's cache: how it is cut, and what to have in it in time. With many operations at once none of them is in the
// cache when it goes on, and waiting for memory is most of what it costs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace redlock::env
{

inline constexpr std::size_t cache_line = 64; // Bytes: x86-64 and most of ARM's.

/// Has the processor fetch so many bytes while it goes on. It only looks: nothing need be there. Of null it fetches nothing.
inline void fetch_soon(const void* first, std::size_t bytes) noexcept
{
    const auto begin = reinterpret_cast<std::uintptr_t>(first);
    const std::uintptr_t end = begin + (first != nullptr ? bytes : 0);
    for (std::uintptr_t next = begin; next < end; next += cache_line)
    {
        __builtin_prefetch(reinterpret_cast<const void*>(next));
    }
}

} // namespace redlock::env
