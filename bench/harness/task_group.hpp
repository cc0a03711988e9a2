// SPDX-License-Identifier: BSL-1.0
// Coroutines that run at the same time on the calling thread, until the last of them has ended.
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

    /// It begins when they are run. A task may start others.
    void start(boost::asio::awaitable<void> task);
    /// Runs what was started to its end. Throws what the first one threw that failed.
    void finish();

  private:
    boost::asio::io_context& io_;
    std::size_t running_ = 0;
    std::exception_ptr failure_;
};

} // namespace redlock::bench
