// SPDX-License-Identifier: BSL-1.0
// Coroutines that run concurrently on the calling thread until all of them have ended.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <exception>
#include <utility>

namespace redlock::bench
{

class task_group
{
  public:
    explicit task_group(boost::asio::io_context& io) : io_{io} {}

    /// Adds a coroutine, which starts to run in finish(). Coroutines may add others.
    void start(boost::asio::awaitable<void> task)
    {
        auto ended = [this](std::exception_ptr error)
        {
            failure_ = failure_ ? failure_ : error;
            if (--running_ == 0 || failure_)
            {
                io_.stop();
            }
        };
        ++running_;
        boost::asio::co_spawn(io_, std::move(task), ended);
    }
    /// Runs all coroutines to completion. Rethrows the first exception.
    void finish()
    {
        io_.restart();
        io_.run();
        if (failure_)
        {
            std::rethrow_exception(failure_);
        }
    }

  private:
    boost::asio::io_context& io_;
    std::size_t running_ = 0;
    std::exception_ptr failure_;
};

} // namespace redlock::bench
