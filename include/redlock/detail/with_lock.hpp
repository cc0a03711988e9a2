// SPDX-License-Identifier: BSL-1.0
// The implementation of `async_with_lock`: acquire, extend, run the body and release, as one operation.
#pragma once

#include <redlock/detail/asio_1172.hpp>
#include <redlock/detail/asio_1336.hpp>
#include <redlock/detail/completion.hpp>
#include <redlock/detail/dispatch.hpp>
#include <redlock/detail/handles.hpp>
#include <redlock/detail/lock_body.hpp>
#include <redlock/error.hpp>
#include <redlock/lease.hpp>
#include <redlock/options.hpp>
#include <redlock/report.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace redlock::detail
{

REDLOCK_API void start_acquire_kept(
    const manager_handle_ptr& handle, std::string resource, keep_options options, report* out,
    std::variant<completion<void(error_code, lease)>, completion<void(std::exception_ptr, lease)>> done);

/// Makes the `lock_error` of an `async_with_lock`: if its lease, which may be empty, was lost, with the votes of the extension that
/// failed.
REDLOCK_API std::exception_ptr
make_lock_error(const lease_state_ptr& held, const error_code& why, const std::string& resource);

/// Forwards cancellation from the user's signal, which is emitted on the handler's executor, to the body's strand.
struct with_lock_cancellation
{
    explicit with_lock_cancellation(asio::any_io_executor of_body) : executor{std::move(of_body)} {}

    asio::any_io_executor executor;
    std::atomic<bool> requested{false};
    asio::cancellation_signal signal{}; // Connected to the acquire first, then to the body.
};

/// What an `async_with_lock` waits for.
enum class with_lock_stage : std::uint8_t
{
    acquiring, // There is no lease.
    too_late, // The lease ended before the body began. The body won't run; the reason of the loss is awaited.
    running,  // The body runs.
    over,     // The body has ended, and so has the lease. The reason of the loss is awaited.
    ending    // The lease is being released.
};

/// The state of one `async_with_lock`, including the lease and the body. All members are used on one strand.
///
/// It is driven by the completions of the operations that it starts: the acquire, the wait for the loss, the body and
/// the release. Each of them holds a reference to it. `stage` says which of them decides next. What they call is
/// `noexcept`: a `bad_alloc` that left the function which runs the context would drop the operation and its handler.
///
/// From the end of the acquire on, it runs on the executor of the handler, while another thread may destroy the manager's
/// context. So it starts the operations of the lease without a copy of the manager's executor.
template <class Body, class Handler>
class with_lock_operation : public std::enable_shared_from_this<with_lock_operation<Body, Handler>>
{
  public:
    using result_type = body_result<Body>;
    static constexpr bool has_result = !std::is_void_v<result_type>;
    using stored_result = std::conditional_t<has_result, std::optional<result_type>, std::monostate>;
    using pointer = std::shared_ptr<with_lock_operation>;
    // Not named `allocator_type`, by which `std::allocate_shared` would pass a polymorphic allocator to the constructor.
    using associated_allocator = asio::associated_allocator_t<Handler, asio::recycling_allocator<void>>;
    using handler_executor = asio::associated_executor_t<Handler, asio::any_io_executor>;
    using working_executor = std::decay_t<
        typename asio::prefer_result<handler_executor, asio::execution::outstanding_work_t::tracked_t>::type>;

    with_lock_operation(manager_handle_ptr handle, Body body, Handler handler)
        : handle_{std::move(handle)},
          allocator_{asio::get_associated_allocator(handler, asio::recycling_allocator<void>{})},
          handlers_work_{asio::prefer(
              asio::get_associated_executor(handler, executor_of(handle_)),
              asio::execution::outstanding_work.tracked)},
          executor_{make_body_executor(
              asio::get_associated_executor(handler, executor_of(handle_)), executor_of(handle_))},
          cancellation_{std::make_shared<with_lock_cancellation>(executor_)},
          body_{std::move(body)},
          handler_{std::move(handler)}
    {
    }

    static void start(pointer self, std::string resource, keep_options options, report* out)
    {
        with_lock_operation& op = *self;
        auto slot = asio::get_associated_cancellation_slot(op.handler_);
        if (slot.is_connected())
        {
            slot.assign(
                // noexcept: a strand that had no memory to be scheduled runs nothing any more (Boost 1.81).
                [weak = std::weak_ptr{op.cancellation_}](asio::cancellation_type type) noexcept
                {
                    const auto shared = weak.lock();
                    if (shared && type != asio::cancellation_type::none)
                    {
                        shared->requested = true;
                        asio::post(
                            shared->executor, [shared, type]() noexcept { shared->signal.emit(type); });
                    }
                });
        }
        // `self` is moved into the handler, which may complete on another thread before the next call returns.
        const manager_handle_ptr handle = op.handle_;
        op.resource_ = resource;
        auto acquired = [self = std::move(self)](std::exception_ptr thrown, lease held) mutable
        { on_acquired(std::move(self), std::move(thrown), std::move(held)); };
        auto done =
            type_erase<void(std::exception_ptr, lease)>(op.listening(std::move(acquired)), op.executor_);
        start_acquire_kept(handle, std::move(resource), options, out, std::move(done));
    }

  private:
    // A scoped enumeration inside of the template shadows global names of the user for g++ -Wshadow.
    using stage = with_lock_stage;

    /// Makes the exception of an error of `async_with_lock` itself. The body may have moved the lease elsewhere.
    std::exception_ptr failure(const error_code& error) const noexcept
    {
        const bool is_own = lease_.held_.get() == acquired_;
        return make_lock_error(is_own ? lease_.held_ : lease_state_ptr{}, error, resource_);
    }

    /// Binds a handler to the operation's strand and allocator.
    template <class Function>
    auto own(Function function) const
    {
        return asio::bind_executor(executor_, asio::bind_allocator(allocator_, std::move(function)));
    }
    /// Like `own`, and connects the handler to the cancellation signal.
    template <class Function>
    auto listening(Function function) const
    {
        return asio::bind_cancellation_slot(cancellation_->signal.slot(), own(std::move(function)));
    }

    static void on_acquired(pointer self, std::exception_ptr thrown, lease held)
    {
        if (thrown)
        {
            self->thrown_ = std::move(thrown);
            finish(std::move(self));
            return;
        }
        self->lease_ = std::move(held);
        // A cancellation that arrived after the acquire had completed, and before the body could receive it.
        if (self->cancellation_->requested)
        {
            self->thrown_ = self->failure(asio::error::operation_aborted);
            self->give_back();
            return;
        }
        self->watch_loss();
        // The executor may have delayed this handler for longer than the validity.
        if (self->lease_.valid())
        {
            self->begin_body();
        }
        else
        {
            self->stage_ = stage::too_late;
        }
    }

    /// The handler of the wait for the loss. It is destroyed without a call if the manager's context is destroyed, while the
    /// body may run on another one: nothing extends its lease any more.
    class watch_end
    {
      public:
        explicit watch_end(pointer self) noexcept : self_{std::move(self)} {}
        watch_end(watch_end&&) noexcept = default;
        watch_end& operator=(watch_end&&) = delete;
        ~watch_end()
        {
            if (self_)
            {
                const with_lock_operation& op = *self_;
                asio::post(
                    op.own([self = std::move(self_)]() mutable { end(std::move(self), errc::closed); }));
            }
        }
        void operator()(error_code no_loss, error_code why)
        {
            end(std::move(self_), no_loss ? no_loss : why);
        }

      private:
        static void end(pointer self, error_code why)
        {
            self->on_watch_ended(why);
            on_one_ended(std::move(self));
        }

        pointer self_;
    };

    void watch_loss() noexcept
    {
        acquired_ = lease_.held_.get();
        ++pending_;
        auto ended = own(watch_end{this->shared_from_this()});
        auto handler = asio::bind_cancellation_slot(watching_.slot(), std::move(ended));
        start_wait_lost(
            lease_.held_, type_erase<void(error_code, error_code)>(std::move(handler), executor_));
    }

    void on_watch_ended(error_code why) noexcept
    {
        const bool released = why == errc::not_held;
        switch (stage_)
        {
        case stage::too_late:
            // Only a shutdown releases a lease that its body hasn't received.
            lost_ = released ? errc::closed : why;
            give_back();
            break;
        case stage::running:
            if (body_destroyed_)
            {
                thrown_ = std::make_exception_ptr(std::bad_alloc{});
                give_back();
            }
            // Otherwise the body has released it, which is no loss.
            else if (!released)
            {
                lost_ = why;
                cancellation_->signal.emit(asio::cancellation_type::terminal);
            }
            break;
        case stage::over:
            lost_ = released ? error_code{} : why;
            give_back();
            break;
        case stage::acquiring:
        case stage::ending:
            break;
        }
    }

    void begin_body() noexcept
    {
        stage_ = stage::running;
        body_end ended{this->shared_from_this()};
        // An executor that may run handlers at once: before Boost 1.83, a cancellation that co_spawn forwards later
        // doesn't check whether the body still exists (chriskohlhoff/asio#1332).
        const asio::any_io_executor at_once = asio::prefer(executor_, asio::execution::blocking.possibly);
        try
        {
            asio::co_spawn(at_once, run_body(), listening(std::move(ended)));
        }
        catch (...)
        {
            // Out of memory: the lease must not be kept without a body.
            if (!std::exchange(body_ended_, true))
            {
                thrown_ = std::current_exception();
                give_back();
            }
        }
    }

    /// The handler of the body's coroutine. Asio destroys it without a call if an operation that the body awaits, or the
    /// end of the coroutine, throws `bad_alloc` out of the function that runs the context; and with the context.
    class body_end
    {
      public:
        explicit body_end(pointer self) noexcept : self_{std::move(self)} {}
        body_end(body_end&&) noexcept = default;
        body_end& operator=(body_end&&) = delete;
        ~body_end()
        {
            if (self_ && !self_->body_ended_)
            {
                self_->on_body_destroyed();
            }
        }
        void operator()(std::exception_ptr thrown)
        {
            const pointer self = std::move(self_);
            // One that is cancelled before it could begin.
            if (!self->body_ended_)
            {
                self->on_body_ended(std::move(thrown));
            }
        }

      private:
        pointer self_;
    };

    asio::awaitable<result_type> call_body()
    {
        if constexpr (takes_lease<Body>)
        {
            return std::invoke(body_, lease_);
        }
        else
        {
            return std::invoke(body_);
        }
    }

    bool is_on_strand() const noexcept
    {
        const auto* const own = executor_.template target<asio::strand<asio::any_io_executor>>();
        return own != nullptr && own->running_in_this_thread();
    }

    /// Reports the end of the body itself, since the end of an Asio coroutine may fail (`body_end`).
    asio::awaitable<void> run_body()
    {
        std::exception_ptr thrown;
        try
        {
            asio::awaitable<result_type> work = call_body();
            if constexpr (has_result)
            {
                result_type result = co_await std::move(work);
                result_.emplace(std::move(result));
            }
            else
            {
                co_await std::move(work);
            }
        }
        catch (...)
        {
            thrown = std::current_exception();
        }
        // The last operation of the body may have resumed it on another executor, beside this strand.
        if (!is_on_strand())
        {
            co_await asio::this_coro::throw_if_cancelled(false);
            auto here = asio::bind_executor(executor_, asio::use_awaitable);
            co_await asio::dispatch(std::move(here));
        }
        on_body_ended(std::move(thrown));
    }

    /// Releases the lease in the background, which also ends the wait for the loss.
    void on_body_destroyed() noexcept
    {
        body_destroyed_ = true;
        lease_ = {};
    }

    void on_body_ended(std::exception_ptr thrown) noexcept
    {
        body_ended_ = true;
        thrown_ = std::move(thrown);
        if (lease_.held_.get() != acquired_)
        {
            // The body has moved the lease elsewhere, or exchanged it: its loss is no longer watched.
            watching_.emit(asio::cancellation_type::terminal);
        }
        // The body may notice the end of its lease before the notification arrives.
        else if (pending_ > 0 && !lease_.valid())
        {
            stage_ = stage::over;
            return;
        }
        give_back();
    }

    void give_back() noexcept
    {
        stage_ = stage::ending;
        // An exception thrown by the body itself takes precedence over the loss.
        if (lost_ && (!thrown_ || is_cancellation(thrown_)))
        {
            thrown_ = failure(lost_);
        }
        if constexpr (has_result)
        {
            if (thrown_)
            {
                result_.reset();
            }
        }
        ++pending_;
        // The result of the release is ignored: it doesn't change what the body did.
        auto released =
            own([self = this->shared_from_this()](error_code) mutable { on_one_ended(std::move(self)); });
        if (!lease_.held_)
        {
            // The body has moved it elsewhere.
            asio::post(executor_, asio::append(std::move(released), error_code{errc::not_held}));
            return;
        }
        start_release(lease_.held_, nullptr, type_erase<void(error_code)>(std::move(released), executor_));
    }

    /// Called at the end of the wait for the loss and of the release.
    static void on_one_ended(pointer self)
    {
        if (--self->pending_ == 0 && self->stage_ == stage::ending)
        {
            finish(std::move(self));
        }
    }

    static void finish(pointer self)
    {
        const auto executor = self->handlers_work_;
        const auto allocator = self->allocator_;
        auto completed = [self = std::move(self)]() mutable { complete(std::move(self)); };
        dispatch_or_terminate(
            executor, std::move(completed),
            [&](auto function) { return asio::bind_allocator(allocator, std::move(function)); });
    }

    /// Destroys the operation before the handler is called, because the handler may destroy whatever it refers to.
    static void complete(pointer self)
    {
        Handler handler = std::move(self->handler_);
        std::exception_ptr thrown = std::move(self->thrown_);
        stored_result result = std::move(self->result_);
        self.reset();
        if constexpr (!has_result)
        {
            std::move(handler)(std::move(thrown));
        }
        else if constexpr (std::default_initializable<result_type>)
        {
            std::move(handler)(std::move(thrown), result ? std::move(*result) : result_type{});
        }
        else
        {
            std::move(handler)(std::move(thrown), std::move(result));
        }
    }

    manager_handle_ptr handle_;
    associated_allocator allocator_;
    working_executor handlers_work_;
    asio::any_io_executor executor_;
    std::shared_ptr<with_lock_cancellation> cancellation_;
    Body body_;
    Handler handler_;
    lease lease_{};
    const void* acquired_ = nullptr;       // The state of its own lease, which the wait for the loss keeps.
    asio::cancellation_signal watching_{}; // Ends the wait for the loss.
    stage stage_ = stage::acquiring;
    bool body_ended_ = false;
    bool body_destroyed_ = false; // Before it ended.
    int pending_ = 0;             // Pending operations on the lease.
    error_code lost_{};
    std::string resource_{};
    std::exception_ptr thrown_{};
    [[no_unique_address]] stored_result result_{};
};

struct with_lock_initiation
{
    using executor_type = asio::any_io_executor;

    manager_handle_ptr handle;

    executor_type get_executor() const noexcept { return executor_of(handle); }

    /// Not inlined, for the same reason as `type_erase`.
    template <class Handler, class Body>
    [[gnu::noinline]] void
    operator()(Handler&& handler, std::string resource, keep_options options, report* out, Body body)
    {
        using operation = with_lock_operation<Body, std::decay_t<Handler>>;
        auto allocator = asio::get_associated_allocator(handler, asio::recycling_allocator<void>{});
        auto self = std::allocate_shared<operation>(
            typename std::allocator_traits<decltype(allocator)>::template rebind_alloc<operation>{allocator},
            handle, std::move(body), std::forward<Handler>(handler));
        operation::start(std::move(self), std::move(resource), options, out);
    }
};

} // namespace redlock::detail
