// SPDX-License-Identifier: BSL-1.0
// The memory pool for coroutine frames.
#include "runtime/frame_pool.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

using runtime::frame_pool;

constexpr std::size_t largest_pooled = 16 * 256 - 2 * sizeof(void*);

bool is_aligned(const void* block)
{
    return reinterpret_cast<std::uintptr_t>(block) % alignof(std::max_align_t) == 0;
}

} // namespace

TEST_CASE("a block that was given back is reused for the next frame of its size")
{
    frame_pool pool;
    void* first = pool.take(300);
    void* second = pool.take(300);
    CHECK(first != second);
    frame_pool::recycle(first);
    CHECK(pool.take(310) == first);
    frame_pool::recycle(second);
    frame_pool::recycle(first);
    CHECK(pool.take(300) == first);
    CHECK(pool.take(300) == second);
    frame_pool::recycle(first);
    frame_pool::recycle(second);
}

TEST_CASE("a block isn't reused for a frame that doesn't fit")
{
    frame_pool pool;
    void* small = pool.take(100);
    frame_pool::recycle(small);
    void* large = pool.take(1000);
    CHECK(large != small);
    std::memset(large, 0x5a, 1000);
    frame_pool::recycle(large);
    void* small_again = pool.take(1);
    CHECK(small_again == small);
    frame_pool::recycle(small_again);
}

TEST_CASE("blocks of every size are aligned, disjoint, and as large as requested")
{
    frame_pool pool;
    std::vector<std::pair<unsigned char*, std::size_t>> taken;
    for (std::size_t bytes = 0; bytes <= largest_pooled + 600; bytes += 7)
    {
        auto* block = static_cast<unsigned char*>(pool.take(bytes));
        REQUIRE(is_aligned(block));
        std::memset(block, static_cast<int>(taken.size() % 251), bytes);
        taken.emplace_back(block, bytes);
    }
    std::size_t overwritten = 0;
    for (std::size_t index = 0; index < taken.size(); ++index)
    {
        const auto [block, bytes] = taken[index];
        for (std::size_t place = 0; place < bytes; ++place)
        {
            overwritten += block[place] == index % 251 ? 0 : 1;
        }
        frame_pool::recycle(block);
    }
    CHECK(overwritten == 0);
}

TEST_CASE("over a long run, no more blocks are allocated than were in use at once")
{
    frame_pool pool;
    std::mt19937_64 random{20240908};
    std::set<void*> ever;
    std::vector<void*> out;
    for (int step = 0; step < 20'000; ++step)
    {
        if (out.size() < 20 && random() % 2 == 0)
        {
            out.push_back(pool.take(500));
            ever.insert(out.back());
        }
        else if (!out.empty())
        {
            const std::size_t index = random() % out.size();
            frame_pool::recycle(std::exchange(out[index], out.back()));
            out.pop_back();
        }
    }
    CHECK(ever.size() <= 20);
    for (void* block : out)
    {
        frame_pool::recycle(block);
    }
}

TEST_CASE("a block returns to the pool that it came from")
{
    frame_pool left;
    auto right = std::make_unique<frame_pool>();
    void* of_left = left.take(10);
    void* of_right = right->take(10);
    frame_pool::recycle(of_left);
    frame_pool::recycle(of_right);
    // If they were mixed up, this would free memory that belongs to `left`.
    right.reset();
    void* again = left.take(10);
    CHECK(again == of_left);
    std::memset(again, 1, 10);
    frame_pool::recycle(again);
}

} // namespace redlock::test
