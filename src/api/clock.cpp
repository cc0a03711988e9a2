// SPDX-License-Identifier: BSL-1.0
// The only place where the library reads a clock.
#include <redlock/clock.hpp>

#include <ctime>

namespace redlock
{

clock::time_point clock::now() noexcept
{
    timespec value{};
    // Can't fail: the clock exists since Linux 2.6.39, and the pointer is valid.
    ::clock_gettime(CLOCK_BOOTTIME, &value);
    return time_point{std::chrono::seconds{value.tv_sec} + std::chrono::nanoseconds{value.tv_nsec}};
}

} // namespace redlock
