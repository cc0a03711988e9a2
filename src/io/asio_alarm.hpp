// SPDX-License-Identifier: BSL-1.0
// An alarm on a timerfd of CLOCK_BOOTTIME. The timers of Asio stand still while the machine sleeps.
#pragma once

#include "runtime/environment.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

namespace redlock::io
{

namespace asio = boost::asio;

class asio_alarm final : public runtime::alarm
{
  public:
    /// Throws `system_error` if no file descriptor is available.
    explicit asio_alarm(runtime::scheduler& strand);

    void set(clock::time_point at) override;
    void close() noexcept override;

  private:
    void wait();

    runtime::scheduler& strand_;
    asio::posix::stream_descriptor timer_;
    bool waiting_ = false;
};

} // namespace redlock::io
