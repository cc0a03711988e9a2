// SPDX-License-Identifier: BSL-1.0
// The input of a fuzzer as a row of decisions. Once it is used up every decision is 0, which stands for what is
// usual.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace redlock::test
{

class fuzz_input
{
  public:
    explicit fuzz_input(std::span<const std::uint8_t> bytes) noexcept : left_{bytes} {}

    bool empty() const noexcept { return left_.empty(); }
    /// Nothing is left from now on.
    void end() noexcept { left_ = {}; }

    std::uint8_t byte() noexcept
    {
        if (left_.empty())
        {
            return 0;
        }
        const std::uint8_t first = left_.front();
        left_ = left_.subspan(1);
        return first;
    }
    /// From 0 to one less than `bound`, which isn't 0.
    std::size_t below(std::size_t bound) noexcept { return byte() % bound; }
    /// One of several.
    template <class Choices>
    const auto& one_of(const Choices& choices) noexcept
    {
        return choices[below(std::size(choices))];
    }
    /// Bytes as they are: the first decision says how many, up to `most`.
    std::string text(std::size_t most)
    {
        const std::size_t size = std::min(below(most + 1), left_.size());
        const std::span<const std::uint8_t> taken = left_.first(size);
        left_ = left_.subspan(size);
        return {taken.begin(), taken.end()};
    }

  private:
    std::span<const std::uint8_t> left_;
};

/// Ends the run as a crash: the fuzzer keeps the input.
[[noreturn]] void fail(std::string_view why);

inline void require(bool holds, std::string_view why)
{
    if (!holds)
    {
        fail(why);
    }
}

} // namespace redlock::test
