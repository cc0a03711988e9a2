// SPDX-License-Identifier: BSL-1.0
// Memory for coroutine frames.
#include "runtime/frame_pool.hpp"

#include "runtime/cache.hpp"

#include <new>

// Frames in the pool are poisoned, so that AddressSanitizer detects accesses to them.
#if defined(__SANITIZE_ADDRESS__)
#define REDLOCK_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REDLOCK_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(REDLOCK_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace redlock::runtime
{

namespace
{

void mark_unused([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) noexcept
{
#if defined(REDLOCK_ADDRESS_SANITIZER)
    __asan_poison_memory_region(block, bytes);
#endif
}

void mark_used([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) noexcept
{
#if defined(REDLOCK_ADDRESS_SANITIZER)
    __asan_unpoison_memory_region(block, bytes);
#endif
}

} // namespace

frame_pool::~frame_pool()
{
    for (std::size_t size_class = 0; size_class < classes; ++size_class)
    {
        for (free_block* block = free_[size_class]; block != nullptr;)
        {
            free_block* next = block->next;
            mark_used(block, (size_class + 1) * step);
            ::operator delete(static_cast<void*>(block));
            block = next;
        }
    }
}

void* frame_pool::take(std::size_t bytes)
{
    const std::size_t total = bytes + sizeof(header);
    const std::size_t size_class = (total - 1) / step;
    void* memory = nullptr;
    if (size_class < classes && free_[size_class] != nullptr)
    {
        free_block* block = free_[size_class];
        free_[size_class] = block->next;
        prefetch(block->next, sizeof(free_block));
        memory = block;
        mark_used(memory, (size_class + 1) * step);
    }
    else
    {
        memory = ::operator new((size_class + 1) * step);
    }
    auto* head = ::new (memory) header{this, size_class};
    return head + 1;
}

void frame_pool::recycle(void* block) noexcept
{
    header* head = static_cast<header*>(block) - 1;
    frame_pool* pool = head->pool;
    const std::size_t size_class = head->size_class;
    if (size_class >= classes)
    {
        ::operator delete(static_cast<void*>(head));
        return;
    }
    pool->free_[size_class] = ::new (static_cast<void*>(head)) free_block{pool->free_[size_class]};
    mark_unused(block, (size_class + 1) * step - sizeof(header));
}

} // namespace redlock::runtime
