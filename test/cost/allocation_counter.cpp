// SPDX-License-Identifier: BSL-1.0
// Stands in front of the C library's allocating functions. operator new ends in malloc, but Asio calls
// aligned_alloc itself: replacing only operator new would miss it. What they return is the C library's own
// and freed by its free.
#include "cost/allocation_counter.hpp"

#include <cerrno>
#include <cstddef>

namespace
{

// A plain number in the thread's own block: reading it never allocates, at no point of a thread's life.
constinit thread_local std::uint64_t allocations = 0;

} // namespace

extern "C"
{
    void* __libc_malloc(std::size_t size);
    void* __libc_calloc(std::size_t count, std::size_t size);
    void* __libc_realloc(void* block, std::size_t size);
    void* __libc_memalign(std::size_t alignment, std::size_t size);

    void* malloc(std::size_t size) noexcept
    {
        ++allocations;
        return __libc_malloc(size);
    }

    void* calloc(std::size_t count, std::size_t size) noexcept
    {
        ++allocations;
        return __libc_calloc(count, size);
    }

    void* realloc(void* block, std::size_t size) noexcept
    {
        ++allocations;
        return __libc_realloc(block, size);
    }

    void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept
    {
        ++allocations;
        return __libc_memalign(alignment, size);
    }

    int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept
    {
        ++allocations;
        *block = __libc_memalign(alignment, size);
        return *block == nullptr ? ENOMEM : 0;
    }
}

namespace redlock::test
{

std::uint64_t allocations_of_this_thread() noexcept
{
    return allocations;
}

} // namespace redlock::test
