// SPDX-License-Identifier: BSL-1.0
// Signals as events. They are blocked and read, so there is no handler, and a child has none to reset.
#pragma once

#include "cli/run/mailbox.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

namespace redlock::cli
{

/// Pushes `event_kind::signal` for each signal that can be blocked. A signal that was ignored when redlock was started
/// stays ignored, in the child as well, as nohup and the background jobs of shells require.
class signal_source
{
  public:
    /// Blocks the signals in this thread and ignores SIGPIPE. Throws `system_error`. `to` must outlive the source.
    signal_source(asio::io_context& io, mailbox& to);

    /// Pushes the signals that are pending now.
    void read();
    /// Pushes no further events. The signals stay blocked.
    void close() noexcept;

  private:
    void wait();

    mailbox& to_;
    asio::posix::stream_descriptor source_;
};

/// Returns true if the signal ends a program that doesn't handle it.
bool requests_end(int number) noexcept;
/// Returns true if the signal is forwarded to the child.
bool is_passed_on(int number) noexcept;
/// Returns true if a terminal stops processes with the signal.
bool is_stop_of_terminal(int number) noexcept;
/// Returns true if users and service managers end programs with the signal. A command that it killed ends redlock by
/// the same signal, so that a shell ends its script at Ctrl-C.
bool ends_both(int number) noexcept;

/// Returns true if a SIGCONT has arrived that isn't handled yet: it is queued in `events`, or pending. A SIGSTOP would
/// discard a pending one, and nothing would continue the process.
bool is_continued(const mailbox& events) noexcept;

/// Undoes a signal_source in a child, between fork and exec: no signal is blocked. Async-signal-safe.
void restore_signals_of_child() noexcept;

} // namespace redlock::cli
