// SPDX-License-Identifier: BSL-1.0
// A completion handler of any kind, erased, so that everything behind the face is compiled once.
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

/// A handler and, taken before its type was erased, work on the executor that it runs on.
template <class Signature>
struct completion
{
    /// The usual kind, or any other: wrapping the one in the other would allocate.
    std::variant<asio::any_io_executor, asio::any_completion_executor> executor;
    asio::any_completion_handler<Signature> handler;
};

/// `fallback` is where a handler runs that has no executor of its own.
///
/// Never inlined: clang 16 keeps the address of a thread's variable across a co_await, and what is inlined into a
/// coroutine that went on another thread would allocate from the first one's cache.
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
