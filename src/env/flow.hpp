// SPDX-License-Identifier: BSL-1.0
// The two kinds of coroutines of this library: a flow, which runs by itself, and a task, which another
// awaits.
//
// Both run on a manager's strand only. The first argument of each (for a member: the object) must lead to the
// scheduler: it is one, or has a `strand()` that returns one. Their frames come from its pool.
#pragma once

#include "env/scheduler.hpp"

#include <cassert>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace redlock::env
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

/// What the promises of both kinds share: frames from the pool, and an end by `terminate` for what nobody can
/// catch. Only `bad_alloc` gets there: everything else in this library is an `error_code`.
struct pooled_promise
{
    template <class First, class... Rest>
    void* operator new(std::size_t bytes, First&& first, Rest&&...)
    {
        return scheduler_of(first).frames().take(bytes);
    }
    void operator delete(void* block) noexcept { frame_pool::give_back(block); }

    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
};

/// A coroutine that starts at once and belongs to nobody but the scheduler.
struct flow
{
    class promise_type : public pooled_promise, public flow_frame
    {
      public:
        template <class First, class... Rest>
        explicit promise_type(First&& first, Rest&&...)
        {
            scheduler_of(first).add(*this);
        }

        flow get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void destroy() noexcept override
        {
            std::coroutine_handle<promise_type>::from_promise(*this).destroy();
        }
    };
};

/// A coroutine that starts when it is awaited and gives a result to whoever awaits it.
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

} // namespace redlock::env
