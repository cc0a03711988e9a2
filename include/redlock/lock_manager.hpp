// SPDX-License-Identifier: BSL-1.0
// The lock manager: acquires leases on a majority of N independent masters.
#pragma once

#include <redlock/config.hpp>
#include <redlock/detail/asio_build.hpp>
#include <redlock/detail/completion.hpp>
#include <redlock/detail/handles.hpp>
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
    const manager_handle_ptr& handle, std::string resource, acquire_options options, report* out,
    lease_completion done);
REDLOCK_API void start_try_acquire(
    const manager_handle_ptr& handle, std::string resource, try_options options, report* out,
    lease_completion done);
REDLOCK_API void
start_inspect(const manager_handle_ptr& handle, std::string resource, inspection_completion done);
REDLOCK_API void start_examine(const manager_handle_ptr& handle, examination_completion done);
REDLOCK_API void start_shutdown(const manager_handle_ptr& handle, status_completion done);

/// An executor, given directly or by its execution context. `AsioBuild` is always `asio_build`, for the linker to compare.
template <long AsioBuild>
class basic_executor_source
{
  public:
    template <class Executor>
        requires std::convertible_to<const Executor&, asio::any_io_executor>
    basic_executor_source(const Executor& executor) : executor_{executor}
    {
    }
    template <class ExecutionContext>
        requires std::convertible_to<ExecutionContext&, asio::execution_context&>
    basic_executor_source(ExecutionContext& context) : executor_{context.get_executor()}
    {
    }

    const asio::any_io_executor& get() const noexcept { return executor_; }

  private:
    asio::any_io_executor executor_;
};

using executor_source = basic_executor_source<asio_build>;

/// The common part of the initiations of a manager's operations.
struct manager_initiation
{
    using executor_type = asio::any_io_executor;

    manager_handle_ptr handle;

    executor_type get_executor() const noexcept { return executor_of(handle); }
};

/// `Failure` is an `error_code` or a `std::exception_ptr`.
template <class Failure>
struct acquire_initiation : manager_initiation
{
    /// Names this type itself: an adapter may derive its initiation from this one.
    using initiation_type = acquire_initiation;

    acquire_initiation<std::exception_ptr> throwing() const { return {{handle}}; }

    template <class Handler>
    void operator()(Handler&& handler, std::string resource, acquire_options options, report* out)
    {
        auto done = type_erase<void(Failure, lease)>(std::forward<Handler>(handler), get_executor());
        start_acquire(handle, std::move(resource), options, out, std::move(done));
    }

    template <class Handler>
    void operator()(Handler&& handler, std::string resource, try_options options, report* out)
    {
        auto done = type_erase<void(Failure, lease)>(std::forward<Handler>(handler), get_executor());
        start_try_acquire(handle, std::move(resource), options, out, std::move(done));
    }

    template <class Handler>
    void operator()(Handler&& handler, std::string resource, keep_options options, report* out)
    {
        auto done = type_erase<void(Failure, lease)>(std::forward<Handler>(handler), get_executor());
        start_acquire_kept(handle, std::move(resource), options, out, std::move(done));
    }
};

struct inspect_initiation : manager_initiation
{
    template <class Handler>
    void operator()(Handler&& handler, std::string resource)
    {
        auto done = type_erase<void(error_code, inspection)>(std::forward<Handler>(handler), get_executor());
        start_inspect(handle, std::move(resource), std::move(done));
    }
};

struct examine_initiation : manager_initiation
{
    template <class Handler>
    void operator()(Handler&& handler)
    {
        using result = void(error_code, std::vector<master_examination>);
        start_examine(handle, type_erase<result>(std::forward<Handler>(handler), get_executor()));
    }
};

struct shutdown_initiation : manager_initiation
{
    template <class Handler>
    void operator()(Handler&& handler)
    {
        auto done = type_erase<void(error_code)>(std::forward<Handler>(handler), get_executor());
        start_shutdown(handle, std::move(done));
    }
};

} // namespace detail

/// The default completion token of an acquire. A failed acquire that is awaited throws a `lock_error`.
using default_acquire_token = with_report_t<boost::asio::deferred_t>;

/// A distributed lock manager over N independent masters, by the Redlock algorithm (Redis documentation, "Distributed
/// locks").
///
/// The manager keeps one connection to each master, and connects as soon as its executor runs. All its work is
/// serialised on an internal strand, on which no user code runs.
///
/// Thread safety: all member functions may be called concurrently on any thread, except for moves and destruction.
///
/// After a `fork()`, the child must neither run the context nor use the manager or its leases.
class REDLOCK_API lock_manager
{
  public:
    using executor_type = boost::asio::any_io_executor;

    /// Constructs a manager that runs on an executor, or on the executor of an execution context such as `io_context`
    /// or `thread_pool`.
    ///
    /// Throws `system_error` with `errc::invalid_config` or `errc::invalid_master` if an option can't be used; the
    /// message contains the value and the allowed range. Throws `system_error` if the system has no more file
    /// descriptors.
    ///
    /// ```cpp
    /// redlock::lock_manager locks{io, {.masters = urls, .key_prefix = "billing:"}};
    /// ```
    lock_manager(detail::executor_source on, config options);
    /// \overload
    ///
    /// Uses the default options with the given masters.
    ///
    /// ```cpp
    /// redlock::lock_manager listed{io, {"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"}};
    /// redlock::lock_manager split{io, "redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3"};
    /// ```
    // A template, because g++ 12 considers `{.masters = urls}` a list as well, and prefers a non-template.
    template <class Masters = master_list>
    lock_manager(detail::executor_source on, std::type_identity_t<Masters> masters)
        : lock_manager{std::move(on), config{.masters = std::move(masters)}}
    {
    }

    /// Move-constructs a manager. A moved-from manager may only be assigned to or destroyed.
    lock_manager(lock_manager&& other) noexcept = default;
    /// Destroys the current manager as the destructor does, and takes over that of `other`.
    lock_manager& operator=(lock_manager&& other) noexcept;
    /// Destroys the manager without blocking. Pending operations end with `operation_aborted`, connections are
    /// closed, and held leases are left to their ttl. Use `async_shutdown` to release them. Leases that were released or
    /// destroyed before are still released, in the background: connections are closed when that has been answered, or after
    /// `response_timeout`.
    ~lock_manager();

    executor_type get_executor() const noexcept { return detail::executor_of(handle_); }

    /// Acquires a lease. Rounds are repeated until one succeeds or a limit in `options` is reached.
    ///
    /// - Handler signature: `void(redlock::error_code, redlock::lease)`. With the default token it is
    ///   `void(std::exception_ptr, redlock::lease)`, and `co_await` throws a `lock_error` with the report as its text:
    ///   see `with_report`.
    /// - Executor: the handler's associated executor, by default the manager's. The handler is never called inside the
    ///   initiating function.
    /// - Cancellation: all types. Keys that may have been set are released in the background.
    /// - Errors: `held_by_other`, `no_quorum`, `validity_exhausted` (the result of the last round),
    ///   `too_many_operations`, `closed`, `operation_aborted`. Refused before anything is sent: `invalid_resource`,
    ///   `invalid_ttl`, `invalid_wait`, `invalid_min_validity`, `invalid_max_rounds`.
    /// - Lifetimes: if the manager is destroyed during the operation, it ends with `operation_aborted`.
    /// - Thread safety: may be called on any thread.
    ///
    /// `resource` is 1 to 1024 bytes, arbitrary but for the names of the library's own keys. The validity of the lease is
    /// ttl − elapsed − drift, where the elapsed time counts from before the first byte was sent, and drift = ttl ×
    /// `config::drift_factor` + 2 ms.
    ///
    /// The first round of a manager waits for its masters to be connected, as in `async_try_acquire`, but not longer than
    /// `wait`. Between rounds, the operation waits in the queue of the resource, or for a random delay if there is no
    /// queue master. It ends early if too many masters refuse permanently, for example because of a wrong password.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_acquire(resource_name resource, acquire_options options, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), options, nullptr, std::forward<Token>(token));
    }
    /// \overload
    ///
    /// Uses the default options with the given ttl.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_acquire(resource_name resource, std::chrono::milliseconds ttl, Token&& token = Token{})
    {
        return acquire_into(
            std::move(resource), acquire_options{.ttl = ttl}, nullptr, std::forward<Token>(token));
    }
    /// \overload
    ///
    /// `out` receives the report immediately before completion, and must live until then.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_acquire(resource_name resource, acquire_options options, report& out, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), options, &out, std::forward<Token>(token));
    }
    /// \overload
    ///
    /// Uses the default options with the given ttl. `out` receives the report immediately before completion, and must
    /// live until then.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto
    async_acquire(resource_name resource, std::chrono::milliseconds ttl, report& out, Token&& token = Token{})
    {
        return acquire_into(
            std::move(resource), acquire_options{.ttl = ttl}, &out, std::forward<Token>(token));
    }

    /// Acquires a lease if one round succeeds. Otherwise like `async_acquire`.
    ///
    /// The first round of a manager waits until a quorum of masters is connected, then for the others, for the node
    /// timeout at most. It starts without a quorum as soon as too many masters have failed their first connection attempt
    /// (`config::connect_timeout`).
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_try_acquire(resource_name resource, try_options options, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), options, nullptr, std::forward<Token>(token));
    }
    /// \overload
    ///
    /// Uses the default options with the given ttl.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_try_acquire(resource_name resource, std::chrono::milliseconds ttl, Token&& token = Token{})
    {
        return acquire_into(
            std::move(resource), try_options{.ttl = ttl}, nullptr, std::forward<Token>(token));
    }
    /// \overload
    ///
    /// `out` receives the report immediately before completion, and must live until then.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_try_acquire(resource_name resource, try_options options, report& out, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), options, &out, std::forward<Token>(token));
    }
    /// \overload
    ///
    /// Uses the default options with the given ttl. `out` receives the report immediately before completion, and must
    /// live until then.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_try_acquire(
        resource_name resource, std::chrono::milliseconds ttl, report& out, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), try_options{.ttl = ttl}, &out, std::forward<Token>(token));
    }

    /// Acquires a lease that is extended in the background until it is released, destroyed or lost. Otherwise like
    /// `async_acquire`; also refuses `invalid_schedule` and `invalid_max_hold`.
    ///
    /// The work must watch for the loss with `lease::async_wait_lost`; for a single coroutine, `async_with_lock` does
    /// so. A shutdown waits until the lease is released or its validity ends, so that no other client acquires the
    /// resource while the work is still stopping.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto async_acquire_kept(resource_name resource, keep_options options, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), options, nullptr, std::forward<Token>(token));
    }
    /// \overload
    ///
    /// `out` receives the report immediately before completion, and must live until then.
    template <boost::asio::completion_token_for<void(error_code, lease)> Token = default_acquire_token>
    auto
    async_acquire_kept(resource_name resource, keep_options options, report& out, Token&& token = Token{})
    {
        return acquire_into(std::move(resource), options, &out, std::forward<Token>(token));
    }

    /// Runs a coroutine under a lease: acquires the lease, extends it while `body` runs, and releases it when `body`
    /// has ended. If the lease is lost, the body is cancelled before the validity ends.
    ///
    /// `body` is called with a `redlock::lease&` or without arguments, and returns a `boost::asio::awaitable<T>`. It is
    /// copied or moved once and kept until the operation ends. Pass `std::ref(body)` to avoid both.
    ///
    /// - Handler signature: `void(std::exception_ptr)` or `void(std::exception_ptr, T)`. A T without a default
    ///   constructor is passed as `std::optional<T>`, empty if there is an exception.
    /// - Executor: the handler's associated executor, by default the manager's. The handler is never called inside the
    ///   initiating function. The body runs on a strand of that executor. If it is the system executor, as with
    ///   `boost::asio::use_future`, or an `any_completion_executor`, as that of an `any_completion_handler`, the body runs
    ///   on a strand of the manager's executor instead.
    /// - Allocator: the handler's associated allocator. All memory is returned before the handler is called, unless the
    ///   body never suspends.
    /// - Cancellation: all types. Cancels the acquire; later it is forwarded to the body. The signal must be
    ///   emitted on the handler's executor, as for any operation.
    /// - Errors: exceptions of the body are passed on unchanged. Otherwise a `lock_error` with `lease_lost` or
    ///   `hold_limit_reached` if the lease was lost before the body had ended, `closed` after a shutdown,
    ///   `invalid_schedule`, `invalid_max_hold`, or any error of `async_acquire`. The result of the release isn't
    ///   reported.
    /// - Lifetimes: if the manager is destroyed during the operation, the body is cancelled, and the operation ends
    ///   with `operation_aborted`, or with `closed` if the lease was just acquired. If the manager's execution context is
    ///   destroyed while the body runs on another one, the body is cancelled, and the operation ends with `closed`.
    /// - Thread safety: may be called on any thread.
    ///
    /// When the lease is lost, the body gets `terminal` cancellation: `stop_margin` before the validity ends, when
    /// `max_hold` is over, at a shutdown, or as soon as too many masters report that the key is missing or has another
    /// owner. The lease isn't released before
    /// the body has ended, however long that takes, so that no other client acquires the resource while the body is
    /// still stopping.
    template <class Body, class Token = boost::asio::deferred_t>
    auto async_with_lock(resource_name resource, keep_options options, Body&& body, Token&& token = Token{})
    {
        return with_lock(
            std::move(resource), options, nullptr, std::forward<Body>(body), std::forward<Token>(token));
    }
    /// \overload
    ///
    /// `out` receives the report of the acquire when that has ended, and must live until then.
    template <class Body, class Token = boost::asio::deferred_t>
    auto async_with_lock(
        resource_name resource, keep_options options, report& out, Body&& body, Token&& token = Token{})
    {
        return with_lock(
            std::move(resource), options, &out, std::forward<Body>(body), std::forward<Token>(token));
    }

    /// Queries each master for the holder of a resource and the remaining time to live. For operators and monitoring:
    /// the result may be outdated when it arrives.
    ///
    /// - Handler signature: `void(redlock::error_code, redlock::inspection)`.
    /// - Executor: the handler's associated executor, by default the manager's. The handler is never called inside the
    ///   initiating function.
    /// - Cancellation: all types. The inspection contains the answers received until then.
    /// - Errors: `no_quorum` (fewer than a quorum answered; the inspection contains their answers), `invalid_resource`,
    ///   `too_many_operations`, `closed`, `operation_aborted`.
    /// - Lifetimes: if the manager is destroyed during the operation, it ends with `operation_aborted`.
    /// - Thread safety: may be called on any thread.
    ///
    /// Completes when each master has answered or failed, after `config::response_timeout` at the latest. A new manager
    /// first waits until each master is connected or has failed (`config::connect_timeout`).
    template <boost::asio::completion_token_for<void(error_code, inspection)> Token = boost::asio::deferred_t>
    auto async_inspect(resource_name resource, Token&& token = Token{})
    {
        return boost::asio::async_initiate<Token, void(error_code, inspection)>(
            detail::inspect_initiation{{handle_}}, token, std::move(resource).value());
    }

    /// Examines for about a second whether the masters are suited to keep locks: their settings, clocks and round trip
    /// times. For operators and monitoring.
    ///
    /// - Handler signature: `void(redlock::error_code, std::vector<redlock::master_examination>)`, with one element per
    ///   master in the order of `config::masters`.
    /// - Executor: the handler's associated executor, by default the manager's. The handler is never called inside the
    ///   initiating function.
    /// - Cancellation: all types. The vector contains the findings until then.
    /// - Errors: `too_many_operations`, `closed`, `operation_aborted`. A master that isn't connected is no error;
    ///   its element contains the reason.
    /// - Lifetimes: if the manager is destroyed during the operation, it ends with `operation_aborted`.
    /// - Thread safety: may be called on any thread.
    template <
        boost::asio::completion_token_for<void(error_code, std::vector<master_examination>)> Token =
            boost::asio::deferred_t>
    auto async_examine(Token&& token = Token{})
    {
        return boost::asio::async_initiate<Token, void(error_code, std::vector<master_examination>)>(
            detail::examine_initiation{{handle_}}, token);
    }

    /// Shuts the manager down: ends all operations but releases with `closed`, releases all leases, waits for outstanding
    /// keys on connected masters, and closes the connections. From this call on, new operations fail with `closed`,
    /// except releases, and `async_wait_lost` of a kept lease, which reports `closed` as the reason of the loss.
    ///
    /// - Handler signature: `void(redlock::error_code)`.
    /// - Executor: the handler's associated executor, by default the manager's. The handler is never called inside the
    ///   initiating function.
    /// - Cancellation: all types. Cancels the wait only; the shutdown continues.
    /// - Errors: `unconfirmed` (no quorum confirmed the release of some lease; its ttl frees it), `closed` (already
    ///   shut down or shutting down), `operation_aborted`.
    /// - Lifetimes: if the manager is destroyed during the operation, it ends with `operation_aborted`.
    /// - Thread safety: may be called on any thread.
    ///
    /// Kept leases are lost first, and the shutdown waits for their release until their validity ends, or would have
    /// ended if the key hadn't been missing. Then it waits at most eleven times `config::response_timeout` for the
    /// masters.
    template <boost::asio::completion_token_for<void(error_code)> Token = boost::asio::deferred_t>
    auto async_shutdown(Token&& token = Token{})
    {
        return boost::asio::async_initiate<Token, void(error_code)>(
            detail::shutdown_initiation{{handle_}}, token);
    }

  private:
    friend struct detail::access;

    explicit lock_manager(detail::manager_handle_ptr handle) noexcept : handle_{std::move(handle)} {}

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
                    detail::with_lock_initiation{handle_}, token, std::move(resource).value(), options, out,
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
            detail::acquire_initiation<error_code>{{handle_}}, token, std::move(resource).value(), options,
            out);
    }

    detail::manager_handle_ptr handle_;
};

} // namespace redlock
