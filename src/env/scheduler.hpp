// SPDX-License-Identifier: BSL-1.0
// What a manager does, one turn after the other: a strand that allocates nothing where threads don't meet. Its turns, the
// coroutines that became ready in them, their deadlines, and what is told to the outside behind them.
#pragma once

#include "env/deadline_queue.hpp"
#include "env/frame_pool.hpp"
#include "env/told_outside.hpp"

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

namespace redlock::env
{

namespace asio = boost::asio;
namespace intrusive = boost::intrusive;

class alarm;
class environment;
class scheduler;

using unlinking_hook = intrusive::list_base_hook<intrusive::link_mode<intrusive::auto_unlink>>;
template <class T>
using unlinking_list = intrusive::list<T, intrusive::constant_time_size<false>>;

/// Where one coroutine waits until something has happened that it should look at, like a condition variable:
/// whoever is woken checks what it waits for, and waits again if it isn't there.
class wake : public unlinking_hook
{
  public:
    explicit wake(scheduler& strand) noexcept : strand_{strand} {}
    wake(const wake&) = delete;
    wake& operator=(const wake&) = delete;

    /// Never resumes inside the call: the coroutine goes on later in this turn.
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

/// Something that is done once at the end of a turn, however often it was asked for in it.
class end_of_turn : public unlinking_hook
{
  public:
    virtual void on_end_of_turn() = 0;

  protected:
    ~end_of_turn() = default;
};

/// A suspended flow, so that the strand's end can find it.
class flow_frame : public unlinking_hook
{
  public:
    virtual void destroy() noexcept = 0;

  protected:
    ~flow_frame() = default;
};

/// Who begins a turn.
enum class begun_by : std::uint8_t
{
    context, // One of the executor's threads, with nothing of the user's around it.
    user     // A call of the user's, inside of which nothing of his may be called.
};

/// Whether this is a thread of the executor's context, so that it would run things at once. Only for those of an
/// io_context; else false.
bool runs_here(const asio::any_io_executor& executor) noexcept;

/// Everything that a manager does happens in a turn: a completion of I/O, an alarm, or a call from outside;
/// then the coroutines that it made ready; then what is due at its end (writes), until nothing is left to do.
///
/// There is one turn at a time. A thread that comes while another one is in a turn leaves what it brings to that one,
/// which makes so many turns in a row at most, and then leaves the rest to a handler of its own.
class scheduler
{
  public:
    /// An executor of Asio's that makes a turn of everything.
    class turns
    {
      public:
        explicit turns(scheduler& of) noexcept : of_{&of} {}

        template <class Function>
        void execute(Function&& function) const
        {
            of_->turn(std::forward<Function>(function), begun_by::context);
        }
        asio::execution_context& query(asio::execution::context_t) const noexcept
        {
            return asio::query(of_->executor_, asio::execution::context);
        }
        static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept
        {
            return asio::execution::blocking.possibly;
        }
        friend bool operator==(const turns&, const turns&) noexcept = default;

      private:
        scheduler* of_;
    };

    explicit scheduler(asio::any_io_executor executor);
    scheduler(const scheduler&) = delete;
    scheduler& operator=(const scheduler&) = delete;
    ~scheduler();

    /// `owner` is what keeps this scheduler alive while an operation is in flight.
    void start(const environment& outside, std::weak_ptr<void> owner);

    /// On which turns are taken.
    const asio::any_io_executor& executor() const noexcept { return executor_; }
    clock::time_point now() const noexcept;
    frame_pool& frames() noexcept { return frames_; }

    /// Makes a turn of `function`: now, or behind the turns that were asked for before. The owner has to live until then.
    /// What goes wrong in a turn is an `error_code`: an exception, that is `bad_alloc`, ends the program.
    template <class Function>
    void turn(Function&& function, begun_by whom = begun_by::context)
    {
        if (begin_turn(std::forward<Function>(function), whom))
        {
            [&]() noexcept { std::forward<Function>(function)(); }();
            finish_turn();
            end_turn(whom);
        }
    }

    /// `function`, as a handler that is a turn and keeps the owner alive until then.
    template <class Function>
    auto bind(Function function)
    {
        return asio::bind_executor(turns{*this}, keeping<Function>{owner_.lock(), std::move(function)});
    }
    /// A turn on a thread of the executor's, later. Turns that are asked for one after the other come in this order.
    template <class Function>
    void post(Function function)
    {
        auto next = std::make_unique<waiting_function<Function>>(std::move(function));
        const std::lock_guard lock{mutex_};
        const bool busy = (turn_.fetch_or(wanted, std::memory_order_relaxed) & taken) != 0;
        if (!busy && !called_)
        {
            asio::post(executor_, [this, keep = owner_.lock()] { take_turns(); });
            called_ = true;
        }
        waiting_.push_back(*next.release());
    }
    /// A turn that the user's own call begins: at once on a thread of the executor's, else later.
    template <class Function>
    void enter(Function function)
    {
        if (runs_here(executor_))
        {
            const std::shared_ptr<void> keep = owner_.lock();
            turn(std::move(function), begun_by::user);
        }
        else
        {
            post(std::move(function));
        }
    }
    /// In a turn: `what` is called behind it, on a thread of the executor's, when other turns may be taken again: at once,
    /// unless the user is inside of a call. None of them holds up another where there are several threads.
    template <class Function>
    void after_turn(Function&& what)
    {
        if (unused_.empty())
        {
            make_room_to_tell();
        }
        told_outside& place = unused_.front();
        place.hold(std::forward<Function>(what));
        unused_.pop_front();
        told_.push_back(place);
    }

    /// In a turn: whether more is likely to come from what is ready to run. Then what is due at a turn's end waits for a
    /// turn behind all that, and goes out together.
    void expect_more(bool more) noexcept { expects_more_ = more; }

    void arm(deadline& item, clock::time_point at);
    void at_end_of_turn(end_of_turn& item);
    void add(flow_frame& flow) { flows_.push_back(flow); }

    /// Called by the alarm, in a turn.
    void on_alarm();
    /// No alarm after this.
    void close() noexcept;
    /// Destroys the flows that are suspended, and with them what they hold.
    void destroy_flows() noexcept;

  private:
    friend class wake;

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
    /// What has to wait for its turn.
    class waiting_turn : public intrusive::slist_base_hook<>
    {
      public:
        waiting_turn() = default;
        waiting_turn(const waiting_turn&) = delete;
        waiting_turn& operator=(const waiting_turn&) = delete;
        virtual ~waiting_turn() = default;
        virtual void run() noexcept = 0;
    };
    template <class Function>
    class waiting_function final : public waiting_turn
    {
      public:
        template <class Brought>
        explicit waiting_function(Brought&& function) : function_{std::forward<Brought>(function)}
        {
        }
        void run() noexcept override { function_(); }

      private:
        Function function_;
    };
    using waiting_list = intrusive::slist<waiting_turn, intrusive::cache_last<true>>;
    using told_list = intrusive::slist<told_outside, intrusive::cache_last<true>>;

    /// The handler that goes on with the turns. It owns the turn while it is on its way; where its context goes instead,
    /// what waits goes with it: it may keep the owner.
    class rest_of_turns
    {
      public:
        explicit rest_of_turns(scheduler& of) : of_{&of}, keep_{of.owner_.lock()} {}
        rest_of_turns(rest_of_turns&& other) noexcept
            : of_{std::exchange(other.of_, nullptr)}, keep_{std::move(other.keep_)}
        {
        }
        rest_of_turns& operator=(rest_of_turns&&) = delete;
        ~rest_of_turns()
        {
            if (of_ != nullptr)
            {
                of_->forget_turns();
            }
        }
        void operator()() { std::exchange(of_, nullptr)->end_turn(begun_by::context); }

      private:
        scheduler* of_;
        std::shared_ptr<void> keep_;
    };

    /// True if it is this function's turn now. Else it was taken, and has had its turn or waits for it.
    template <class Function>
    bool begin_turn(Function&& function, begun_by whom)
    {
        std::uint8_t free = 0;
        if (turn_.compare_exchange_strong(free, taken, std::memory_order_acquire, std::memory_order_relaxed))
        {
            return true;
        }
        {
            const std::lock_guard lock{mutex_};
            using kept = std::remove_cvref_t<Function>;
            [&]() noexcept
            {
                auto next = std::make_unique<waiting_function<kept>>(std::forward<Function>(function));
                waiting_.push_back(*next.release());
            }();
            if ((turn_.fetch_or(taken | wanted, std::memory_order_acquire) & taken) != 0)
            {
                return false;
            }
        }
        end_turn(whom);
        return false;
    }
    void take_turns();
    void finish_turn() noexcept;
    bool more_will_come() const noexcept;
    bool put_off();
    void end_turn(begun_by whom);
    void make_room_to_tell();
    void call_for_telling() noexcept;
    void tell();
    void forget_turns() noexcept;
    template <class Function>
    void post_later(Function function) noexcept
    {
        asio::post(executor_, std::move(function));
    }
    void set_alarm();

    asio::any_io_executor executor_;
    // Of the turn: a thread has it; others wait for it, which is noted and taken back with the lock held. One that nobody
    // disturbs and that tells nothing begins and ends without the lock.
    static constexpr std::uint8_t taken = 1;
    static constexpr std::uint8_t wanted = 2;
    std::atomic<std::uint8_t> turn_{0};
    std::mutex mutex_;
    bool called_ = false; // For take_turns, on one of the executor's threads.
    waiting_list waiting_;
    told_list untold_;     // Behind turns that have ended.
    told_list told_again_; // Their places, which can be used again.
    bool telling_ = false; // A thread was called for that tells.
    // Behind what is told now, which leads to more turns. Read in a turn, without the lock: it may be wrong by then, and then
    // something goes out too early or in a turn of its own.
    std::atomic<bool> more_to_tell_{false};
    // Of the thread that is in a turn:
    bool expects_more_ = false;
    bool put_off_ = false; // What is due at the end has a turn of its own to come.
    bool at_last_ = false; // This is that turn.
    told_list told_;
    told_list unused_;
    const environment* outside_ = nullptr;
    std::weak_ptr<void> owner_;
    std::unique_ptr<alarm> alarm_;
    bool closed_ = false;
    clock::time_point alarm_at_ = clock::time_point::max();
    frame_pool frames_;
    deadline_queue deadlines_;
    unlinking_list<wake> ready_;
    unlinking_list<end_of_turn> ending_;
    unlinking_list<flow_frame> flows_;
};

} // namespace redlock::env
