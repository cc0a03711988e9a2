// SPDX-License-Identifier: BSL-1.0
// Whether a master's clock goes as ours does.
#include "core/clock_watch.hpp"

#include "core/validity.hpp"

namespace redlock::core
{

namespace
{

constexpr std::chrono::minutes anchor_age{1};

} // namespace

std::optional<clock::duration>
clock_watch::compare(const clock_reading& then, const clock_reading& now) const noexcept
{
    const clock::duration theirs = now.theirs - then.theirs;
    const clock::duration at_least = now.sent - then.received;
    const clock::duration at_most = now.received - then.sent;
    const clock::duration allowed = drift(std::chrono::ceil<std::chrono::milliseconds>(at_most), factor_);
    if (theirs > at_most + allowed)
    {
        return theirs - at_most;
    }
    if (theirs < at_least - allowed)
    {
        return theirs - at_least;
    }
    return std::nullopt;
}

std::optional<clock::duration> clock_watch::add(const clock_reading& now)
{
    std::optional<clock::duration> off;
    if (last_)
    {
        off = compare(*last_, now);
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

void clock_watch::forget() noexcept
{
    last_.reset();
    anchor_.reset();
}

} // namespace redlock::core
