// SPDX-License-Identifier: BSL-1.0
// The events of a run, in their order, for the one coroutine that acts on them.
#pragma once

#include <redlock/error.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <deque>

namespace redlock::cli
{

namespace asio = boost::asio;

/// The kind of an event.
enum class event_kind : std::uint8_t
{
    inspected,  ///< An inspection of the resource has ended.
    refused,    ///< The system refuses connections to too many masters for a quorum.
    queued,     ///< The acquire has another position in the queue.
    acquired,   ///< The acquire has ended, with `error`.
    signal,     ///< The signal `signal` was received.
    lost,       ///< The lease is lost, because of `error`.
    time_is_up, ///< The alarm has expired.
    released,   ///< The release has ended, with `error`.
    shut_down   ///< The manager's shutdown has ended, with `error`.
};

/// An event.
struct event
{
    event_kind kind = event_kind::signal;
    int signal = 0;
    bool from_terminal = false; ///< The terminal sent the signal to the whole foreground group.
    error_code error{};

    friend bool operator==(const event& left, const event& right) = default;
};

/// A queue of events. Not thread-safe.
class mailbox
{
  public:
    explicit mailbox(asio::io_context& io);

    /// Adds an event, unless an equal one is queued already, as the kernel does with signals. This bounds the queue.
    void push(event what);
    /// Marks the terminal's signals in the queue as sent to redlock alone: there was no command yet.
    void before_command() noexcept;
    /// Returns true if the event is queued.
    bool contains(const event& what) const;
    /// Waits for the next event and removes it. Only one coroutine may wait.
    asio::awaitable<event> next();

  private:
    std::deque<event> waiting_;
    asio::steady_timer wake_; // Never expires; push() cancels it.
};

} // namespace redlock::cli
