// SPDX-License-Identifier: BSL-1.0
// A queue of events, and a timer that wakes the waiting coroutine.
#include "cli/run/mailbox.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>

namespace redlock::cli
{

mailbox::mailbox(asio::io_context& io) : wake_{io}
{
    wake_.expires_at(asio::steady_timer::time_point::max());
}

void mailbox::push(event what)
{
    if (!contains(what))
    {
        waiting_.push_back(what);
        wake_.cancel();
    }
}

void mailbox::before_command() noexcept
{
    for (event& each : waiting_)
    {
        each.from_terminal = false;
    }
}

bool mailbox::contains(const event& what) const
{
    return std::find(waiting_.begin(), waiting_.end(), what) != waiting_.end();
}

asio::awaitable<event> mailbox::next()
{
    while (waiting_.empty())
    {
        error_code woken;
        co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    }
    const event first = waiting_.front();
    waiting_.pop_front();
    co_return first;
}

} // namespace redlock::cli
