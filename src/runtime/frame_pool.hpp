// SPDX-License-Identifier: BSL-1.0
// Memory for coroutine frames. Freed frames are reused, so that a running manager soon needs no further allocations.
#pragma once

#include <array>
#include <cstddef>

namespace redlock::runtime
{

/// A pool of memory blocks in a few size classes. Not thread-safe: it is used on one strand. It must outlive every
/// block taken from it.
class frame_pool
{
  public:
    frame_pool() = default;
    frame_pool(const frame_pool&) = delete;
    frame_pool& operator=(const frame_pool&) = delete;
    ~frame_pool();

    void* take(std::size_t bytes);
    /// Returns a block to its pool, which is recorded in the header in front of the block.
    static void recycle(void* block) noexcept;

  private:
    struct alignas(std::max_align_t) header
    {
        frame_pool* pool;
        std::size_t size_class;
    };
    struct free_block
    {
        free_block* next;
    };

    static constexpr std::size_t step = 256;
    static constexpr std::size_t classes = 16; // Larger frames are allocated each time.

    std::array<free_block*, classes> free_{};
};

} // namespace redlock::runtime
