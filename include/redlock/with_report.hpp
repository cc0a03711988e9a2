// SPDX-License-Identifier: BSL-1.0
// The completion token adapter that turns a failed acquire into an exception with the report as its text.
#pragma once

#include <redlock/detail/asio_1172.hpp>
#include <redlock/detail/asio_1336.hpp>
#include <redlock/error.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <concepts>
#include <exception>
#include <type_traits>
#include <utility>

namespace redlock
{

/// The type of `with_report(token)`.
template <class Token>
struct with_report_t
{
    Token token{};
};

/// Adapts a token so that the acquire completes with `void(std::exception_ptr, redlock::lease)` instead of
/// `void(redlock::error_code, redlock::lease)`. The exception is a `lock_error`, whose text contains each master's vote
/// and reason, the limits, and the value and range of a refused argument; it is null for success. The text is created
/// for a failure only.
///
/// `with_report(boost::asio::deferred)` is the default token of `lock_manager::async_acquire`, `async_try_acquire` and
/// `async_acquire_kept`, so that `co_await` throws the exception. Other tokens have to be adapted explicitly:
///
/// ```cpp
/// auto held = locks.async_acquire("number", patient, redlock::with_report(asio::use_future));
/// ```
///
/// `with_report` is the outermost adapter: `with_report(boost::asio::bind_cancellation_slot(slot, boost::asio::deferred))`.
/// A token that is not adapted receives the `error_code`, whether or not a `report` is passed to the call.
template <class Token>
[[nodiscard]] constexpr with_report_t<std::decay_t<Token>> with_report(Token&& token)
{
    return {std::forward<Token>(token)};
}

namespace detail
{

/// An initiation of this library that can complete with an exception instead of an error code. A type that derives from
/// one is none: the initiations of Asio's own adapters do (Boost 1.88).
template <class Initiation>
concept throwing_initiation = requires(const Initiation& initiation) {
    initiation.throwing();
    requires std::same_as<typename Initiation::initiation_type, Initiation>;
};

} // namespace detail

} // namespace redlock

namespace boost::asio
{

/// Initiates an acquire with `redlock::with_report(token)`.
template <class Token, class Result>
class async_result<redlock::with_report_t<Token>, void(redlock::error_code, Result)>
{
  public:
    /// Read by adapters around this one, which don't work.
    using return_type = void;

    template <redlock::detail::throwing_initiation Initiation, class Adapter, class... Arguments>
    static auto initiate(const Initiation& initiation, Adapter&& adapter, Arguments&&... arguments)
    {
        // A copy of an lvalue: Asio moves from the token that it is given.
        Token token{std::forward<Adapter>(adapter).token};
        return async_initiate<Token, void(std::exception_ptr, Result)>(
            initiation.throwing(), token, std::forward<Arguments>(arguments)...);
    }

    template <class Initiation, class Adapter, class... Arguments>
    static void initiate(const Initiation&, Adapter&&, Arguments&&...)
    {
        static_assert(
            redlock::detail::throwing_initiation<Initiation>,
            "redlock::with_report must be the outermost adapter of a token, and only acquires take it");
    }
};

} // namespace boost::asio
