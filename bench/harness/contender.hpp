// SPDX-License-Identifier: BSL-1.0
// The interface of a client that competes with others for one resource.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <functional>
#include <memory>

namespace redlock::bench
{

namespace asio = boost::asio;

/// The result of an acquire.
enum class grant
{
    none,    // It was interrupted.
    at_once, // By its first attempt: the client never waited for another one.
    waited   // After it had been refused, or entered a queue.
};

/// One client with its own connections, as a separate process would have.
class contender
{
  public:
    contender() = default;
    contender(const contender&) = delete;
    contender& operator=(const contender&) = delete;
    virtual ~contender() = default;

    /// Connects, so that connecting isn't measured.
    virtual asio::awaitable<void> connect() = 0;
    /// Waits without a limit until it holds the resource.
    virtual asio::awaitable<grant> acquire() = 0;
    virtual asio::awaitable<void> release() = 0;
    /// Ends a pending acquire, if that is possible. Otherwise does nothing, and the acquire ends with a grant.
    virtual asio::awaitable<void> interrupt() = 0;
    /// Disconnects. No acquire is pending.
    virtual asio::awaitable<void> close() = 0;
};

/// Creates the client with this number, from 0.
using contender_factory = std::function<std::unique_ptr<contender>(asio::io_context& io, std::size_t number)>;

} // namespace redlock::bench
