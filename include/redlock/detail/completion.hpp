// SPDX-License-Identifier: BSL-1.0
// A type-erased completion handler, so that the implementation of the public API is compiled once.
#pragma once

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/prefer.hpp>

#include <type_traits>
#include <utility>
#include <variant>

namespace redlock::detail
{

namespace asio = boost::asio;

/// A type-erased handler, and outstanding work on its associated executor.
template <class Signature>
struct completion
{
    /// `any_io_executor` if the executor can be converted to it. Otherwise the other type, in which an `any_io_executor`
    /// could be wrapped as well, but only with an allocation.
    std::variant<asio::any_io_executor, asio::any_completion_executor> executor;
    asio::any_completion_handler<Signature> handler;
};

/// Erases the type of a handler. `fallback` is its executor if it has no associated one.
///
/// Not inlined, because clang 16 keeps the address of a thread-local variable across a `co_await`: in a coroutine that
/// has been resumed on another thread, inlined code would allocate from the cache of the first thread.
template <class Signature, class Handler>
[[gnu::noinline]] completion<Signature> type_erase(Handler&& handler, const asio::any_io_executor& fallback)
{
    auto executor = asio::prefer(
        asio::get_associated_executor(handler, fallback), asio::execution::outstanding_work.tracked);
    using kept = std::conditional_t<
        std::is_convertible_v<decltype(executor), asio::any_io_executor>, asio::any_io_executor,
        asio::any_completion_executor>;
    return {
        kept{std::move(executor)}, asio::any_completion_handler<Signature>{std::forward<Handler>(handler)}};
}

} // namespace redlock::detail
