// SPDX-License-Identifier: BSL-1.0
// Coroutines that run concurrently on the calling thread until all of them have ended.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <exception>

namespace redlock::bench
{

class task_group
{
  public:
    explicit task_group(boost::asio::io_context& io) : io_{io} {}

    /// Adds a coroutine, which starts to run in finish(). Coroutines may add others.
    void start(boost::asio::awaitable<void> task);
    /// Runs all coroutines to completion. Rethrows the first exception.
    void finish();

  private:
    boost::asio::io_context& io_;
    std::size_t running_ = 0;
    std::exception_ptr failure_;
};

} // namespace redlock::bench
