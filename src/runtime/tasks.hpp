// SPDX-License-Identifier: BSL-1.0
// The two coroutine types of this library: a `detached_task` is owned by the scheduler, a `task` is awaited by another
// coroutine.
//
// Both run on a manager's strand only. The first argument (for a member function, the object) gives access to the
// scheduler: it is a scheduler, or has a `strand()` that returns one. The frames come from the scheduler's pool.
#pragma once

#include "runtime/scheduler.hpp"

#include <cassert>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace redlock::runtime
{

inline scheduler& scheduler_of(scheduler& strand) noexcept
{
    return strand;
}

template <class Owner>
scheduler& scheduler_of(Owner& owner) noexcept
{
    return owner.strand();
}

/// The common base of both promise types. Frames come from the pool, and an exception that leaves the coroutine calls
/// `terminate`. Only `bad_alloc` does that: all other errors in this library are error codes.
struct pooled_promise
{
    template <class First, class... Rest>
    void* operator new(std::size_t bytes, First&& first, Rest&&...)
    {
        return scheduler_of(first).frames().take(bytes);
    }
    void operator delete(void* block) noexcept { frame_pool::recycle(block); }

    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
};

/// A detached coroutine. It starts immediately, and its frame is owned by the scheduler.
struct detached_task
{
    class promise_type : public pooled_promise, public detached_task_frame
    {
      public:
        template <class First, class... Rest>
        explicit promise_type(First&& first, Rest&&...)
        {
            scheduler_of(first).add(*this);
        }

        detached_task get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void destroy() noexcept override
        {
            std::coroutine_handle<promise_type>::from_promise(*this).destroy();
        }
    };
};

/// A coroutine that starts when it is awaited, and returns a result to the awaiting coroutine.
template <class T>
class [[nodiscard]] task
{
  public:
    class promise_type : public pooled_promise
    {
      public:
        task get_return_object() noexcept
        {
            return task{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept
        {
            struct back_to_awaiter
            {
                bool await_ready() const noexcept { return false; }
                std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) const noexcept
                {
                    return self.promise().awaiter_;
                }
                void await_resume() const noexcept {}
            };
            return back_to_awaiter{};
        }
        void return_value(T value) noexcept { result_.emplace(std::move(value)); }

      private:
        friend class task;

        std::coroutine_handle<> awaiter_;
        std::optional<T> result_;
    };

    task(task&& other) noexcept : self_{std::exchange(other.self_, {})} {}
    task& operator=(task&&) = delete;
    ~task()
    {
        if (self_)
        {
            self_.destroy();
        }
    }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiter) noexcept
    {
        self_.promise().awaiter_ = awaiter;
        return self_;
    }
    T await_resume() noexcept
    {
        assert(self_.promise().result_);
        return std::move(*self_.promise().result_);
    }

  private:
    explicit task(std::coroutine_handle<promise_type> self) noexcept : self_{self} {}

    std::coroutine_handle<promise_type> self_;
};

} // namespace redlock::runtime
