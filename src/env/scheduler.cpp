// SPDX-License-Identifier: BSL-1.0
// What runs on a manager's strand.
#include "env/scheduler.hpp"

#include "env/environment.hpp"

namespace redlock::env
{

void wake::notify() noexcept
{
    if (notified_)
    {
        return;
    }
    notified_ = true;
    if (waiting_)
    {
        strand_.ready_.push_back(*this);
    }
}

scheduler::scheduler(asio::any_io_executor executor) : strand_{asio::make_strand(std::move(executor))} {}

scheduler::~scheduler()
{
    destroy_flows();
}

void scheduler::start(const environment& outside, std::weak_ptr<void> owner)
{
    outside_ = &outside;
    owner_ = std::move(owner);
    alarm_ = outside.make_alarm(*this);
}

clock::time_point scheduler::now() const noexcept
{
    return outside_->now();
}

void scheduler::arm(deadline& item, clock::time_point at)
{
    deadlines_.arm(item, at);
    set_alarm();
}

void scheduler::at_end_of_turn(end_of_turn& item)
{
    if (!item.is_linked())
    {
        ending_.push_back(item);
    }
}

void scheduler::on_alarm()
{
    if (closed_)
    {
        return;
    }
    alarm_at_ = clock::time_point::max();
    deadlines_.expire(now());
    set_alarm();
}

void scheduler::set_alarm()
{
    // An alarm that comes too early finds nothing due and is set again: cheaper than moving it for each
    // deadline.
    if (!closed_ && !deadlines_.empty() && deadlines_.next() < alarm_at_)
    {
        alarm_at_ = deadlines_.next();
        alarm_->set(alarm_at_);
    }
}

void scheduler::close() noexcept
{
    // The alarm itself stays: a call of it may be on its way.
    if (alarm_ != nullptr && !closed_)
    {
        alarm_->close();
    }
    closed_ = true;
}

void scheduler::finish_turn()
{
    // It ends: whatever is woken waits for I/O or for time before it does the same thing again.
    for (;;)
    {
        if (!ready_.empty())
        {
            wake& next = ready_.front();
            ready_.pop_front();
            std::exchange(next.waiting_, {}).resume();
        }
        else if (!ending_.empty())
        {
            end_of_turn& next = ending_.front();
            ending_.pop_front();
            next.on_end_of_turn();
        }
        else
        {
            return;
        }
    }
}

void scheduler::destroy_flows() noexcept
{
    while (!flows_.empty())
    {
        flow_frame& next = flows_.front();
        flows_.pop_front();
        next.destroy();
    }
}

} // namespace redlock::env
