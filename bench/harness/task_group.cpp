// SPDX-License-Identifier: BSL-1.0
// Coroutines that run concurrently on the calling thread.
#include "harness/task_group.hpp"

#include <boost/asio/co_spawn.hpp>

#include <utility>

namespace redlock::bench
{

namespace asio = boost::asio;

void task_group::start(asio::awaitable<void> task)
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
    asio::co_spawn(io_, std::move(task), ended);
}

void task_group::finish()
{
    io_.restart();
    io_.run();
    if (failure_)
    {
        std::rethrow_exception(failure_);
    }
}

} // namespace redlock::bench
