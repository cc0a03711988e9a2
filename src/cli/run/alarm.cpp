// SPDX-License-Identifier: BSL-1.0
// A timerfd of CLOCK_BOOTTIME.
#include "cli/run/alarm.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <sys/timerfd.h>
#include <unistd.h>

namespace redlock::cli
{

namespace
{

int open_timer()
{
    const int descriptor = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (descriptor < 0)
    {
        throw system_error{error_code{errno, boost::system::system_category()}, "timerfd_create"};
    }
    return descriptor;
}

} // namespace

alarm::alarm(asio::io_context& io, mailbox& to) : to_{to}, timer_{io, open_timer()}
{
    wait();
}

void alarm::set(clock::time_point at) noexcept
{
    // Zero would switch the timer off.
    const auto since_boot = std::max(at.time_since_epoch(), clock::duration{1});
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
    itimerspec value{};
    value.it_value.tv_sec = static_cast<time_t>(seconds.count());
    value.it_value.tv_nsec = static_cast<long>((since_boot - seconds).count());
    ::timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &value, nullptr);
}

void alarm::unset() noexcept
{
    const itimerspec off{};
    ::timerfd_settime(timer_.native_handle(), 0, &off, nullptr);
}

void alarm::wait()
{
    timer_.async_wait(
        asio::posix::stream_descriptor::wait_read,
        [this](error_code error)
        {
            if (error)
            {
                return;
            }
            std::uint64_t times = 0;
            // There is nothing to read if the timer was set again meanwhile.
            if (::read(timer_.native_handle(), &times, sizeof times) == static_cast<ssize_t>(sizeof times))
            {
                to_.push({.kind = event_kind::time_is_up});
            }
            wait();
        });
}

void alarm::close() noexcept
{
    error_code ignored;
    timer_.close(ignored);
}

} // namespace redlock::cli
