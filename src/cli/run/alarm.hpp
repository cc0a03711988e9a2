// SPDX-License-Identifier: BSL-1.0
// One deadline on the clock of leases. Asio's timers stop while the machine sleeps.
#pragma once

#include "cli/run/mailbox.hpp"

#include <redlock/clock.hpp>

#include <boost/asio/posix/stream_descriptor.hpp>

namespace redlock::cli
{

/// Pushes `event_kind::time_is_up` at its deadline.
class alarm
{
  public:
    /// Throws `system_error` if the system refuses a timer. `to` must outlive the alarm.
    alarm(asio::io_context& io, mailbox& to);

    /// Sets or moves the deadline. A deadline in the past expires at once.
    void set(clock::time_point at) noexcept;
    /// Clears the deadline. An event that was pushed already stays in the mailbox.
    void unset() noexcept;
    /// Pushes no further events.
    void close() noexcept;

  private:
    void wait();

    mailbox& to_;
    asio::posix::stream_descriptor timer_;
};

} // namespace redlock::cli
