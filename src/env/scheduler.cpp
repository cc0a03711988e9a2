// SPDX-License-Identifier: BSL-1.0
// What a manager does, one turn after the other.
#include "env/scheduler.hpp"

#include "env/environment.hpp"

#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>

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

namespace
{

template <class Executor>
bool would_run(const Executor* of_context) noexcept
{
    return of_context != nullptr && of_context->running_in_this_thread() &&
           asio::query(*of_context, asio::execution::blocking) == asio::execution::blocking.possibly;
}

} // namespace

bool runs_here(const asio::any_io_executor& executor) noexcept
{
    using plain = asio::io_context::executor_type;
    using working = decltype(asio::prefer(std::declval<plain>(), asio::execution::outstanding_work.tracked));
    return would_run(executor.target<working>()) || would_run(executor.target<plain>());
}

scheduler::scheduler(asio::any_io_executor executor) : executor_{std::move(executor)} {}

scheduler::~scheduler()
{
    // The context has gone before they had their turn.
    waiting_.clear_and_dispose([](waiting_turn* never) { delete never; });
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

/// What is due at the end waits for a turn behind those that are ready. False if this is that turn.
bool scheduler::put_off()
{
    if (at_last_)
    {
        return false;
    }
    if (!std::exchange(put_off_, true))
    {
        auto last = [this]
        {
            put_off_ = false;
            at_last_ = true;
        };
        asio::post(executor_, [this, keep = owner_.lock(), last] { turn(last); });
    }
    return true;
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
        else if (!ending_.empty() && expects_more_ && put_off())
        {
            return;
        }
        else if (!ending_.empty())
        {
            end_of_turn& next = ending_.front();
            ending_.pop_front();
            next.on_end_of_turn();
        }
        else
        {
            at_last_ = false;
            return;
        }
    }
}

void scheduler::after_turn(told_outside tell)
{
    told_.push_back({std::move(tell), how_});
}

void scheduler::take_turns()
{
    {
        const std::lock_guard lock{mutex_};
        called_ = false;
        if (in_turn_ || waiting_.empty())
        {
            return;
        }
        in_turn_ = true;
    }
    end_turn(delivery::at_once);
}

/// Makes the turns that wait, leaves further ones to others, and tells what there is to be told.
void scheduler::end_turn(delivery how)
{
    std::shared_ptr<void> keep;
    std::vector<telling> told;
    for (;;)
    {
        std::unique_ptr<waiting_turn> next;
        {
            const std::lock_guard lock{mutex_};
            if (waiting_.empty())
            {
                if (!told_.empty())
                {
                    told.swap(told_);
                }
                in_turn_ = false;
                break;
            }
            next.reset(&waiting_.front());
            waiting_.pop_front();
        }
        if (!keep)
        {
            // It may be the last one that does.
            keep = owner_.lock();
        }
        // Nor does what another thread brought complete inside of a call of the user's.
        how_ = how == delivery::posted ? how : next->how;
        next->run();
        finish_turn();
    }
    if (!told.empty())
    {
        tell(told);
    }
}

void scheduler::tell(std::vector<telling>& all)
{
    std::size_t at = 0;
    try
    {
        for (; at < all.size(); ++at)
        {
            all[at].tell(all[at].how);
        }
    }
    catch (...)
    {
        // A handler of the user's has thrown: out of the context's run(). The others are called all the same.
        for (++at; at < all.size(); ++at)
        {
            all[at].tell(delivery::posted);
        }
        throw;
    }
    all.clear();
    // Its room is used again.
    const std::lock_guard lock{mutex_};
    if (!in_turn_ && told_.capacity() < all.capacity())
    {
        told_.swap(all);
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
