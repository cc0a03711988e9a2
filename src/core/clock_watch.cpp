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
constexpr std::chrono::milliseconds most_of_a_second{800};
constexpr std::chrono::microseconds max_jump{std::chrono::hours{24 * 365 * 100}};

/// Returns by how much a master's clock advanced. Limited to a hundred years in either direction, because a clock may
/// have been set to any value.
clock::duration advance(std::chrono::microseconds then, std::chrono::microseconds now) noexcept
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

clock_deviation clock_watch::deviation(const clock_reading& then, const clock_reading& now) const noexcept
{
    const clock::duration theirs = advance(then.theirs, now.theirs);
    const clock::duration at_least = now.sent - then.received;
    const clock::duration at_most = now.received - then.sent;
    // The times of the readings for which the clocks deviate the least. If ours stood still, theirs drifted meanwhile.
    const clock::duration passed = std::clamp(theirs, at_least, at_most);
    return {theirs - passed, allowed(std::max(at_most, theirs)), at_most - at_least, then.sent};
}

std::optional<clock_deviation>
clock_watch::compare(const clock_reading& then, const clock_reading& now) const noexcept
{
    const clock_deviation found = deviation(then, now);
    const clock::duration most = allowed(now.received - then.sent);
    return found.by > most || found.by < -most ? std::optional{found} : std::nullopt;
}

std::optional<clock_deviation> clock_watch::add(const clock_reading& now)
{
    std::optional<clock_deviation> off;
    if (last_)
    {
        off = compare(*last_, now);
        if (!earlier_.back() || last_->received - earlier_.back()->received >= most_of_a_second)
        {
            std::rotate(earlier_.begin(), earlier_.begin() + 1, earlier_.end());
            earlier_.back() = last_;
        }
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

std::optional<clock_deviation> clock_watch::deviation_since(clock::time_point since) const noexcept
{
    for (auto then = earlier_.rbegin(); then != earlier_.rend(); ++then)
    {
        if (*then && (*then)->received <= since)
        {
            return deviation(**then, *last_);
        }
    }
    return std::nullopt;
}

void clock_watch::forget() noexcept
{
    earlier_.fill(std::nullopt);
    last_.reset();
    anchor_.reset();
}

} // namespace redlock::core
