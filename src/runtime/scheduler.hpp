// SPDX-License-Identifier: BSL-1.0
// The strand of a manager: its steps, the coroutines and deadlines that run in them, and the delivery of completions
// after them.
#pragma once

#include "runtime/completion_slot.hpp"
#include "runtime/deadline_queue.hpp"
#include "runtime/frame_pool.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/slist.hpp>

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace redlock::runtime
{

namespace asio = boost::asio;
namespace intrusive = boost::intrusive;

class alarm;
class environment;
class scheduler;

using unlinking_hook = intrusive::list_base_hook<intrusive::link_mode<intrusive::auto_unlink>>;
template <class T>
using unlinking_list = intrusive::list<T, intrusive::constant_time_size<false>>;

/// An event that one coroutine waits for, similar to a condition variable: the resumed coroutine checks its condition,
/// and waits again if it isn't met.
class async_event : public unlinking_hook
{
  public:
    explicit async_event(scheduler& strand) noexcept : strand_{strand} {}
    async_event(const async_event&) = delete;
    async_event& operator=(const async_event&) = delete;

    /// Makes the waiting coroutine ready; it is resumed later in this step, never within the call. If none is waiting,
    /// the next `co_await` doesn't suspend.
    void notify() noexcept;

    bool await_ready() const noexcept { return notified_; }
    void await_suspend(std::coroutine_handle<> waiting) noexcept { waiting_ = waiting; }
    void await_resume() noexcept { notified_ = false; }

  private:
    friend class scheduler;

    scheduler& strand_;
    std::coroutine_handle<> waiting_;
    bool notified_ = false;
};

/// Work that is done once at the end of a step, however often it was requested during the step.
class step_end_hook : public unlinking_hook
{
  public:
    virtual void on_step_end() = 0;

  protected:
    ~step_end_hook() = default;
};

/// A detached coroutine in the scheduler's list, so that it can be destroyed with the scheduler.
class detached_task_frame : public unlinking_hook
{
  public:
    virtual void destroy() noexcept = 0;

  protected:
    ~detached_task_frame() = default;
};

/// The origin of a step.
enum class step_origin : std::uint8_t
{
    context, // A handler on a thread of the executor: completions may be called after the step.
    user     // A call by the user, within which no completion may be called.
};

/// A function that is queued for a step.
class queued_step : public intrusive::slist_base_hook<>
{
  public:
    queued_step() = default;
    queued_step(const queued_step&) = delete;
    queued_step& operator=(const queued_step&) = delete;
    virtual ~queued_step() = default;
    virtual void run() noexcept = 0;
};

template <class Function>
class queued_function final : public queued_step
{
  public:
    template <class Brought>
    explicit queued_function(Brought&& brought) : function{std::forward<Brought>(brought)}
    {
    }
    void run() noexcept override { function(); }

    Function function;
};

/// Returns whether the calling thread runs the executor's context, so that the executor would run a function at once.
/// Always false for executors of other contexts than io_context.
bool runs_here(const asio::any_io_executor& executor) noexcept;

/// The strand of a manager: serialises all its work in steps, and delivers completions after them.
///
/// A step handles one event: a completed I/O operation, an alarm, or a call from outside. Then it resumes the
/// coroutines that have become ready, performs the work that was registered for the end of the step (the writes), and
/// repeats both until nothing is left.
///
/// The strand is either idle or taken by one thread, which runs the step. A thread that arrives meanwhile queues its
/// function and returns. At the end of its step, the thread runs queued functions as further steps, at most 64. Then it
/// releases the strand, or passes it to a posted handler that runs the rest, and calls the completions.
///
/// Steps are begun by handlers of I/O and alarms (`bind`), by calls of the user on a thread of the executor (`run_step`),
/// and by `post`.
/// Unless stated otherwise, the other members are called within a step.
///
/// Guarantees:
/// - Steps neither overlap nor nest, and posted functions run in their order.
/// - `async_event::notify` never resumes a coroutine within the call, so no function finds its object changed by one.
/// - Handlers of the user are called while the strand isn't held by their thread, and never within a call by the user.
/// - A step without contention and without completions takes no lock.
/// - If the context is destroyed first, queued functions and suspended coroutines are destroyed without being run.
class scheduler
{
  public:
    /// An Asio executor that runs each function as a step.
    class step_executor
    {
      public:
        explicit step_executor(scheduler& of) noexcept : of_{&of} {}

        template <class Function>
        void execute(Function&& function) const
        {
            of_->run_step(std::forward<Function>(function), step_origin::context);
        }
        asio::execution_context& query(asio::execution::context_t) const noexcept
        {
            return asio::query(of_->executor_, asio::execution::context);
        }
        static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept
        {
            return asio::execution::blocking.possibly;
        }
        friend bool operator==(const step_executor&, const step_executor&) noexcept = default;

      private:
        scheduler* of_;
    };

    explicit scheduler(asio::any_io_executor executor);
    scheduler(const scheduler&) = delete;
    scheduler& operator=(const scheduler&) = delete;
    ~scheduler();

    /// Sets the environment and creates the alarm. `owner` owns this scheduler; handlers in flight keep it alive.
    void start(const environment& outside, std::weak_ptr<void> owner);

    /// Returns the executor on which the steps run. Thread-safe.
    const asio::any_io_executor& executor() const noexcept { return executor_; }
    clock::time_point now() const noexcept;
    frame_pool& frames() noexcept { return frames_; }

    /// Runs `function` as a step: immediately, or after the steps that are queued. The owner must live until then.
    /// Errors within a step are error codes. An exception, which can only be `bad_alloc`, terminates the program.
    /// Thread-safe.
    template <class Function>
    void run_step(Function&& function, step_origin origin = step_origin::context)
    {
        if (try_begin_step(std::forward<Function>(function), origin))
        {
            [&]() noexcept { std::forward<Function>(function)(); }();
            finish_step();
            end_step(origin);
        }
    }

    /// Returns a handler that runs `function` as a step, and keeps the owner alive until then.
    template <class Function>
    auto bind(Function function)
    {
        return asio::bind_executor(
            step_executor{*this}, keeping<Function>{owner_.lock(), std::move(function)});
    }
    /// Runs `function` as a later step, on a thread of the executor. Posted functions run in their order. Thread-safe.
    template <class Function>
    void post(Function function)
    {
        std::unique_ptr<queued_step> next = std::make_unique<queued_function<Function>>(std::move(function));
        post_prepared(next);
    }
    /// Does so with a function that the caller has allocated, and takes it over. If there is no memory, the caller keeps
    /// it. Thread-safe.
    void post_prepared(std::unique_ptr<queued_step>& next);
    /// Calls `what` after the current step, when this thread no longer holds the strand, on a thread of the executor.
    /// If the step was begun by a call of the user, a handler is posted for it. If the executor has several threads, a
    /// completion that blocks doesn't delay others.
    template <class Function>
    void after_step(Function&& what)
    {
        if (unused_slots_.empty())
        {
            add_slots();
        }
        completion_slot& place = unused_slots_.front();
        place.hold(std::forward<Function>(what));
        unused_slots_.pop_front();
        completions_.push_back(place);
    }

    /// Sets whether the handlers that are ready to run are likely to cause more commands. If so, the work for the end
    /// of the step is deferred to a step after these handlers, so that all their commands leave in one write.
    void expect_more(bool more) noexcept { expects_more_ = more; }

    void arm(deadline& item, clock::time_point at);
    void at_step_end(step_end_hook& item);
    void add(detached_task_frame& task) { detached_tasks_.push_back(task); }

    /// Called by the alarm, in a step.
    void on_alarm();
    /// Stops the alarm permanently.
    void close() noexcept;
    /// Destroys the suspended detached coroutines, and the objects that they own.
    void destroy_detached_tasks() noexcept;

  private:
    friend class async_event;

    template <class Function>
    struct keeping
    {
        std::shared_ptr<void> keep;
        Function function;

        template <class... Arguments>
            requires std::invocable<Function&, Arguments...>
        void operator()(Arguments&&... arguments)
        {
            function(std::forward<Arguments>(arguments)...);
        }
    };
    using waiting_list = intrusive::slist<queued_step, intrusive::cache_last<true>>;
    using slot_list = intrusive::slist<completion_slot, intrusive::cache_last<true>>;

    /// The handler that continues with the queued steps. It holds the strand until it runs. If the context is destroyed
    /// first, so are the queued functions, since they may keep the owner alive.
    class remaining_steps
    {
      public:
        explicit remaining_steps(scheduler& of) : of_{&of}, keep_{of.owner_.lock()} {}
        remaining_steps(remaining_steps&& other) noexcept
            : of_{std::exchange(other.of_, nullptr)}, keep_{std::move(other.keep_)}
        {
        }
        remaining_steps& operator=(remaining_steps&&) = delete;
        ~remaining_steps()
        {
            if (of_ != nullptr)
            {
                of_->discard_queued_steps();
            }
        }
        void operator()() { std::exchange(of_, nullptr)->end_step(step_origin::context); }

      private:
        scheduler* of_;
        std::shared_ptr<void> keep_;
    };

    /// Takes the strand, and returns true if the caller now has to run the step. Otherwise `function` was queued, and
    /// may have run already.
    template <class Function>
    bool try_begin_step(Function&& function, step_origin origin)
    {
        std::uint8_t free = 0;
        if (strand_state_.compare_exchange_strong(
                free, taken, std::memory_order_acquire, std::memory_order_relaxed))
        {
            return true;
        }
        {
            const std::lock_guard lock{mutex_};
            using kept = std::remove_cvref_t<Function>;
            [&]() noexcept
            {
                auto next = std::make_unique<queued_function<kept>>(std::forward<Function>(function));
                waiting_.push_back(*next.release());
            }();
            if ((strand_state_.fetch_or(taken | wanted, std::memory_order_acquire) & taken) != 0)
            {
                return false;
            }
        }
        end_step(origin);
        return false;
    }
    void run_queued_steps();
    void finish_step() noexcept;
    bool more_will_come() const noexcept;
    bool defer_step_end();
    void end_step(step_origin origin);
    void add_slots();
    void post_delivery() noexcept;
    void deliver();
    void discard_queued_steps() noexcept;
    template <class Function>
    void post_later(Function function) noexcept
    {
        asio::post(for_steps_, std::move(function));
    }
    void set_alarm();

    asio::any_io_executor executor_;
    asio::any_io_executor for_steps_; // The same without the user's strands, which a handler may keep busy.
    // The state of the strand. `taken`: a thread runs a step. `wanted`: functions are queued; set and cleared with the
    // lock held. A step without contention and without completions begins and ends without the lock.
    static constexpr std::uint8_t taken = 1;
    static constexpr std::uint8_t wanted = 2;
    std::atomic<std::uint8_t> strand_state_{0};
    std::mutex mutex_;
    bool posted_ = false; // A handler that calls run_queued_steps is posted.
    waiting_list waiting_;
    slot_list undelivered_;    // Completions of steps that have ended.
    slot_list returned_slots_; // Empty slots, which can be reused.
    bool delivering_ = false;  // A handler that delivers completions is posted.
    // Completions remain after the one that is being delivered, and are likely to cause more steps. Read in a step
    // without the lock: if the value is outdated, writes leave too early or in a separate step.
    std::atomic<bool> more_to_deliver_{false};
    // Used only by the thread that runs a step:
    bool expects_more_ = false;
    bool deferred_ = false;             // The work for the end of the step was deferred to a posted step.
    bool at_deferred_step_end_ = false; // This is that step.
    slot_list completions_;
    slot_list unused_slots_;
    const environment* outside_ = nullptr;
    std::weak_ptr<void> owner_;
    std::unique_ptr<alarm> alarm_;
    bool closed_ = false;
    clock::time_point alarm_at_ = clock::time_point::max();
    frame_pool frames_;
    deadline_queue deadlines_;
    unlinking_list<async_event> ready_;
    unlinking_list<step_end_hook> ending_;
    unlinking_list<detached_task_frame> detached_tasks_;
};

} // namespace redlock::runtime
