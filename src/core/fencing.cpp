// SPDX-License-Identifier: BSL-1.0
// The choice of a fencing token from the masters' counters.
#include "core/fencing.hpp"

#include "core/validity.hpp"

#include <algorithm>
#include <cassert>

namespace redlock::core
{

void token_choice::add_grant(std::size_t master, std::uint64_t counter) noexcept
{
    assert(master < masters_ && counters_[master] == 0 && counter > 0);
    counters_[master] = counter;
    largest_ = std::max(largest_, counter);
    const std::size_t granted = masters_ - count(0);
    if (granted == quorum_of(masters_) && !token())
    {
        target_ = largest_;
    }
}

void token_choice::add_raised(std::size_t master) noexcept
{
    if (is_below_target(master))
    {
        counters_[master] = target_;
    }
}

void token_choice::add_failed_raise(std::size_t master) noexcept
{
    if (is_below_target(master))
    {
        counters_[master] = failed;
    }
}

bool token_choice::is_possible(std::size_t pending) const noexcept
{
    if (target_ == 0)
    {
        return true;
    }
    const auto end = counters_.begin() + static_cast<std::ptrdiff_t>(masters_);
    const auto useful = std::count_if(
        counters_.begin(), end, [this](std::uint64_t each) { return each != 0 && each <= target_; });
    return static_cast<std::size_t>(useful) + pending >= quorum_of(masters_);
}

std::optional<std::uint64_t> token_choice::token() const noexcept
{
    const std::size_t quorum = quorum_of(masters_);
    if (target_ != 0)
    {
        return count(target_) >= quorum ? std::optional{target_} : std::nullopt;
    }
    for (std::size_t master = 0; master < masters_; ++master)
    {
        if (counters_[master] != 0 && count(counters_[master]) >= quorum)
        {
            return counters_[master];
        }
    }
    return std::nullopt;
}

std::size_t token_choice::count(std::uint64_t counter) const noexcept
{
    const auto end = counters_.begin() + static_cast<std::ptrdiff_t>(masters_);
    return static_cast<std::size_t>(std::count(counters_.begin(), end, counter));
}

std::uint64_t counter_hint(std::span<std::chrono::microseconds> clocks, std::uint64_t largest_seen) noexcept
{
    std::uint64_t median = 0;
    if (!clocks.empty())
    {
        const auto middle = clocks.begin() + static_cast<std::ptrdiff_t>((clocks.size() - 1) / 2);
        std::nth_element(clocks.begin(), middle, clocks.end());
        median = static_cast<std::uint64_t>(std::max<std::chrono::microseconds::rep>(middle->count(), 0));
    }
    return std::max(median, largest_seen + 1);
}

std::uint64_t floor_by_clock(const clock_reading& last, clock::time_point now) noexcept
{
    return floor_by_clock(last.theirs + std::chrono::ceil<std::chrono::microseconds>(now - last.sent));
}

std::uint64_t floor_by_clock(std::chrono::microseconds shown) noexcept
{
    const std::chrono::microseconds later = shown + std::chrono::hours{2};
    return static_cast<std::uint64_t>(std::max<std::chrono::microseconds::rep>(later.count(), 1));
}

std::chrono::microseconds latest_at(
    const clock_reading& last, clock::time_point now, std::chrono::milliseconds node_timeout,
    double drift_factor) noexcept
{
    // The reading was taken after it was asked for, so at `now` the clock shows at most this, plus the drift.
    const auto age = std::chrono::ceil<std::chrono::milliseconds>(now - last.sent);
    const clock::duration most = age + drift(age, drift_factor) + node_timeout;
    return last.theirs + std::chrono::ceil<std::chrono::microseconds>(most);
}

} // namespace redlock::core
