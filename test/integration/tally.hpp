// SPDX-License-Identifier: BSL-1.0
// Counts how the operations of many threads end: each handler once, on its executor, and never inside the initiation.
#pragma once

#include "integration/fixture.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace redlock::test
{

/// An executor for handlers, and a function that says whether the calling thread belongs to it.
struct place
{
    asio::any_io_executor executor;
    std::function<bool()> is_here;
};

template <class Executor>
place place_of(Executor executor)
{
    return {executor, [executor] { return executor.running_in_this_thread(); }};
}

/// The place of handlers without an executor of their own, if the manager's executor can't be asked.
inline place anywhere(asio::any_io_executor executor)
{
    return {std::move(executor), [] { return true; }};
}

/// Counts operations and their ends.
class tally
{
  public:
    /// Starts an operation: calls `initiate` with a handler that counts, and then calls `then`, at a place.
    template <class Initiate, class Then>
    void start(const place& at, Initiate initiate, Then then)
    {
        ++started_;
        const inside mark;
        initiate(asio::bind_executor(
            at.executor,
            [guard = std::make_unique<one_call>(*this, at.is_here),
             then = std::move(then)](auto&&... results) mutable
            {
                guard->called();
                then(std::forward<decltype(results)>(results)...);
                guard->returned();
            }));
    }

    /// Waits until every operation has ended, with its handler. Throws `stuck`.
    void wait_until_all_ended() const
    {
        // In this order: a handler starts the next operation before it returns.
        const auto all = [&]
        {
            const std::size_t returned = returned_.load(std::memory_order_acquire);
            return returned == started_;
        };
        wait_until(all, "an operation of many threads");
    }
    /// Waits until each operation has ended, or was destroyed uncalled. Throws `stuck`.
    void wait_until_none_is_left() const
    {
        wait_until([&] { return ended_ + dropped_ == started_; }, "an operation of many threads");
    }
    /// Waits until that many operations have ended. Throws `stuck`.
    void wait_until_ended(std::size_t count) const
    {
        wait_until([&] { return ended_ >= count; }, "the first operations of many threads");
    }
    /// Records a result that isn't documented.
    void expect(bool documented) { undocumented_ += documented ? 0U : 1U; }

    std::size_t started() const { return started_; }
    std::size_t ended() const { return ended_; }
    /// Handlers that were destroyed without a call.
    std::size_t dropped() const { return dropped_; }
    /// Handlers that ran twice, on another executor, inside of the initiation, or with an undocumented result.
    std::size_t wrong() const { return twice_ + elsewhere_ + inside_ + undocumented_; }

  private:
    /// Marks the thread while it is inside an initiating function.
    struct inside
    {
        inside() { ++depth(); }
        inside(const inside&) = delete;
        inside& operator=(const inside&) = delete;
        ~inside() { --depth(); }

        static int& depth()
        {
            static thread_local int depth = 0;
            return depth;
        }
    };

    class one_call
    {
      public:
        one_call(tally& of, std::function<bool()> is_here) : of_{&of}, is_here_{std::move(is_here)} {}
        one_call(const one_call&) = delete;
        one_call& operator=(const one_call&) = delete;
        ~one_call()
        {
            if (calls_ == 0)
            {
                ++of_->dropped_;
            }
        }
        void called()
        {
            of_->twice_ += ++calls_ == 1 ? 0U : 1U;
            of_->elsewhere_ += is_here_() ? 0U : 1U;
            of_->inside_ += inside::depth() == 0 ? 0U : 1U;
            ++of_->ended_;
        }
        void returned() { of_->returned_.fetch_add(1, std::memory_order_release); }

      private:
        tally* of_;
        std::function<bool()> is_here_;
        int calls_ = 0;
    };

    template <class Condition>
    static void wait_until(Condition condition, const char* what)
    {
        const auto limit = std::chrono::steady_clock::now() + patience;
        while (!condition())
        {
            if (std::chrono::steady_clock::now() > limit)
            {
                throw stuck{std::string{"still not done after a minute: "} + what};
            }
            std::this_thread::yield();
        }
    }

    // Unordered, so that the counting orders no threads that the library has to.
    struct counter
    {
        std::atomic<std::size_t> value{0};
        void operator++() { value.fetch_add(1, std::memory_order_relaxed); }
        void operator+=(std::size_t more) { value.fetch_add(more, std::memory_order_relaxed); }
        operator std::size_t() const { return value.load(std::memory_order_relaxed); }
    };
    counter started_;
    counter ended_;
    std::atomic<std::size_t> returned_{0};
    counter dropped_;
    counter twice_;
    counter elsewhere_;
    counter inside_;
    counter undocumented_;
};

} // namespace redlock::test
