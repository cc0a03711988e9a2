// SPDX-License-Identifier: BSL-1.0
// Random numbers that are the same with every compiler.
#pragma once

#include <redlock/clock.hpp>

#include <cstddef>
#include <cstdint>

namespace redlock::test
{

/// SplitMix64. It is cheap to create, so each consumer has its own generator: the draws of one don't affect another.
class chance
{
  public:
    explicit chance(std::uint64_t seed) noexcept : state_{seed} {}

    std::uint64_t number() noexcept
    {
        state_ += 0x9e3779b97f4a7c15U;
        return mixed(state_);
    }
    /// Returns a number below `bound`.
    std::size_t below(std::size_t bound) noexcept { return number() % bound; }
    bool one_in(std::size_t times) noexcept { return below(times) == 0; }
    /// Returns whole microseconds, from `least` to `most`.
    clock::duration between(clock::duration least, clock::duration most) noexcept
    {
        constexpr std::int64_t unit = 1000;
        const auto steps = static_cast<std::size_t>((most - least).count() / unit) + 1;
        return least + clock::duration{static_cast<clock::rep>(below(steps)) * unit};
    }
    /// Returns the seed of another generator.
    std::uint64_t fork() noexcept { return number(); }

    static std::uint64_t mixed(std::uint64_t value) noexcept
    {
        value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
        value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
        return value ^ (value >> 31U);
    }

  private:
    std::uint64_t state_;
};

} // namespace redlock::test
