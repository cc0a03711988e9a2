// SPDX-License-Identifier: BSL-1.0
// A resource that is held.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/completion.hpp>
#include <redlock/detail/gate_ptr.hpp>
#include <redlock/error.hpp>
#include <redlock/report.hpp>

#include <boost/asio/append.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>

#include <chrono>
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
start_extend(holding_ptr held, std::chrono::milliseconds ttl, report* out, status_completion done);
REDLOCK_API void start_release(holding_ptr held, report* out, status_completion done);
REDLOCK_API void start_wait_lost(holding_ptr held, loss_completion done);

/// What the operations of a lease begin with.
struct lease_initiation
{
    using executor_type = asio::any_io_executor;

    holding_ptr held;

    executor_type get_executor() const noexcept { return executor_of(held); }

    /// An empty lease has no manager to lead this through: it ends on the handler's own executor.
    template <class Handler, class... Nothing>
    void refuse_empty(Handler&& handler, Nothing... nothing) const
    {
        const error_code result = errc::not_held;
        auto executor = asio::get_associated_executor(handler, get_executor());
        asio::post(executor, asio::append(std::forward<Handler>(handler), result, nothing...));
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
        auto done = erase<void(error_code)>(std::forward<Handler>(handler), get_executor());
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
        auto done = erase<void(error_code)>(std::forward<Handler>(handler), get_executor());
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
        auto done = erase<void(error_code, error_code)>(std::forward<Handler>(handler), get_executor());
        start_wait_lost(std::move(held), std::move(done));
    }
};

} // namespace detail

/// A resource that is held, until it is released, its validity ends, or its masters lose it.
///
/// Move-only; empty when default-constructed or moved from. It stays usable, and does nothing, after its
/// manager or the execution context has gone.
///
/// Thread safety: the functions that say something are safe on one lease from several threads at once, the
/// others need the care that any object needs.
class REDLOCK_API lease
{
  public:
    /// Empty.
    lease() noexcept = default;
    lease(lease&& other) noexcept = default;
    /// Gives back what this one held, like the destructor.
    lease& operator=(lease&& other) noexcept;
    /// Gives the resource back if that hasn't been done: in the background, at best. `async_release` is the
    /// one that tells how it went. Never throws, never blocks, on any thread.
    ~lease();

    /// Whether it was acquired and not released since. It may have lapsed meanwhile: `valid()`.
    explicit operator bool() const noexcept;
    /// The name that is locked, without the key prefix; empty for an empty lease. Good as long as this lease
    /// is.
    std::string_view resource() const noexcept;
    /// The random value of the key on the masters; empty for an empty lease. Good as long as this lease is.
    std::string_view owner_id() const noexcept;
    /// Until when the masters let nobody else in, by `redlock::clock`. It stands after a loss that was declared
    /// ahead of it: by then whatever still works on the resource must have stopped. The beginning of time once
    /// the lease is released, or once its masters said that the key isn't ours.
    clock::time_point valid_until() const noexcept;
    /// What is left of the validity, read anew from the clock; never negative, and none once it is lost.
    std::chrono::nanoseconds remaining() const noexcept;
    /// Whether any validity is left, read anew from the clock. True means: as long as clocks drift apart by
    /// no more than `drift_factor` and this process isn't paused between this look and the use of its result,
    /// nobody else holds the resource. For protection beyond that the resource itself must check something.
    bool valid() const noexcept;

    /// Asks all masters to keep the key for a new ttl from now on; one round, no retries.
    ///
    /// - Handler signature: `void(redlock::error_code)`.
    /// - Executor: the handler's associated executor, else the manager's; never inside of this call.
    /// - Cancellation: all three types; the lease then keeps the validity that it has, or the new one.
    /// - Errors: `lease_lost` (too many masters say that the key isn't ours: the lease is no longer valid),
    ///   `no_quorum` (too many gave no answer: what was valid stays so), `validity_exhausted` (the answers
    ///   came after the validity that they'd have given, or that it had), `not_held`, `invalid_ttl`,
    ///   `closed`, `operation_aborted`.
    /// - Lifetimes: the lease may be moved while this runs; if it goes, this ends with `not_held`.
    /// - Thread safety: may be called on any thread. Extensions of one lease happen one after the other.
    ///
    /// `ttl` is in whole milliseconds, in the same range as for an acquire. `valid_until` becomes the later
    /// of what it was and what the extension gave, counted from before its own sending: ttl − elapsed − drift
    /// (Redis documentation, "Distributed locks"). The ttl of a key is never shortened. A master that lost
    /// the key, or never had it, gets it again once a quorum has confirmed this same extension. A kept lease is
    /// extended without this; its next extension asks for the ttl that it is kept with.
    template <boost::asio::completion_token_for<void(error_code)> Token = boost::asio::deferred_t>
    auto async_extend(std::chrono::milliseconds ttl, Token&& token = Token{})
    {
        return extend_into(ttl, nullptr, std::forward<Token>(token));
    }

    /// The same; `out` is written just before completion and must live until then.
    template <boost::asio::completion_token_for<void(error_code)> Token = boost::asio::deferred_t>
    auto async_extend(std::chrono::milliseconds ttl, report& out, Token&& token = Token{})
    {
        return extend_into(ttl, &out, std::forward<Token>(token));
    }

    /// Gives the resource back on all masters, each of which deletes the key if it is ours.
    ///
    /// - Handler signature: `void(redlock::error_code)`.
    /// - Executor: the handler's associated executor, else the manager's; never inside of this call.
    /// - Cancellation: all three types; it only stops waiting, the release goes on in the background.
    /// - Errors: `unconfirmed` (no quorum confirmed it within the node timeout; what is left is released when
    ///   its master is back, or lapses with its ttl), `not_held` (empty, or released before), `closed`,
    ///   `operation_aborted`. A key that was gone already is a success; `report::already_gone` tells.
    /// - Lifetimes: the lease may be moved, or go, while this runs.
    /// - Thread safety: may be called on any thread. `valid()` is false before the first byte is sent.
    template <boost::asio::completion_token_for<void(error_code)> Token = boost::asio::deferred_t>
    auto async_release(Token&& token = Token{})
    {
        return release_into(nullptr, std::forward<Token>(token));
    }

    /// The same; `out` is written just before completion and must live until then.
    template <boost::asio::completion_token_for<void(error_code)> Token = boost::asio::deferred_t>
    auto async_release(report& out, Token&& token = Token{})
    {
        return release_into(&out, std::forward<Token>(token));
    }

    /// Waits until the lease is lost: until it can't be shown to be valid any more, for good. A kept lease is lost
    /// `stop_margin` before its validity ends, at the end of `max_hold`, and when a quorum says that the key
    /// isn't ours; one that nobody keeps when its validity ends.
    ///
    /// - Handler signature: `void(redlock::error_code, redlock::error_code why)`. A loss is what was waited for, so
    ///   there is no error then, and `why` says what for: `lease_lost`, `hold_limit_reached`, or `closed` when the
    ///   manager is shut down. Beside other work this therefore ends with whichever comes first, by the operators of
    ///   `boost/asio/experimental/awaitable_operators.hpp`:
    ///   ```cpp
    ///   auto first = co_await (work() || lease.async_wait_lost(asio::use_awaitable));
    ///   ```
    /// - Executor: the handler's associated executor, else the manager's; never inside of this call.
    /// - Cancellation: all three types.
    /// - Errors: `not_held` (it was released, or is empty: no loss), `operation_aborted` (the manager has gone, or
    ///   this was cancelled), `closed`.
    /// - Lifetimes: the lease may be moved while this runs; if it goes, this ends with `not_held`.
    /// - Thread safety: may be called on any thread, any number of times.
    template <boost::asio::completion_token_for<void(error_code, error_code)> Token = boost::asio::deferred_t>
    auto async_wait_lost(Token&& token = Token{})
    {
        return boost::asio::async_initiate<Token, void(error_code, error_code)>(
            detail::wait_lost_initiation{{held_}}, token);
    }

    /// For the manager.
    explicit lease(detail::holding_ptr held) noexcept : held_{std::move(held)} {}

  private:
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

    detail::holding_ptr held_;
};

} // namespace redlock
