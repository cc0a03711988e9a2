// SPDX-License-Identifier: BSL-1.0
// Memory for coroutine frames: what one flow gives back the next one takes, so that none is allocated in the
// long run.
#pragma once

#include <array>
#include <cstddef>

namespace redlock::env
{

/// Blocks of a few sizes. Not thread-safe: it belongs to one strand. It outlives every frame taken from it.
class frame_pool
{
  public:
    frame_pool() = default;
    frame_pool(const frame_pool&) = delete;
    frame_pool& operator=(const frame_pool&) = delete;
    ~frame_pool();

    void* take(std::size_t bytes);
    /// Finds the pool by what stands in front of the block.
    static void give_back(void* block) noexcept;

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
    static constexpr std::size_t classes = 16; // Larger frames go to the heap each time.

    std::array<free_block*, classes> free_{};
};

} // namespace redlock::env
