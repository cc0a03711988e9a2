// SPDX-License-Identifier: BSL-1.0
// Boost 1.81 can't co_await an operation that completes with `void(std::exception_ptr, T)` (chriskohlhoff/asio#1172).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/version.hpp>

#include <exception>
#include <tuple>
#include <utility>
#include <variant>

#if BOOST_ASIO_VERSION < 102800 // Of Boost 1.82, which fixes it.

namespace boost::asio::detail
{

/// Replaces the handler that does not compile. Derives from the handler for results of any types, which does.
template <class T, class Executor>
class awaitable_async_op_handler<void(std::exception_ptr, T), Executor>
    : public awaitable_async_op_handler<void(std::monostate, std::exception_ptr, T), Executor>
{
    using base = awaitable_async_op_handler<void(std::monostate, std::exception_ptr, T), Executor>;

  public:
    using base::base;

    void operator()(std::exception_ptr thrown, T value)
    {
        base::operator()(std::monostate{}, std::move(thrown), std::move(value));
    }

    static T resume(typename base::result_type& result)
    {
        auto [empty, thrown, value] = base::resume(result);
        if (thrown)
        {
            std::rethrow_exception(std::move(thrown));
        }
        return std::move(value);
    }
};

} // namespace boost::asio::detail

#endif
