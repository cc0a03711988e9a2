// SPDX-License-Identifier: BSL-1.0
// What a body of `async_with_lock` may be, what it returns, and the executor on which it runs.
#pragma once

#include <redlock/detail/completion.hpp>
#include <redlock/lease.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/system_error.hpp>

#include <concepts>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>

namespace redlock::detail
{

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

} // namespace redlock::detail
