// SPDX-License-Identifier: BSL-1.0
// Detects jumps and a different speed of a master's clock.
#include "core/clock_watch.hpp"

#include "core/validity.hpp"

#include <algorithm>
#include <cstdint>

namespace redlock::core
{

namespace
{

constexpr std::chrono::minutes anchor_age{1};
constexpr std::chrono::microseconds max_jump{std::chrono::hours{24 * 365 * 100}};

/// Returns by how much a master's clock advanced. Limited to a hundred years in either direction, because a clock may
/// have been set to any value.
clock::duration between(std::chrono::microseconds then, std::chrono::microseconds now) noexcept
{
    // The difference of two signed values could overflow.
    const auto as_bits = [](std::chrono::microseconds time)
    { return static_cast<std::uint64_t>(time.count()); };
    const bool ahead = now >= then;
    const std::uint64_t distance = ahead ? as_bits(now) - as_bits(then) : as_bits(then) - as_bits(now);
    const clock::duration length = std::chrono::microseconds{
        static_cast<std::chrono::microseconds::rep>(std::min(distance, as_bits(max_jump)))};
    return ahead ? length : -length;
}

} // namespace

clock::duration clock_watch::allowed(clock::duration at_most) const noexcept
{
    return drift(std::chrono::ceil<std::chrono::milliseconds>(at_most), factor_);
}

std::optional<clock::duration>
clock_watch::compare(const clock_reading& then, const clock_reading& now) const noexcept
{
    const clock::duration theirs = between(then.theirs, now.theirs);
    const clock::duration at_least = now.sent - then.received;
    const clock::duration at_most = now.received - then.sent;
    if (theirs > at_most + allowed(at_most))
    {
        return theirs - at_most;
    }
    if (theirs < at_least - allowed(at_most))
    {
        return theirs - at_least;
    }
    return std::nullopt;
}

std::optional<clock::duration> clock_watch::add(const clock_reading& now)
{
    std::optional<clock::duration> off;
    std::rotate(unnoticed_.begin(), unnoticed_.begin() + 1, unnoticed_.end());
    unnoticed_.back() = clock::duration::max();
    if (last_)
    {
        off = compare(*last_, now);
        const clock::duration round_trips = (last_->received - last_->sent) + (now.received - now.sent);
        unnoticed_.back() = round_trips + allowed(now.received - last_->sent);
    }
    if (!off && anchor_)
    {
        off = compare(*anchor_, now);
    }
    if (off || !anchor_ || now.received - anchor_->received >= anchor_age)
    {
        anchor_ = now;
    }
    last_ = now;
    return off;
}

clock::duration clock_watch::unnoticed() const noexcept
{
    return *std::max_element(unnoticed_.begin(), unnoticed_.end());
}

void clock_watch::forget() noexcept
{
    unnoticed_.fill(clock::duration::max());
    last_.reset();
    anchor_.reset();
}

} // namespace redlock::core
