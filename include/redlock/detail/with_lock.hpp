// SPDX-License-Identifier: BSL-1.0
// The implementation of `async_with_lock`: acquire, extend, run the body and release, as one operation.
#pragma once

#include <redlock/detail/asio_1172.hpp>
#include <redlock/detail/completion.hpp>
#include <redlock/detail/handles.hpp>
#include <redlock/error.hpp>
#include <redlock/lease.hpp>
#include <redlock/options.hpp>
#include <redlock/report.hpp>

#include <boost/asio/any_io_executor.hpp>
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
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
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

/// The T of an `asio::awaitable<T>`; no member for any other type.
template <class Awaitable>
struct awaited
{
};
template <class T>
    requires(!std::is_reference_v<T>)
struct awaited<asio::awaitable<T>>
{
    using type = T;
};

/// The call of a body: with the lease if it accepts one, otherwise without arguments.
template <class Body>
inline constexpr bool takes_lease = std::invocable<Body&, lease&>;
template <class Body>
using body_call =
    std::conditional_t<takes_lease<Body>, std::invoke_result<Body&, lease&>, std::invoke_result<Body&>>;
template <class Body>
using body_result = typename awaited<typename body_call<Body>::type>::type;

/// `Body` is the type as passed: an lvalue is copied, an rvalue is moved.
template <class Body>
concept usable_body = std::constructible_from<std::decay_t<Body>, Body> &&
                      requires { typename body_result<std::decay_t<Body>>; };

/// Replaces a body that can't be used, so that the static assertion is the only error.
struct unusable_body
{
    asio::awaitable<void> operator()() const;
};

template <class T>
struct with_lock_signature
{
    using type =
        void(std::exception_ptr, std::conditional_t<std::default_initializable<T>, T, std::optional<T>>);
};
template <>
struct with_lock_signature<void>
{
    using type = void(std::exception_ptr);
};

/// True if the return value of an initiating function can be awaited.
template <class Returned>
concept is_for_co_await =
    !std::is_void_v<Returned> &&
    (
        asio::is_async_operation<Returned>::value || requires(Returned& it) { it.await_ready(); } ||
        requires(Returned& it) { it.operator co_await(); } ||
        requires(Returned& it) { operator co_await(it); });

/// Returns true if the exception is that of a cancelled operation.
inline bool is_cancellation(const std::exception_ptr& thrown)
{
    try
    {
        std::rethrow_exception(thrown);
    }
    catch (const boost::system::system_error& error)
    {
        return error.code() == asio::error::operation_aborted;
    }
    catch (...)
    {
        return false;
    }
}

/// Makes the executor of the body: a strand of the handler's executor. The system executor has threads that aren't the
/// user's, so the manager's executor takes its place.
template <class Executor>
asio::any_io_executor make_body_executor(const Executor& of_handler, const asio::any_io_executor& of_manager)
{
    if constexpr (std::is_convertible_v<Executor, asio::any_io_executor>)
    {
        const asio::any_io_executor own{of_handler};
        const asio::execution_context& context = asio::query(own, asio::execution::context);
        const asio::execution_context& system =
            asio::query(asio::system_executor{}, asio::execution::context);
        if (&context != &system)
        {
            return asio::make_strand(own);
        }
    }
    return asio::make_strand(of_manager);
}

/// Forwards cancellation from the user's signal, which is emitted on the handler's executor, to the body's strand.
struct with_lock_cancellation
{
    explicit with_lock_cancellation(asio::any_io_executor of_body) : executor{std::move(of_body)} {}

    asio::any_io_executor executor;
    std::atomic<bool> requested{false};
    asio::cancellation_signal signal{}; // Connected to the acquire first, then to the body.
};

/// The state of one `async_with_lock`, including the lease and the body. All members are used on one strand.
///
/// It is driven by the completions of the operations that it starts: the acquire, the wait for the loss, the body and
/// the release. Each of them holds a reference to it. `stage` says which of them decides next.
template <class Body, class Handler>
class with_lock_operation : public std::enable_shared_from_this<with_lock_operation<Body, Handler>>
{
  public:
    using result_type = body_result<Body>;
    static constexpr bool has_result = !std::is_void_v<result_type>;
    using stored_result = std::conditional_t<has_result, std::optional<result_type>, std::monostate>;
    using pointer = std::shared_ptr<with_lock_operation>;
    using allocator_type = asio::associated_allocator_t<Handler, asio::recycling_allocator<void>>;
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
                [weak = std::weak_ptr{op.cancellation_}](asio::cancellation_type type)
                {
                    const auto shared = weak.lock();
                    if (shared && type != asio::cancellation_type::none)
                    {
                        shared->requested = true;
                        asio::post(shared->executor, [shared, type] { shared->signal.emit(type); });
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
    enum class stage : std::uint8_t
    {
        acquiring, // There is no lease.
        too_late, // The lease ended before the body began. The body won't run; the reason of the loss is awaited.
        running, // The body runs.
        over,    // The body has ended, and so has the lease. The reason of the loss is awaited.
        ending   // The lease is being released.
    };

    /// Makes the exception of an error of `async_with_lock` itself.
    std::exception_ptr failure(const error_code& error) const
    {
        return std::make_exception_ptr(lock_error{error, resource_});
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

    void watch_loss()
    {
        ++pending_;
        auto ended = [self = this->shared_from_this()](error_code no_loss, error_code why) mutable
        {
            self->on_watch_ended(no_loss ? no_loss : why);
            on_one_ended(std::move(self));
        };
        lease_.async_wait_lost(asio::bind_cancellation_slot(watching_.slot(), own(std::move(ended))));
    }

    void on_watch_ended(error_code why)
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
            // Otherwise the body has released it, which is no loss.
            if (!released)
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

    void begin_body()
    {
        stage_ = stage::running;
        auto ended = [self = this->shared_from_this()](std::exception_ptr thrown)
        { self->on_body_ended(std::move(thrown)); };
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
            thrown_ = std::current_exception();
            give_back();
        }
    }

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

    asio::awaitable<void> run_body()
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

    void on_body_ended(std::exception_ptr thrown)
    {
        thrown_ = std::move(thrown);
        if (lease_.owner_id().empty())
        {
            // The body has moved the lease elsewhere: its loss is no longer watched.
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

    void give_back()
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
        auto released = [self = this->shared_from_this()](error_code) mutable
        { on_one_ended(std::move(self)); };
        lease_.async_release(own(std::move(released)));
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
        asio::dispatch(executor, asio::bind_allocator(allocator, std::move(completed)));
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
    allocator_type allocator_;
    working_executor handlers_work_;
    asio::any_io_executor executor_;
    std::shared_ptr<with_lock_cancellation> cancellation_;
    Body body_;
    Handler handler_;
    lease lease_{};
    asio::cancellation_signal watching_{}; // Ends the wait for the loss.
    stage stage_ = stage::acquiring;
    int pending_ = 0; // Pending operations on the lease.
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
