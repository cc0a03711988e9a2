// SPDX-License-Identifier: BSL-1.0
// Computes the times of a run from the ttl.
#include "cli/common/times.hpp"

#include <redlock/config.hpp>

#include <algorithm>

namespace redlock::cli
{

using std::chrono::milliseconds;

milliseconds node_timeout(milliseconds ttl) noexcept
{
    return std::clamp(ttl / 20, milliseconds{1}, milliseconds{500});
}

milliseconds extend_every(milliseconds ttl) noexcept
{
    return ttl / 3;
}

milliseconds default_grace(milliseconds ttl) noexcept
{
    return std::min(ttl / 4, milliseconds{5000});
}

std::optional<milliseconds> max_grace(milliseconds ttl) noexcept
{
    const milliseconds late = extend_every(ttl) + (extend_every(ttl) + milliseconds{9}) / 10;
    const std::chrono::duration<double, std::milli> drift = ttl * config{}.drift_factor + milliseconds{2};
    const milliseconds needed =
        late + 2 * node_timeout(ttl) + stop_margin(milliseconds{0}) + std::chrono::ceil<milliseconds>(drift);
    const milliseconds left = ttl - needed - milliseconds{1};
    return left < milliseconds{0} ? std::nullopt : std::optional{left};
}

milliseconds shortest_ttl() noexcept
{
    milliseconds ttl{1};
    // Terminates, since about half of each added millisecond is left for the grace.
    while (!max_grace(ttl))
    {
        ++ttl;
    }
    return ttl;
}

clock::time_point kill_at(clock::time_point told, milliseconds grace, clock::time_point valid_until) noexcept
{
    return std::min(told + grace, valid_until - kill_margin);
}

} // namespace redlock::cli
