// SPDX-License-Identifier: BSL-1.0
// The validity of a lease, and the limits of its times.
#include "core/validity.hpp"

#include "core/milliseconds_text.hpp"

#include <algorithm>
#include <cmath>

namespace redlock::core
{

namespace
{

using std::chrono::milliseconds;

constexpr milliseconds server_precision{2};

milliseconds drift_in_whole_ms(milliseconds ttl, double factor)
{
    return std::chrono::ceil<milliseconds>(drift(ttl, factor));
}

milliseconds node_timeout_of(const timing& given, milliseconds ttl)
{
    return node_timeout(ttl, given.configured_node_timeout);
}

bool leaves_validity(const timing& given, milliseconds ttl)
{
    return ttl > node_timeout_of(given, ttl) + drift_in_whole_ms(ttl, given.drift_factor);
}

/// Returns the smallest ttl that leaves a validity. Bisection finds it, because node timeout and drift grow more slowly
/// than the ttl.
milliseconds smallest_ttl(const timing& given)
{
    milliseconds low{0};
    milliseconds high = max_ttl;
    while (high - low > milliseconds{1})
    {
        const milliseconds middle = low + (high - low) / 2;
        (leaves_validity(given, middle) ? high : low) = middle;
    }
    return high;
}

} // namespace

clock::duration drift(milliseconds ttl, double factor) noexcept
{
    // An invalid ttl is refused only later. The limit allows callers to double its drift and to add to it.
    constexpr auto most = static_cast<double>(clock::duration::max().count() / 4);
    const double in_ns = std::chrono::duration<double, clock::period>{ttl}.count() * factor;
    return clock::duration{static_cast<clock::rep>(std::ceil(std::clamp(in_ns, -most, most)))} +
           server_precision;
}

clock::time_point valid_until(clock::time_point sent, milliseconds ttl, double drift_factor) noexcept
{
    return later(sent, ttl) - drift(ttl, drift_factor);
}

milliseconds ttl_for(clock::duration left, double drift_factor) noexcept
{
    const std::chrono::duration<double, milliseconds::period> needed{left + server_precision};
    return milliseconds{static_cast<milliseconds::rep>(std::ceil(needed.count() / (1 - drift_factor)))};
}

clock::duration remaining(clock::time_point end, clock::time_point now) noexcept
{
    return end > now ? end - now : clock::duration::zero();
}

clock::time_point later(clock::time_point start, milliseconds length) noexcept
{
    const auto room = std::chrono::floor<milliseconds>(clock::time_point::max() - start);
    return length > room ? clock::time_point::max() : start + length;
}

milliseconds node_timeout(milliseconds ttl, std::optional<milliseconds> configured) noexcept
{
    if (configured)
    {
        return *configured;
    }
    return std::clamp(ttl / 10, milliseconds{1}, milliseconds{50});
}

std::string ttl_complaint(const timing& given)
{
    const bool in_range = given.ttl >= milliseconds{1} && given.ttl <= max_ttl;
    if (in_range && leaves_validity(given, given.ttl))
    {
        return {};
    }
    std::string text = "a ttl of " + in_ms(given.ttl) + " can't be used: it must be from " +
                       in_ms(smallest_ttl(given)) + " to " + in_ms(max_ttl) + " (100 years)";
    if (in_range)
    {
        text += "; " + in_ms(node_timeout_of(given, given.ttl)) + " of node timeout and " +
                in_ms(drift_in_whole_ms(given.ttl, given.drift_factor)) + " of drift leave no validity";
    }
    return text;
}

std::string min_validity_complaint(const timing& given)
{
    const milliseconds most = given.ttl - drift_in_whole_ms(given.ttl, given.drift_factor) - milliseconds{1};
    if (given.min_validity >= milliseconds{0} && given.min_validity <= most)
    {
        return {};
    }
    return "a min_validity of " + in_ms(given.min_validity) + " can't be used: with a ttl of " +
           in_ms(given.ttl) + " it must be from 0 ms to " + in_ms(most);
}

} // namespace redlock::core
