// SPDX-License-Identifier: BSL-1.0
// The resources for which others were seen to stand in line: who wants one of them again goes to its end.
#pragma once

#include <redlock/clock.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace redlock::manager
{

/// Known by the hashes of their names, of which each has one place: what is forgotten for another one costs somebody a turn,
/// and what is taken for another one costs a question.
class crowds
{
  public:
    bool empty() const noexcept { return known_ == 0; }
    bool have(std::uint64_t resource) const noexcept { return at(resource).resource == known_as(resource); }
    /// Others stand in line, or have it.
    void see(std::uint64_t resource, clock::time_point now) noexcept
    {
        crowd& place = at(resource);
        known_ += place.resource == nobody ? 1U : 0U;
        place = {known_as(resource), now};
    }
    /// Nobody else wants it now. They may be back in a moment, as those are who do the same again and again.
    void miss(std::uint64_t resource, clock::time_point now) noexcept
    {
        constexpr std::chrono::seconds moment{1};
        if (now - at(resource).seen > moment)
        {
            forget(resource);
        }
    }
    /// Nobody knows.
    void forget(std::uint64_t resource) noexcept
    {
        if (have(resource))
        {
            at(resource).resource = nobody;
            --known_;
        }
    }

  private:
    static constexpr std::uint64_t nobody = 0;

    struct crowd
    {
        std::uint64_t resource = nobody;
        clock::time_point seen{};
    };

    static std::uint64_t known_as(std::uint64_t resource) noexcept { return resource | 1U; }
    crowd& at(std::uint64_t resource) noexcept { return places_[resource % places_.size()]; }
    const crowd& at(std::uint64_t resource) const noexcept { return places_[resource % places_.size()]; }

    std::array<crowd, 256> places_{};
    std::size_t known_ = 0;
};

} // namespace redlock::manager
