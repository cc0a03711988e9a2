// SPDX-License-Identifier: BSL-1.0
// Boost 1.81 can't co_await an operation that completes with `void(std::exception_ptr, T)` (chriskohlhoff/asio#1172).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/version.hpp>

#include <exception>
#include <tuple>
#include <utility>
#include <variant>

#if BOOST_ASIO_VERSION < 102800 // Of Boost 1.82, which mends it.

namespace boost::asio::detail
{

/// Replaces the handler that doesn't compile. The one for three results does, so that this adds an empty one.
template <class T, class Executor>
class awaitable_async_op_handler<void(std::exception_ptr, T), Executor>
    : public awaitable_async_op_handler<void(std::exception_ptr, T, std::monostate), Executor>
{
    using base = awaitable_async_op_handler<void(std::exception_ptr, T, std::monostate), Executor>;

  public:
    using base::base;

    void operator()(std::exception_ptr thrown, T value)
    {
        base::operator()(std::move(thrown), std::move(value), std::monostate{});
    }

    static T resume(typename base::result_type& result)
    {
        auto [thrown, value, empty] = base::resume(result);
        if (thrown)
        {
            std::rethrow_exception(std::move(thrown));
        }
        return std::move(value);
    }
};

} // namespace boost::asio::detail

#endif
