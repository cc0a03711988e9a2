// SPDX-License-Identifier: BSL-1.0
// The handle of a held resource.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/completion.hpp>
#include <redlock/detail/handles.hpp>
#include <redlock/error.hpp>
#include <redlock/report.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/system_executor.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace redlock
{

namespace detail
{

using status_completion = completion<void(error_code)>;
using loss_completion = completion<void(error_code, error_code)>;

REDLOCK_API void
start_extend(lease_state_ptr held, std::chrono::milliseconds ttl, report* out, status_completion done);
REDLOCK_API void start_release(lease_state_ptr held, report* out, status_completion done);
REDLOCK_API void start_wait_lost(lease_state_ptr held, loss_completion done);

template <class Body, class Handler>
class with_lock_operation;

/// The common part of the initiations of a lease's operations.
struct lease_initiation
{
    using executor_type = asio::any_io_executor;

    lease_state_ptr held;

    executor_type get_executor() const noexcept { return executor_of(held); }

    /// Completes with `errc::not_held` on the handler's executor: an empty lease has no manager.
    template <class Handler, class... Nothing>
    void refuse_empty(Handler&& handler, Nothing... nothing) const
    {
        const error_code result = errc::not_held;
        auto executor = asio::get_associated_executor(handler, get_executor());
        if constexpr (std::is_convertible_v<decltype(executor), asio::any_io_executor>)
        {
            asio::post(executor, asio::append(std::forward<Handler>(handler), result, nothing...));
        }
        else // An `any_completion_executor`, which may run what is posted at once.
        {
            auto refused = asio::append(std::forward<Handler>(handler), result, nothing...);
            auto work = asio::prefer(executor, asio::execution::outstanding_work.tracked);
            asio::post(
                asio::system_executor{},
                [work, refused = std::move(refused)]() mutable { asio::dispatch(work, std::move(refused)); });
        }
    }

    static void describe_empty(operation what, report* out)
    {
        if (out != nullptr)
        {
            *out = report{};
            out->operation = what;
            out->result = errc::not_held;
        }
    }
};

struct extend_initiation : lease_initiation
{
    template <class Handler>
    void operator()(Handler&& handler, std::chrono::milliseconds ttl, report* out)
    {
        if (!held)
        {
            describe_empty(operation::extend, out);
            refuse_empty(std::forward<Handler>(handler));
            return;
        }
        auto done = type_erase<void(error_code)>(std::forward<Handler>(handler), get_executor());
        start_extend(std::move(held), ttl, out, std::move(done));
    }
};

struct release_initiation : lease_initiation
{
    template <class Handler>
    void operator()(Handler&& handler, report* out)
    {
        if (!held)
        {
            describe_empty(operation::release, out);
            refuse_empty(std::forward<Handler>(handler));
            return;
        }
        auto done = type_erase<void(error_code)>(std::forward<Handler>(handler), get_executor());
        start_release(std::move(held), out, std::move(done));
    }
};

struct wait_lost_initiation : lease_initiation
{
    template <class Handler>
    void operator()(Handler&& handler)
    {
        if (!held)
        {
            refuse_empty(std::forward<Handler>(handler), error_code{});
            return;
        }
        auto done = type_erase<void(error_code, error_code)>(std::forward<Handler>(handler), get_executor());
        start_wait_lost(std::move(held), std::move(done));
    }
};

} // namespace detail

/// A handle to a resource that was acquired. Releases it on destruction.
///
/// The lease is valid until it is released, its validity ends, or it is lost earlier: see `async_wait_lost`. Leases are
/// move-only; a default-constructed or moved-from lease is empty. A lease may outlive its manager and the execution
/// context: it can then still be read, and its operations fail. The operations of a lease without a manager's context, such
/// as an empty one, call handlers without an executor of their own on the system executor, on a thread of Asio's.
///
/// Thread safety: the const member functions may be called concurrently on the same lease, and the asynchronous
/// operations may be started on any thread, also while another thread destroys the manager, or the execution context if the
/// handler doesn't run on it. Moves and destruction require external synchronisation.
class [[nodiscard]] REDLOCK_API lease
{
  public:
    /// Constructs an empty lease.
    lease() noexcept = default;
    lease(lease&& other) noexcept = default;
    /// Releases the current resource as the destructor does, and takes over that of `other`.
    lease& operator=(lease&& other) noexcept;
    /// Releases the resource in the background if it hasn't been released. Never blocks or throws. Use
    /// `async_release` to learn the result. If the manager has been shut down or destroyed, the ttl frees the keys.
    /// Thread safety: a lease may be destroyed on any thread.
    ~lease();

    /// Returns true if the lease was acquired and hasn't been released. Its validity may have ended: see `valid()`.
    explicit operator bool() const noexcept;
    /// Returns the name of the resource without the key prefix, or an empty string for an empty lease. The view is
    /// valid for the lifetime of this lease.
    std::string_view resource() const noexcept;
    /// Returns the owner id, the random value of the key on the masters (32 hexadecimal digits), or an empty string
    /// for an empty lease. The view is valid for the lifetime of this lease.
    std::string_view owner_id() const noexcept;
    /// Returns the fencing token, with which a resource can refuse the late writes of an earlier holder; empty in plain mode
    /// and for an empty lease.
    ///
    /// From 1 to 2^53 − 1. No two leases of a resource have the same one, and an acquire that begins after another lease was
    /// handed out gets a larger one (docs/safety.md names the conditions). Unchanged by extensions.
    std::optional<std::uint64_t> fencing_token() const noexcept;
    /// Returns the end of the validity, before which no other client can acquire the resource.
    ///
    /// A kept lease may be declared lost earlier; the value is unchanged then, and is the time by which the work must
    /// have stopped. Returns the epoch of the clock if the lease is empty or was released, or if too many
    /// masters reported that the key is missing or has another owner.
    clock::time_point valid_until() const noexcept;
    /// Returns the remaining validity, read from the clock at each call. Zero if the lease is lost; never negative.
    std::chrono::nanoseconds remaining() const noexcept;
    /// Returns `remaining() > 0`, read from the clock at each call.
    ///
    /// If true, no other client holds the resource, provided that clocks drift apart by at most
    /// `config::drift_factor` and that this process isn't paused between the call and the use of its result. Only a
    /// check in the resource itself protects against such pauses.
    bool valid() const noexcept;

    /// Extends the lease by a new ttl, counted from now. One round, no retries.
    ///
    /// - Handler signature: `void(redlock::error_code)`.
    /// - Executor: the handler's associated executor, by default the manager's. The handler is never called inside the
    ///   initiating function.
    /// - Cancellation: all types. The lease keeps its validity, or gets the new one.
    /// - Errors: `lease_lost` (the validity has ended, or too many masters report that the key is missing or has
    ///   another owner: the lease is lost), `hold_limit_reached` (a kept lease was lost before; it may also have been
    ///   lost with `lease_lost` or `closed`), `no_quorum` (too few masters confirmed it, and the lease isn't lost: the
    ///   validity is unchanged), `validity_exhausted` (confirmed too late to be of use: the validity is unchanged),
    ///   `not_held`, `invalid_ttl`, `too_many_operations`, `closed`, `operation_aborted`.
    /// - Lifetimes: the lease may be moved during the operation. If it is destroyed, the operation ends with
    ///   `not_held`.
    /// - Thread safety: may be called on any thread. Extensions of one lease run one after the other.
    ///
    /// `ttl` is in whole milliseconds, with the same range as `acquire_options::ttl`. `valid_until()` becomes the
    /// later of its old value and T1 + ttl − drift, where T1 is the time before the first byte was sent (Redis
    /// documentation, "Distributed locks"). An extension never shortens the ttl of a key. A master without the key is
    /// sent it again once a quorum has confirmed the extension. A kept lease is extended automatically; its next
    /// extension uses `keep_options::ttl` again.
    template <boost::asio::completion_token_for<void(error_code)> Token = boost::asio::deferred_t>
    auto async_extend(std::chrono::milliseconds ttl, Token&& token = Token{})
    {
        return extend_into(ttl, nullptr, std::forward<Token>(token));
    }

    /// \overload
    ///
    /// `out` receives the report immediately before completion, and must live until then.
    template <boost::asio::completion_token_for<void(error_code)> Token = boost::asio::deferred_t>
    auto async_extend(std::chrono::milliseconds ttl, report& out, Token&& token = Token{})
    {
        return extend_into(ttl, &out, std::forward<Token>(token));
    }

    /// Releases the resource: each master deletes the key if its value is this lease's owner id.
    ///
    /// - Handler signature: `void(redlock::error_code)`.
    /// - Executor: the handler's associated executor, by default the manager's. The handler is never called inside the
    ///   initiating function.
    /// - Cancellation: all types. Cancels the wait only; the release continues in the background.
    /// - Errors: `unconfirmed` (no quorum confirmed the release within the node timeout, or within two if the
    ///   resource has two queues; the remaining keys are released when their masters are connected again, or expire),
    ///   `not_held` (empty, or released before), `closed`, `operation_aborted`. A key that was already missing, or has
    ///   another owner, counts as released: see `report::already_gone()`.
    ///   After the work, `unconfirmed` is a line of the log, not a failure: pass `asio::as_tuple(asio::deferred)`, because
    ///   a plain `co_await` throws it.
    /// - Lifetimes: the lease may be moved or destroyed during the operation.
    /// - Thread safety: may be called on any thread. `valid()` returns false before the first byte is sent.
    template <boost::asio::completion_token_for<void(error_code)> Token = boost::asio::deferred_t>
    auto async_release(Token&& token = Token{})
    {
        return release_into(nullptr, std::forward<Token>(token));
    }

    /// \overload
    ///
    /// `out` receives the report immediately before completion, and must live until then.
    template <boost::asio::completion_token_for<void(error_code)> Token = boost::asio::deferred_t>
    auto async_release(report& out, Token&& token = Token{})
    {
        return release_into(&out, std::forward<Token>(token));
    }

    /// Waits until the lease is lost, which is final.
    ///
    /// A kept lease is lost `stop_margin` before its validity ends, when `max_hold` is over, or as soon as too many
    /// masters report that the key is missing or has another owner. Any other lease is lost when its validity ends, or
    /// when too many masters report this to an `async_extend`.
    ///
    /// - Handler signature: `void(redlock::error_code, redlock::error_code why)`. A loss completes without an
    ///   error, and `why` is its reason: `lease_lost`, `hold_limit_reached`, or `closed` if the manager is shut down.
    ///   A parallel group combines the operation with the work: the first one to end, by success or by an exception,
    ///   cancels the other. Asio's awaitable operators would hide an exception of the work until the loss.
    ///   `lock_manager::async_with_lock` cancels the work at a loss by itself.
    ///   ```cpp
    ///   const auto executor = co_await asio::this_coro::executor;
    ///   auto both = asio::experimental::make_parallel_group(
    ///       asio::co_spawn(executor, std::move(work), asio::deferred), lease.async_wait_lost(asio::deferred));
    ///   const auto [order, thrown, no_loss, why] =
    ///       co_await both.async_wait(asio::experimental::wait_for_one{}, asio::use_awaitable);
    ///   ```
    /// - Executor: the handler's associated executor, by default the manager's. The handler is never called inside the
    ///   initiating function.
    /// - Cancellation: all types.
    /// - Errors: `not_held` (empty or released, by its holder or already by a shutdown, which isn't a loss), `closed`
    ///   (the manager is shut down, and the lease isn't kept; or it was destroyed before the call), `operation_aborted`
    ///   (cancelled, or the manager was destroyed during the operation).
    /// - Lifetimes: the lease may be moved during the operation. If it is destroyed, the operation ends with
    ///   `not_held`.
    /// - Thread safety: may be called on any thread, any number of times.
    template <boost::asio::completion_token_for<void(error_code, error_code)> Token = boost::asio::deferred_t>
    auto async_wait_lost(Token&& token = Token{})
    {
        return boost::asio::async_initiate<Token, void(error_code, error_code)>(
            detail::wait_lost_initiation{{held_}}, token);
    }

  private:
    friend struct detail::access;
    template <class Body, class Handler>
    friend class detail::with_lock_operation;

    explicit lease(detail::lease_state_ptr held) noexcept : held_{std::move(held)} {}

    template <class Token>
    auto extend_into(std::chrono::milliseconds ttl, report* out, Token&& token)
    {
        return boost::asio::async_initiate<Token, void(error_code)>(
            detail::extend_initiation{{held_}}, token, ttl, out);
    }

    template <class Token>
    auto release_into(report* out, Token&& token)
    {
        return boost::asio::async_initiate<Token, void(error_code)>(
            detail::release_initiation{{held_}}, token, out);
    }

    detail::lease_state_ptr held_;
};

} // namespace redlock
