// SPDX-License-Identifier: BSL-1.0
// An alarm on a timerfd of CLOCK_BOOTTIME.
#include "io/asio_alarm.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/timerfd.h>
#include <unistd.h>

namespace redlock::io
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

asio_alarm::asio_alarm(runtime::scheduler& strand) : strand_{strand}, timer_{strand.executor()}
{
    const int descriptor = open_timer();
    try
    {
        timer_.assign(descriptor);
    }
    catch (...)
    {
        ::close(descriptor);
        throw;
    }
}

void asio_alarm::set(clock::time_point at)
{
    // Zero would disarm the timer. A time in the past fires at once.
    const auto since_boot = std::max(at.time_since_epoch(), clock::duration{1});
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
    itimerspec value{};
    value.it_value.tv_sec = static_cast<time_t>(seconds.count());
    value.it_value.tv_nsec = static_cast<long>((since_boot - seconds).count());
    ::timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &value, nullptr);
    wait();
}

void asio_alarm::wait()
{
    if (waiting_)
    {
        return;
    }
    waiting_ = true;
    auto fired = [this](error_code error)
    {
        if (error || !timer_.is_open())
        {
            return;
        }
        waiting_ = false;
        std::uint64_t times = 0;
        if (::read(timer_.native_handle(), &times, sizeof times) < 0)
        {
            // The timer was set to a later time after this event had been queued.
            wait();
            return;
        }
        strand_.on_alarm();
    };
    timer_.async_wait(asio::posix::stream_descriptor::wait_read, strand_.bind(std::move(fired)));
}

void asio_alarm::close() noexcept
{
    error_code ignored;
    timer_.close(ignored);
}

} // namespace redlock::io
