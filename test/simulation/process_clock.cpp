// SPDX-License-Identifier: BSL-1.0
// The clock that one process reads.
#include "process_clock.hpp"

#include <algorithm>

namespace redlock::test
{

namespace
{

constexpr std::int64_t million = 1'000'000;

/// value × factor / divisor, rounded down, without the large number in between. Only for a divisor above zero.
clock::rep scaled(clock::rep value, std::int64_t factor, std::int64_t divisor) noexcept
{
    const clock::rep rest = value % divisor * factor;
    const clock::rep down = rest % divisor < 0 ? 1 : 0;
    return value / divisor * factor + rest / divisor - down;
}

} // namespace

process_clock::time_point process_clock::shown_at(time_point truth) const noexcept
{
    const clock::rep passed = (truth - changed_).count();
    return showed_ + clock::duration{passed + scaled(passed, millionths_, million)};
}

process_clock::time_point process_clock::when_shown(time_point shown) const noexcept
{
    if (shown <= showed_)
    {
        return changed_;
    }
    constexpr clock::duration never = std::chrono::hours{24 * 365 * 100};
    if (shown - showed_ > never)
    {
        return time_point::max();
    }
    const clock::rep wanted = (shown - showed_).count();
    time_point found = changed_ + clock::duration{scaled(wanted, million, million + millionths_)};
    // The one is rounded, and so is the other: off by a few nanoseconds at most.
    while (found > changed_ && shown_at(found - clock::duration{1}) >= shown)
    {
        found -= clock::duration{1};
    }
    while (shown_at(found) < shown)
    {
        found += clock::duration{1};
    }
    return found;
}

void process_clock::set_rate(time_point now, std::int64_t millionths) noexcept
{
    showed_ = shown_at(now);
    changed_ = now;
    millionths_ = std::max(millionths, 1 - million);
}

void process_clock::jump(time_point now, clock::duration by) noexcept
{
    showed_ = shown_at(now) + by;
    changed_ = now;
}

} // namespace redlock::test
