// SPDX-License-Identifier: BSL-1.0
// A body of work that runs while a resource is held: acquire, keep, run, release, as one operation.
#pragma once

#include <redlock/detail/completion.hpp>
#include <redlock/detail/gate_ptr.hpp>
#include <redlock/error.hpp>
#include <redlock/lease.hpp>
#include <redlock/options.hpp>
#include <redlock/report.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/prefer.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace redlock::detail
{

REDLOCK_API void start_acquire_kept(
    const gate_ptr& gate, std::string resource, keep_options options, report* out,
    completion<void(error_code, lease)> done);

/// What a body returns, taken out of its awaitable.
template <class Awaitable>
struct awaited;
template <class T>
struct awaited<asio::awaitable<T>>
{
    using type = T;
};
template <class Body>
using body_result = typename awaited<std::invoke_result_t<Body&, lease&>>::type;

template <class T>
struct with_lock_signature
{
    using type = void(std::exception_ptr, T);
};
template <>
struct with_lock_signature<void>
{
    using type = void(std::exception_ptr);
};

/// Whether an exception is that of a cancelled operation.
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

/// The operation. All of it runs on the handler's executor; the lease, the signal and the body live in here.
template <class Body, class Handler>
class with_lock_operation : public std::enable_shared_from_this<with_lock_operation<Body, Handler>>
{
  public:
    using result_type = body_result<Body>;
    static constexpr bool has_result = !std::is_void_v<result_type>;
    using stored_result = std::conditional_t<has_result, std::optional<result_type>, std::monostate>;

    with_lock_operation(gate_ptr gate, Body body, Handler handler)
        : gate_{std::move(gate)},
          executor_{asio::get_associated_executor(handler, executor_of(gate_))},
          body_{std::move(body)},
          handler_{std::move(handler)}
    {
    }

    void start(std::string resource, keep_options options, report* out)
    {
        auto slot = asio::get_associated_cancellation_slot(handler_);
        if (slot.is_connected())
        {
            // Emitted by the user, on this executor: first the acquire listens, then the body.
            slot.assign(
                [weak = this->weak_from_this()](asio::cancellation_type type)
                {
                    if (const auto self = weak.lock())
                    {
                        self->cancelled_ = self->cancelled_ || type != asio::cancellation_type::none;
                        // Not from outside of the executor: see where the body begins.
                        asio::dispatch(self->executor_, [self, type] { self->signal_.emit(type); });
                    }
                });
        }
        auto acquired = [self = this->shared_from_this()](error_code error, lease held)
        { self->on_acquired(error, std::move(held)); };
        auto listening = asio::bind_cancellation_slot(signal_.slot(), std::move(acquired));
        auto done =
            erase<void(error_code, lease)>(asio::bind_executor(executor_, std::move(listening)), executor_);
        start_acquire_kept(gate_, std::move(resource), options, out, std::move(done));
    }

  private:
    void on_acquired(error_code error, lease held)
    {
        if (error)
        {
            finish(std::make_exception_ptr(system_error{error}));
            return;
        }
        lease_ = std::move(held);
        // What came between the acquire's end and now: too late for the acquire, too soon for the body.
        if (cancelled_)
        {
            thrown_ = std::make_exception_ptr(system_error{asio::error::operation_aborted});
            give_back();
            return;
        }
        auto lost = [self = this->shared_from_this()](error_code no_loss, error_code why)
        {
            // Given back, perhaps by the body itself: no loss.
            if (no_loss != errc::not_held)
            {
                self->on_lost(no_loss ? no_loss : why);
            }
        };
        lease_.async_wait_lost(asio::bind_executor(executor_, lost));
        running_ = true;
        auto ended = [self = this->shared_from_this()](std::exception_ptr thrown, auto... result)
        { self->on_body_ended(std::move(thrown), std::move(result)...); };
        auto listening = asio::bind_cancellation_slot(signal_.slot(), std::move(ended));
        // On one that runs things at once where it can: before Boost 1.83 a cancellation that co_spawn passes on later
        // doesn't look whether the body is still there (asio#1332).
        const asio::any_io_executor at_once = asio::prefer(executor_, asio::execution::blocking.possibly);
        try
        {
            asio::co_spawn(at_once, begin_body(), asio::bind_executor(executor_, std::move(listening)));
        }
        catch (...)
        {
            // There was no memory to begin with: the lease mustn't be kept for nobody.
            running_ = false;
            thrown_ = std::current_exception();
            give_back();
        }
    }

    /// However much time the executor has let pass by now.
    asio::awaitable<result_type> begin_body()
    {
        if (!lease_.valid())
        {
            throw system_error{errc::lease_lost};
        }
        co_return co_await body_(lease_);
    }

    void on_lost(error_code why)
    {
        // By the body's end the lease is given back: nothing to tell any more.
        if (running_)
        {
            lost_ = why;
            signal_.emit(asio::cancellation_type::terminal);
        }
    }

    template <class... Result>
    void on_body_ended(std::exception_ptr thrown, Result... result)
    {
        running_ = false;
        if constexpr (has_result)
        {
            result_.emplace(std::move(result)...);
        }
        // An exception of the body's own is worth more than the news of the loss.
        if (lost_ && (!thrown || is_cancellation(thrown)))
        {
            thrown = std::make_exception_ptr(system_error{lost_});
        }
        thrown_ = std::move(thrown);
        give_back();
    }

    void give_back()
    {
        // Whether the release is confirmed or not changes nothing of what the body did.
        auto released = [self = this->shared_from_this()](error_code) { self->finish(self->thrown_); };
        lease_.async_release(asio::bind_executor(executor_, std::move(released)));
    }

    void finish(std::exception_ptr thrown)
    {
        // The handler may destroy what this operation was given; nothing of it is touched after the call.
        Handler handler = std::move(handler_);
        if constexpr (has_result)
        {
            stored_result result = std::move(result_);
            std::move(handler)(thrown, result ? std::move(*result) : result_type{});
        }
        else
        {
            std::move(handler)(thrown);
        }
    }

    gate_ptr gate_;
    asio::any_io_executor executor_;
    Body body_;
    Handler handler_;
    asio::cancellation_signal signal_;
    lease lease_;
    bool running_ = false;
    bool cancelled_ = false;
    error_code lost_;
    std::exception_ptr thrown_;
    [[no_unique_address]] stored_result result_;
};

struct with_lock_initiation
{
    using executor_type = asio::any_io_executor;

    gate_ptr gate;

    executor_type get_executor() const noexcept { return executor_of(gate); }

    template <class Handler, class Body>
    void operator()(Handler&& handler, std::string resource, keep_options options, report* out, Body body)
    {
        using operation = with_lock_operation<Body, std::decay_t<Handler>>;
        auto self = std::make_shared<operation>(gate, std::move(body), std::forward<Handler>(handler));
        self->start(std::move(resource), options, out);
    }
};

} // namespace redlock::detail
