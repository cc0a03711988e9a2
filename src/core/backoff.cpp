// SPDX-License-Identifier: BSL-1.0
// The random delay before a retry.
#include "core/backoff.hpp"

#include <algorithm>

namespace redlock::core
{

std::chrono::nanoseconds backoff_delay(
    const backoff_policy& policy, std::uint32_t failures, std::chrono::nanoseconds took,
    std::uint64_t random) noexcept
{
    using std::chrono::nanoseconds;
    nanoseconds bound = std::min(policy.first, policy.longest);
    for (std::uint32_t failure = 1; failure < failures && bound < policy.longest; ++failure)
    {
        bound = std::min(bound * 2, policy.longest);
    }
    const nanoseconds far_from_the_try = took > policy.longest / 8 ? policy.longest : took * 8;
    bound = std::max({bound, far_from_the_try, backoff_floor});

    const auto width = static_cast<std::uint64_t>((bound - backoff_floor).count()) + 1;
    return backoff_floor + nanoseconds{static_cast<nanoseconds::rep>(random % width)};
}

} // namespace redlock::core
