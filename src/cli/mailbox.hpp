// SPDX-License-Identifier: BSL-1.0
// What happens while a command runs, one thing after the other, for the one coroutine that decides.
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

/// What kind of thing happened.
enum class event_kind : std::uint8_t
{
    inspected,  ///< Each master has been asked about the resource, or can't be.
    refused,    ///< The system refuses to connect to so many masters that no quorum is left.
    acquired,   ///< The acquire has ended, with `error`.
    signal,     ///< The signal `signal` came.
    lost,       ///< The lease is lost, because of `error`.
    time_is_up, ///< The alarm went off.
    released,   ///< The release has ended, with `error`.
    shut_down   ///< The manager's shutdown has ended, with `error`.
};

/// One thing that happened. A plain value.
struct event
{
    event_kind kind = event_kind::signal;
    int signal = 0;
    bool from_terminal = false; ///< Of a signal: the terminal sent it to the whole foreground group.
    error_code error{};

    friend bool operator==(const event& left, const event& right) = default;
};

/// Events wait here in their order. One thread only.
class mailbox
{
  public:
    explicit mailbox(asio::io_context& io);

    /// One that waits already isn't put in again, as the kernel does with signals: so there are never many.
    void push(event what);
    /// Waits for the next one. One coroutine at a time.
    asio::awaitable<event> next();

  private:
    std::deque<event> waiting_;
    asio::steady_timer wake_; // Never ends by time: only push ends it.
};

} // namespace redlock::cli
