// SPDX-License-Identifier: BSL-1.0
// Delivers events to the user's observer.
#include "manager/notifier.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace redlock::manager
{

namespace
{

constexpr int max_in_a_row = 64;

} // namespace

void notifier::push(event what)
{
    const std::lock_guard lock{mutex_};
    if (waiting_.size() >= to_.max_waiting)
    {
        ++dropped_;
        return;
    }
    waiting_.push_back(std::move(what));
    if (!delivering_)
    {
        start_delivery();
    }
}

/// Requires the mutex to be locked.
void notifier::start_delivery()
{
    boost::asio::post(to_.executor, [self = shared_from_this()] { self->deliver(); });
    delivering_ = true;
}

void notifier::deliver() noexcept
{
    // In batches, because the thread has other work as well.
    event current{events_dropped{0}};
    for (int left = max_in_a_row; left > 0; --left)
    {
        if (!next(current))
        {
            return;
        }
        to_.on_event(current);
    }
    const std::lock_guard lock{mutex_};
    start_delivery();
}

bool notifier::next(event& out)
{
    const std::lock_guard lock{mutex_};
    if (waiting_.empty() && dropped_ > 0)
    {
        out = events_dropped{std::exchange(dropped_, 0)};
        return true;
    }
    if (waiting_.empty())
    {
        delivering_ = false;
        return false;
    }
    out = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
}

} // namespace redlock::manager
