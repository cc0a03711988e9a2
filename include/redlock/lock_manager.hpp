// SPDX-License-Identifier: BSL-1.0
// The distributed lock manager: acquires leases on a majority of N independent masters.
#pragma once

#include <redlock/config.hpp>
#include <redlock/detail/completion.hpp>
#include <redlock/detail/gate_ptr.hpp>
#include <redlock/detail/with_lock.hpp>
#include <redlock/error.hpp>
#include <redlock/examination.hpp>
#include <redlock/inspection.hpp>
#include <redlock/lease.hpp>
#include <redlock/options.hpp>
#include <redlock/report.hpp>
#include <redlock/with_report.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/execution_context.hpp>

#include <chrono>
#include <concepts>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace redlock
{

namespace detail
{

/// An acquire completes with an error code, or with an exception that has the report as its text.
using lease_completion =
    std::variant<completion<void(error_code, lease)>, completion<void(std::exception_ptr, lease)>>;
using inspection_completion = completion<void(error_code, inspection)>;
using examination_completion = completion<void(error_code, std::vector<master_examination>)>;

REDLOCK_API void start_acquire(
    const gate_ptr& gate, std::string resource, acquire_options options, report* out, lease_completion done);
REDLOCK_API void start_try_acquire(
    const gate_ptr& gate, std::string resource, try_options options, report* out, lease_completion done);
REDLOCK_API void start_inspect(const gate_ptr& gate, std::string resource, inspection_completion done);
REDLOCK_API void start_examine(const gate_ptr& gate, examination_completion done);
REDLOCK_API void start_shutdown(const gate_ptr& gate, status_completion done);

/// An executor, given as such or by the execution context that it belongs to.
class executor_source
{
  public:
    template <class Executor>
        requires std::convertible_to<const Executor&, asio::any_io_executor>
    executor_source(const Executor& executor) : executor_{executor}
    {
    }
    template <class ExecutionContext>
        requires std::convertible_to<ExecutionContext&, asio::execution_context&>
    executor_source(ExecutionContext& context) : executor_{context.get_executor()}
    {
    }

    const asio::any_io_executor& get() const noexcept { return executor_; }

  private:
    asio::any_io_executor executor_;
};

/// What the operations of a manager begin with.
struct manager_initiation
{
    using executor_type = asio::any_io_executor;

    gate_ptr gate;

    executor_type get_executor() const noexcept { return executor_of(gate); }
};

/// `Failure` is an `error_code` or a `std::exception_ptr`.
template <class Failure>
struct acquire_initiation : manager_initiation
{
    acquire_initiation<std::exception_ptr> throwing() const { return {{gate}}; }

    template <class Handler>
    void operator()(Handler&& handler, std::string resource, acquire_options options, report* out)
    {
        auto done = erase<void(Failure, lease)>(std::forward<Handler>(handler), get_executor());
        start_acquire(gate, std::move(resource), options, out, std::move(done));
    }

    template <class Handler>
    void operator()(Handler&& handler, std::string resource, try_options options, report* out)
    {
        auto done = erase<void(Failure, lease)>(std::forward<Handler>(handler), get_executor());
        start_try_acquire(gate, std::move(resource), options, out, std::move(done));
    }

    template <class Handler>
    void operator()(Handler&& handler, std::string resource, keep_options options, report* out)
    {
        auto done = erase<void(Failure, lease)>(std::forward<Handler>(handler), get_executor());
        start_acquire_kept(gate, std::move(resource), options, out, std::move(done));
    }
};

struct inspect_initiation : manager_initiation
{
    template <class Handler>
    void operator()(Handler&& handler, std::string resource)
    {
        auto done = erase<void(error_code, inspection)>(std::forward<Handler>(handler), get_executor());
        start_inspect(gate, std::move(resource), std::move(done));
    }
};

struct examine_initiation : manager_initiation
{
    template <class Handler>
    void operator()(Handler&& handler)
    {
        using result = void(error_code, std::vector<master_examination>);
        start_examine(gate, erase<result>(std::forward<Handler>(handler), get_executor()));
    }
};

struct shutdown_initiation : manager_initiation
{
    template <class Handler>
    void operator()(Handler&& handler)
    {
        auto done = erase<void(error_code)>(std::forward<Handler>(handler), get_executor());
        start_shutdown(gate, std::move(done));
    }
};

} // namespace detail

/// The token of an acquire that is given none: deferred, and `co_await` throws a `lock_error`.
using default_acquire_token = with_report_t<boost::asio::deferred_t>;

/// A distributed lock manager over N independent masters (Redlock; Redis documentation, "Distributed locks").
///
/// It connects as soon as its executor runs, and keeps one connection to each master. Everything that it does
/// runs on a strand of its own, no user code ever does.
///
/// Thread safety: all functions may be called on any thread at any time but the destructor.
class REDLOCK_API lock_manager
{
  public:
    using executor_type = boost::asio::any_io_executor;

    /// On an executor, or on that of an `io_context`, a `thread_pool` and the like.
    ///
    /// Throws `system_error` for options that can't be used (`invalid_config`, `invalid_master`), with the
    /// value and the allowed range in its message, and when the system gives no more file descriptors.
    ///
    /// ```cpp
    /// redlock::lock_manager locks{io, {.masters = urls, .key_prefix = "billing:"}};
    /// ```
    lock_manager(detail::executor_source on, config options);
    /// With default options but the masters.
    ///
    /// ```cpp
    /// redlock::lock_manager listed{io, {"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"}};
    /// redlock::lock_manager split{io, "redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3"};
    /// ```
    // A template, since g++ 12 takes `{.masters = urls}` for a list as well: what is no template comes first.
    template <class Masters = master_list>
    lock_manager(detail::executor_source on, std::type_identity_t<Masters> masters)
        : lock_manager{std::move(on), config{.masters = std::move(masters)}}
    {
    }

    /// Moved from, it can only be assigned to or go.
    lock_manager(lock_manager&& other) noexcept = default;
    lock_manager& operator=(lock_manager&& other) noexcept;
    /// Never blocks: what runs ends with `operation_aborted`, connections are closed, and what is held is
    /// left to its ttl. The orderly end is `async_shutdown`.
    ~lock_manager();

    executor_type get_executor() const noexcept { return detail::executor_of(gate_); }

    /// Takes the resource: one round after the other, with a random delay between them, until one holds.
    ///
    /// - Handler signature: `void(redlock::error_code, redlock::lease)`. With the default token it is
    ///   `void(std::exception_ptr, redlock::lease)`: `co_await` throws a `lock_error` that names masters, votes and limits
    ///   (`with_report`).
    /// - Executor: the handler's associated executor, else the manager's; never inside of this call.
    /// - Cancellation: all three types. Nothing is left behind: what was sent is released in the background.
    /// - Errors: `held_by_other`, `no_quorum`, `validity_exhausted` (what the last round said), `closed`,
    ///   `operation_aborted`; `invalid_resource`, `_ttl`, `_wait`, `_min_validity`, `_max_rounds`: unsent.
    /// - Lifetimes: the manager may go while this runs; it ends with `operation_aborted` then.
    /// - Thread safety: may be called on any thread.
    ///
    /// `resource` is 1 to 1024 bytes, of any kind. The lease's validity is ttl − elapsed − drift, counted
    /// from before the first byte was sent, with drift = ttl × drift_factor + 2 ms.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_acquire(resource_name resource, acquire_options options, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), options, nullptr, std::forward<Token>(token));
    }
    /// With default options but the ttl.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_acquire(resource_name resource, std::chrono::milliseconds ttl, Token&& token = Token{})
    {
        return acquire_into(
            std::move(resource), acquire_options{.ttl = ttl}, nullptr, std::forward<Token>(token));
    }
    /// The same; `out` is written just before completion and must live until then.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_acquire(resource_name resource, acquire_options options, report& out, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), options, &out, std::forward<Token>(token));
    }
    /// With default options but the ttl; `out` is written just before completion and must live until then.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto
    async_acquire(resource_name resource, std::chrono::milliseconds ttl, report& out, Token&& token = Token{})
    {
        return acquire_into(
            std::move(resource), acquire_options{.ttl = ttl}, &out, std::forward<Token>(token));
    }

    /// Takes the resource in one round, or says why not. Everything else is as in `async_acquire`.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_try_acquire(resource_name resource, try_options options, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), options, nullptr, std::forward<Token>(token));
    }
    /// With default options but the ttl.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_try_acquire(resource_name resource, std::chrono::milliseconds ttl, Token&& token = Token{})
    {
        return acquire_into(
            std::move(resource), try_options{.ttl = ttl}, nullptr, std::forward<Token>(token));
    }
    /// The same; `out` is written just before completion and must live until then.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_try_acquire(resource_name resource, try_options options, report& out, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), options, &out, std::forward<Token>(token));
    }
    /// With default options but the ttl; `out` is written just before completion and must live until then.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_try_acquire(
        resource_name resource, std::chrono::milliseconds ttl, report& out, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), try_options{.ttl = ttl}, &out, std::forward<Token>(token));
    }

    /// Acquires a lease that is extended in the background until it is released, or goes. Everything else is as in
    /// `async_acquire`, and `invalid_schedule` and `invalid_max_hold` are refused, unsent.
    ///
    /// Whoever works under it has to be told of its loss: `lease::async_wait_lost`. Where the work is one
    /// coroutine, `async_with_lock` sees to that. A shutdown waits until the lease is released, or until its
    /// validity ends: nobody else may come in beside work that is still stopping.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_acquire_kept(resource_name resource, keep_options options, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), options, nullptr, std::forward<Token>(token));
    }
    /// The same; `out` is written just before completion and must live until then.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto
    async_acquire_kept(resource_name resource, keep_options options, report& out, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), options, &out, std::forward<Token>(token));
    }

    /// Runs `body` while the resource is held: acquires it, extends it in the background, and gives it back
    /// when the body has ended. Before the lease can lapse, the body is cancelled.
    ///
    /// `body` is called with a `redlock::lease&`, or without arguments if it takes none, and returns a
    /// `boost::asio::awaitable<T>`. It is copied or moved once, and kept until the operation ends; `std::ref(body)` does
    /// neither.
    ///
    /// - Handler signature: `void(std::exception_ptr)`, or `void(std::exception_ptr, T)`. A T that can't be
    ///   default-constructed comes as a `std::optional<T>`, which is empty if there is an exception.
    /// - Executor: the handler's associated executor, else the manager's; never inside of this call. The body runs on a
    ///   strand that is made from the same executor. If that is the system executor, as with `boost::asio::use_future`,
    ///   the strand is made from the manager's executor, so that the body stays in the context that you run.
    /// - Allocator: the handler's associated allocator. All of its memory is returned before the handler is called.
    /// - Cancellation: all three types, for the acquire; then each is passed on to the body. As with every operation,
    ///   the signal is emitted on the handler's executor.
    /// - Errors: what the body throws, unchanged; else `lock_error` with `lease_lost` or `hold_limit_reached`
    ///   if the lease was lost before the body had ended (which then gets `terminal` cancellation, stop_margin
    ///   before the validity ends, or at once if a quorum says that the key isn't ours), `closed` for a
    ///   shutdown, any error of `async_acquire`, `invalid_schedule`, `invalid_max_hold`. A release that fails
    ///   hides none of them.
    /// - Lifetimes: the manager may go while this runs; the body is cancelled then.
    /// - Thread safety: may be called on any thread.
    ///
    /// Nothing is released before the body has ended, however long it takes to stop: a rival must not come in
    /// beside it.
    template <class Body, class Token = boost::asio::deferred_t>
    auto async_with_lock(resource_name resource, keep_options options, Body&& body, Token&& token = Token{})
    {
        return with_lock(
            std::move(resource), options, nullptr, std::forward<Body>(body), std::forward<Token>(token));
    }
    /// The same; `out` tells how the acquire went. It is written when that has ended and must live until
    /// then.
    template <class Body, class Token = boost::asio::deferred_t>
    auto async_with_lock(
        resource_name resource, keep_options options, report& out, Body&& body, Token&& token = Token{})
    {
        return with_lock(
            std::move(resource), options, &out, std::forward<Body>(body), std::forward<Token>(token));
    }

    /// Asks every master who holds the resource, and for how long yet. For people and monitoring: by the time the
    /// answer is here it may be different.
    ///
    /// - Handler signature: `void(redlock::error_code, redlock::inspection)`.
    /// - Executor: the handler's associated executor, else the manager's; never inside of this call.
    /// - Cancellation: all three types.
    /// - Errors: `no_quorum` (fewer than a quorum answered; what the others said is there), `invalid_resource`,
    ///   `closed`, `operation_aborted`.
    /// - Lifetimes: the manager may go while this runs; it ends with `operation_aborted` then.
    /// - Thread safety: may be called on any thread.
    ///
    /// It waits for all masters: until each has answered, can't be reached, or its node timeout is over; in a
    /// manager that has only just been made also until each is connected, for `connect_timeout` at most.
    template <boost::asio::completion_token_for<void(error_code, inspection)> Token = boost::asio::deferred_t>
    auto async_inspect(resource_name resource, Token&& token = Token{})
    {
        return boost::asio::async_initiate<Token, void(error_code, inspection)>(
            detail::inspect_initiation{{gate_}}, token, std::move(resource).value());
    }

    /// Examines whether the masters are fit to keep locks, for a second: what they say of themselves, how their clocks
    /// go, how fast they answer. For people and monitoring.
    ///
    /// - Handler signature: `void(redlock::error_code, std::vector<redlock::master_examination>)`, one for each master.
    /// - Executor: the handler's associated executor, else the manager's; never inside of this call.
    /// - Cancellation: all three types; what is known by then is there.
    /// - Errors: `closed`, `operation_aborted`. Why a master can't be used is told with it.
    /// - Lifetimes: the manager may go while this runs; it ends with `operation_aborted` then.
    /// - Thread safety: may be called on any thread.
    template <
        boost::asio::completion_token_for<void(error_code, std::vector<master_examination>)> Token =
            boost::asio::deferred_t>
    auto async_examine(Token&& token = Token{})
    {
        return boost::asio::async_initiate<Token, void(error_code, std::vector<master_examination>)>(
            detail::examine_initiation{{gate_}}, token);
    }

    /// The orderly end: operations that run end with `closed`, leases are given back, and what is owed to
    /// masters that are up is waited for; then connections are closed. New operations are refused with
    /// `closed` from the call on.
    ///
    /// - Handler signature: `void(redlock::error_code)`.
    /// - Executor: the handler's associated executor, else the manager's; never inside of this call.
    /// - Cancellation: all three types; it only stops waiting.
    /// - Errors: `unconfirmed` (of a lease no quorum confirmed the release; its ttl frees it), `closed` (it
    ///   was shut down before), `operation_aborted`. Masters that hang are given up after ten times
    ///   `dead_after` at most.
    /// - Lifetimes: a manager that goes meanwhile ends this with `operation_aborted`.
    /// - Thread safety: may be called on any thread.
    template <boost::asio::completion_token_for<void(error_code)> Token = boost::asio::deferred_t>
    auto async_shutdown(Token&& token = Token{})
    {
        return boost::asio::async_initiate<Token, void(error_code)>(
            detail::shutdown_initiation{{gate_}}, token);
    }

    /// For the library's own tests: a manager in an environment of theirs.
    explicit lock_manager(detail::gate_ptr gate) noexcept : gate_{std::move(gate)} {}

  private:
    template <class Body, class Token>
    auto with_lock(resource_name resource, keep_options options, report* out, Body&& body, Token&& token)
    {
        static_assert(
            detail::usable_body<Body>,
            "the body of async_with_lock must be callable with a redlock::lease& or without arguments, and "
            "must return "
            "a boost::asio::awaitable<T>; one that can't be copied is given by std::move or std::ref");
        if constexpr (!detail::usable_body<Body>)
        {
            return with_lock(
                std::move(resource), options, out, detail::unusable_body{}, std::forward<Token>(token));
        }
        else
        {
            using kept_body = std::decay_t<Body>;
            using signature = typename detail::with_lock_signature<detail::body_result<kept_body>>::type;
            const auto begin = [&]
            {
                return boost::asio::async_initiate<Token, signature>(
                    detail::with_lock_initiation{gate_}, token, std::move(resource).value(), options, out,
                    kept_body(std::forward<Body>(body)));
            };
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
            static_assert(
                std::is_lvalue_reference_v<Body> || std::is_trivially_destructible_v<kept_body> ||
                    !detail::is_for_co_await<decltype(begin())>,
                "g++ 12 destroys a temporary like this body twice inside a co_await expression: name it "
                "first, as in "
                "`auto body = [...]...; co_await locks.async_with_lock(resource, options, std::ref(body));`");
#endif
            return begin();
        }
    }

    template <class Options, class Token>
    auto acquire_into(resource_name resource, Options options, report* out, Token&& token)
    {
        return boost::asio::async_initiate<Token, void(error_code, lease)>(
            detail::acquire_initiation<error_code>{{gate_}}, token, std::move(resource).value(), options,
            out);
    }

    detail::gate_ptr gate_;
};

} // namespace redlock
