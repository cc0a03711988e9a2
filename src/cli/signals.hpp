// SPDX-License-Identifier: BSL-1.0
// Signals as events: they are blocked and read, so no handler ever runs, and a child has none to get rid of.
#pragma once

#include "cli/mailbox.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

namespace redlock::cli
{

/// Pushes `event_kind::signal` for each signal that concerns the command. What was ignored when we were started
/// stays ignored, in the child as well: that is how nohup and the shells' background jobs work.
class signal_source
{
  public:
    /// Blocks the signals of this thread, ignores SIGPIPE. Throws `system_error`. `to` must outlive this.
    signal_source(asio::io_context& io, mailbox& to);

    /// Nothing comes any more. The signals stay blocked.
    void close() noexcept;

  private:
    void wait();
    void read();

    mailbox& to_;
    asio::posix::stream_descriptor source_;
};

/// Whether it asks the command to end.
bool asks_to_end(int number) noexcept;
/// Whether it is passed on to the child as it is.
bool is_passed_on(int number) noexcept;
/// Whether it is what a terminal stops a process with.
bool is_stop_of_terminal(int number) noexcept;

/// For a child, between fork and exec: as if there had never been a signal_source. Async-signal-safe.
void restore_signals_of_child() noexcept;

} // namespace redlock::cli
