// SPDX-License-Identifier: BSL-1.0
// The resources for which other clients were seen to wait. An acquire of one of them queues before its first round.
#pragma once

#include <redlock/clock.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace redlock::manager
{

/// A direct-mapped cache keyed by the resource's hash. A collision is harmless: a forgotten resource costs another
/// client its slot, and a mistaken one costs an unnecessary request.
class contention_cache
{
  public:
    bool empty() const noexcept { return known_ == 0; }
    bool contains(std::uint64_t resource) const noexcept
    {
        return at(resource).resource == known_as(resource);
    }
    /// Other clients hold the resource or wait for it.
    void see(std::uint64_t resource, clock::time_point now) noexcept
    {
        entry& place = at(resource);
        known_ += place.resource == nobody ? 1U : 0U;
        place = {known_as(resource), now};
    }
    /// No other client wants the resource now. It is forgotten only after a second, because clients often return at
    /// once.
    void miss(std::uint64_t resource, clock::time_point now) noexcept
    {
        constexpr std::chrono::seconds moment{1};
        if (now - at(resource).seen > moment)
        {
            forget(resource);
        }
    }
    /// It is unknown whether other clients want the resource.
    void forget(std::uint64_t resource) noexcept
    {
        if (contains(resource))
        {
            at(resource).resource = nobody;
            --known_;
        }
    }

  private:
    static constexpr std::uint64_t nobody = 0;

    struct entry
    {
        std::uint64_t resource = nobody;
        clock::time_point seen{};
    };

    static std::uint64_t known_as(std::uint64_t resource) noexcept { return resource | 1U; }
    entry& at(std::uint64_t resource) noexcept { return places_[resource % places_.size()]; }
    const entry& at(std::uint64_t resource) const noexcept { return places_[resource % places_.size()]; }

    std::array<entry, 256> places_{};
    std::size_t known_ = 0;
};

} // namespace redlock::manager
