// SPDX-License-Identifier: BSL-1.0
// Replaces the C library's allocation functions. operator new calls malloc, but Asio calls aligned_alloc itself, which
// replacing operator new would miss. The memory is the C library's, and freed by its free.
#include "cost/allocation_counter.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include <malloc.h>

namespace
{

// Plain thread-local numbers: reading them never allocates, at any point of a thread's life.
constinit thread_local std::uint64_t allocations = 0;
constinit thread_local std::int64_t in_use = 0;
constinit thread_local std::int64_t peak = 0;

/// Includes the word that the C library keeps in front of a block.
std::int64_t size_of(void* block)
{
    return block == nullptr ? 0
                            : static_cast<std::int64_t>(::malloc_usable_size(block) + sizeof(std::size_t));
}

void* taken(void* block)
{
    ++allocations;
    in_use += size_of(block);
    peak = std::max(peak, in_use);
    return block;
}

} // namespace

extern "C"
{
    void* __libc_malloc(std::size_t size);
    void* __libc_calloc(std::size_t count, std::size_t size);
    void* __libc_realloc(void* block, std::size_t size);
    void* __libc_memalign(std::size_t alignment, std::size_t size);
    void __libc_free(void* block);

    void* malloc(std::size_t size) noexcept
    {
        return taken(__libc_malloc(size));
    }

    void* calloc(std::size_t count, std::size_t size) noexcept
    {
        return taken(__libc_calloc(count, size));
    }

    void* realloc(void* block, std::size_t size) noexcept
    {
        const std::int64_t before = size_of(block);
        void* const moved = __libc_realloc(block, size);
        in_use -= moved == nullptr ? 0 : before;
        return taken(moved);
    }

    void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept
    {
        return taken(__libc_memalign(alignment, size));
    }

    int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept
    {
        *block = taken(__libc_memalign(alignment, size));
        return *block == nullptr ? ENOMEM : 0;
    }

    void free(void* block) noexcept
    {
        in_use -= size_of(block);
        __libc_free(block);
    }
}

namespace redlock::test
{

std::uint64_t allocations_of_this_thread() noexcept
{
    return allocations;
}

std::int64_t heap_of_this_thread() noexcept
{
    return in_use;
}

std::int64_t heap_peak_of_this_thread() noexcept
{
    return peak;
}

void forget_heap_peak() noexcept
{
    peak = in_use;
}

} // namespace redlock::test
