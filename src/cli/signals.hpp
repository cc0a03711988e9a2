// SPDX-License-Identifier: BSL-1.0
// Signals as events: they are blocked and read, so no handler ever runs, and a child has none to get rid of.
#pragma once

#include "cli/mailbox.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

namespace redlock::cli
{

/// Pushes `event_kind::signal` for each signal that can be blocked. What was ignored when we were started
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

/// Whether it ends a program that does nothing about it.
bool asks_to_end(int number) noexcept;
/// Whether it is passed on to the child as it is.
bool is_passed_on(int number) noexcept;
/// Whether a terminal stops a process with it.
bool is_stop_of_terminal(int number) noexcept;
/// Whether it is how a person or a supervisor ends a program: a command that died of it ends redlock by it as well, so
/// that a shell ends its script at Ctrl-C.
bool ends_both(int number) noexcept;

/// For a child, between fork and exec: as if there had never been a signal_source. Async-signal-safe.
void restore_signals_of_child() noexcept;

} // namespace redlock::cli
