// SPDX-License-Identifier: BSL-1.0
// One deadline on the clock of leases. Asio's own timers stand still while the machine sleeps.
#pragma once

#include "cli/mailbox.hpp"

#include <redlock/clock.hpp>

#include <boost/asio/posix/stream_descriptor.hpp>

namespace redlock::cli
{

/// Pushes `event_kind::time_is_up` when its time has come.
class alarm
{
  public:
    /// Throws `system_error` when the system gives no timer. `to` must outlive this.
    alarm(asio::io_context& io, mailbox& to);

    /// Sets it, also anew. A time that is past goes off at once.
    void set(clock::time_point at) noexcept;
    /// It doesn't go off any more. It may have gone off already.
    void unset() noexcept;
    /// Nothing comes any more.
    void close() noexcept;

  private:
    void wait();

    mailbox& to_;
    asio::posix::stream_descriptor timer_;
};

} // namespace redlock::cli
