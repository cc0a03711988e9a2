// SPDX-License-Identifier: BSL-1.0
// What runs on a manager's strand: turns, the coroutines that became ready in them, and their deadlines.
#pragma once

#include "env/deadline_queue.hpp"
#include "env/frame_pool.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/strand.hpp>
#include <boost/intrusive/list.hpp>

#include <concepts>
#include <coroutine>
#include <memory>
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

/// Everything that a manager does happens in a turn: a completion of I/O, an alarm, or a call from outside;
/// then the coroutines that it made ready; then what is due at its end (writes), until nothing is left to do.
class scheduler
{
  public:
    explicit scheduler(asio::any_io_executor executor);
    scheduler(const scheduler&) = delete;
    scheduler& operator=(const scheduler&) = delete;
    ~scheduler();

    /// `owner` is what keeps this scheduler alive while an operation is in flight.
    void start(const environment& outside, std::weak_ptr<void> owner);

    const asio::strand<asio::any_io_executor>& strand() const noexcept { return strand_; }
    clock::time_point now() const noexcept;
    frame_pool& frames() noexcept { return frames_; }

    /// On the strand. Not inside another turn.
    template <class Function>
    void turn(Function&& function)
    {
        std::forward<Function>(function)();
        finish_turn();
    }

    /// `function`, as a handler that runs on the strand as a turn and keeps the owner alive until then.
    template <class Function>
    auto bind(Function function)
    {
        return asio::bind_executor(strand_, in_turn<Function>{*this, owner_.lock(), std::move(function)});
    }

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
    struct in_turn
    {
        scheduler& self;
        std::shared_ptr<void> keep;
        Function function;

        template <class... Arguments>
            requires std::invocable<Function&, Arguments...>
        void operator()(Arguments&&... arguments)
        {
            self.turn([&] { function(std::forward<Arguments>(arguments)...); });
        }
    };

    void finish_turn();
    void set_alarm();

    asio::strand<asio::any_io_executor> strand_;
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
