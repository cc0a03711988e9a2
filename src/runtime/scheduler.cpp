// SPDX-License-Identifier: BSL-1.0
// The strand of a manager.
#include "runtime/scheduler.hpp"

#include "runtime/cache.hpp"
#include "runtime/environment.hpp"

#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <algorithm>

namespace redlock::runtime
{

void async_event::notify() noexcept
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

// The maximum number of queued steps, or of completions, in one handler: other handlers wait for the thread as well.
constexpr int max_in_one_handler = 64;

template <class Executor>
bool would_run(const Executor* of_context) noexcept
{
    return of_context != nullptr && of_context->running_in_this_thread() &&
           asio::query(*of_context, asio::execution::blocking) == asio::execution::blocking.possibly;
}

/// Replaces the executor by that of its strand. Returns false if it is none of this kind.
template <class Inner>
bool leave_strand(asio::any_io_executor& executor)
{
    const auto* const outer = executor.target<asio::strand<Inner>>();
    if (outer == nullptr)
    {
        return false;
    }
    executor = asio::any_io_executor{outer->get_inner_executor()};
    return true;
}

/// Returns what runs the handlers of these strands. Unknown executors are returned as they are.
asio::any_io_executor without_strands(asio::any_io_executor executor)
{
    while (leave_strand<asio::any_io_executor>(executor) ||
           leave_strand<asio::io_context::executor_type>(executor) ||
           leave_strand<asio::thread_pool::executor_type>(executor))
    {
    }
    return executor;
}

/// Returns whether the executor's context is stopped. Always false for other contexts than io_context.
bool is_stopped(const asio::any_io_executor& executor) noexcept
{
    const auto* const plain = executor.target<asio::io_context::executor_type>();
    return plain != nullptr && plain->context().stopped();
}

} // namespace

bool runs_here(const asio::any_io_executor& executor) noexcept
{
    using plain = asio::io_context::executor_type;
    using working = decltype(asio::prefer(std::declval<plain>(), asio::execution::outstanding_work.tracked));
    return would_run(executor.target<working>()) || would_run(executor.target<plain>());
}

scheduler::scheduler(asio::any_io_executor executor)
    : executor_{std::move(executor)}, for_steps_{without_strands(executor_)}
{
}

scheduler::~scheduler()
{
    // If the context was destroyed first, functions are still queued.
    discard_queued_steps();
    destroy_detached_tasks();
    for (slot_list* const each : {&undelivered_, &returned_slots_, &completions_, &unused_slots_})
    {
        each->clear_and_dispose([](completion_slot* place) { delete place; });
    }
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

void scheduler::at_step_end(step_end_hook& item)
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
    // An alarm that fires too early finds nothing due and is set again. That is cheaper than moving it for each
    // deadline.
    if (!closed_ && deadlines_.next() < alarm_at_)
    {
        alarm_at_ = deadlines_.next();
        alarm_->set(alarm_at_);
    }
}

void scheduler::close() noexcept
{
    // The alarm is closed but not destroyed, because a handler that refers to it may be in flight.
    if (alarm_ != nullptr && !closed_)
    {
        alarm_->close();
    }
    closed_ = true;
}

bool scheduler::more_will_come() const noexcept
{
    return expects_more_ || more_to_deliver_.load(std::memory_order_relaxed);
}

/// Defers the work for the end of the step to a step after the handlers that are ready to run. Returns false if this is
/// that step.
bool scheduler::defer_step_end()
{
    if (at_deferred_step_end_)
    {
        return false;
    }
    if (!std::exchange(deferred_, true))
    {
        auto deferred_end = [this]
        {
            deferred_ = false;
            at_deferred_step_end_ = true;
        };
        post_later([this, keep = owner_.lock(), deferred_end] { run_step(deferred_end); });
    }
    return true;
}

void scheduler::finish_step() noexcept
{
    // The loop ends, because every resumed coroutine waits for I/O or time before it does the same work again.
    for (;;)
    {
        if (!ready_.empty())
        {
            async_event& next = ready_.front();
            ready_.pop_front();
            std::exchange(next.waiting_, {}).resume();
        }
        else if (!ending_.empty() && more_will_come() && defer_step_end())
        {
            return;
        }
        else if (!ending_.empty())
        {
            step_end_hook& next = ending_.front();
            ending_.pop_front();
            next.on_step_end();
        }
        else
        {
            at_deferred_step_end_ = false;
            return;
        }
    }
}

void scheduler::post_prepared(std::unique_ptr<queued_step>& next)
{
    const std::lock_guard lock{mutex_};
    const bool busy = (strand_state_.fetch_or(wanted, std::memory_order_relaxed) & taken) != 0;
    if (!busy && !posted_)
    {
        asio::post(for_steps_, [this, keep = owner_.lock()] { run_queued_steps(); });
        posted_ = true;
    }
    waiting_.push_back(*next.release());
}

void scheduler::run_queued_steps()
{
    {
        const std::lock_guard lock{mutex_};
        posted_ = false;
        if (waiting_.empty() || (strand_state_.fetch_or(taken, std::memory_order_acquire) & taken) != 0)
        {
            return;
        }
    }
    end_step(step_origin::context);
}

/// Runs the queued steps, releases the strand, and delivers the completions.
void scheduler::end_step(step_origin origin)
{
    std::uint8_t undisturbed = taken;
    if (completions_.empty() && strand_state_.compare_exchange_strong(
                                    undisturbed, 0, std::memory_order_release, std::memory_order_relaxed))
    {
        return;
    }
    // A queued function may hold the last reference to the owner.
    const std::shared_ptr<void> keep = owner_.lock();
    bool rest = false;
    bool to_deliver = false;
    for (int left = max_in_one_handler;; --left)
    {
        std::unique_ptr<queued_step> next;
        {
            const std::lock_guard lock{mutex_};
            if (waiting_.empty() || left == 0)
            {
                undelivered_.splice(undelivered_.end(), completions_);
                to_deliver = !undelivered_.empty();
                rest = !waiting_.empty();
                if (!rest)
                {
                    strand_state_.store(0, std::memory_order_release);
                }
                break;
            }
            next.reset(&waiting_.front());
            waiting_.pop_front();
        }
        next->run();
        finish_step();
    }
    if (rest)
    {
        post_later(remaining_steps{*this});
    }
    if (to_deliver && origin == step_origin::context)
    {
        deliver();
    }
    else if (to_deliver)
    {
        const std::lock_guard lock{mutex_};
        post_delivery();
    }
}

void scheduler::add_slots()
{
    {
        const std::lock_guard lock{mutex_};
        unused_slots_.swap(returned_slots_);
    }
    if (unused_slots_.empty())
    {
        unused_slots_.push_front(*new completion_slot);
    }
}

/// Posts a handler that delivers the queued completions, unless one is posted. Precondition: the lock is held.
void scheduler::post_delivery() noexcept
{
    if (!undelivered_.empty() && !std::exchange(delivering_, true))
    {
        auto go_on = [this, keep = owner_.lock()]
        {
            {
                const std::lock_guard lock{mutex_};
                delivering_ = false;
            }
            deliver();
        };
        asio::post(for_steps_, std::move(go_on));
    }
}

/// Delivers the queued completions. A handler of the user may block, throw, or stop the context, so another handler is
/// posted ahead of each call, to deliver the remaining completions.
void scheduler::deliver()
{
    std::unique_ptr<completion_slot> slot;
    for (int left = max_in_one_handler; left > 0; --left)
    {
        std::unique_ptr<completion_slot> next;
        {
            const std::lock_guard lock{mutex_};
            if (slot)
            {
                returned_slots_.push_front(*slot.release());
            }
            if (undelivered_.empty())
            {
                return;
            }
            if (left < max_in_one_handler && is_stopped(for_steps_))
            {
                post_delivery();
                return;
            }
            next.reset(&undelivered_.front());
            undelivered_.pop_front();
            more_to_deliver_.store(!undelivered_.empty(), std::memory_order_relaxed);
            if (!undelivered_.empty())
            {
                prefetch(&undelivered_.front(), sizeof(completion_slot));
            }
            post_delivery();
        }
        next->complete();
        slot = std::move(next);
    }
}

void scheduler::discard_queued_steps() noexcept
{
    waiting_list never;
    {
        const std::lock_guard lock{mutex_};
        never.swap(waiting_);
    }
    never.clear_and_dispose([](queued_step* one) { delete one; });
}

void scheduler::destroy_detached_tasks() noexcept
{
    while (!detached_tasks_.empty())
    {
        detached_task_frame& next = detached_tasks_.front();
        detached_tasks_.pop_front();
        next.destroy();
    }
}

} // namespace redlock::runtime
