// SPDX-License-Identifier: BSL-1.0
// Before Boost 1.84, a coroutine of asio::spawn can't wait for an operation that completes with a `std::exception_ptr`: it
// doesn't compile, or rethrows a null pointer after a success (chriskohlhoff/asio#1336). Include redlock before anything that
// awaits such an operation.
#pragma once

#include <boost/asio/version.hpp>

#include <exception>
#include <utility>
#include <variant>

#if BOOST_ASIO_VERSION < 103000 // Of Boost 1.84, which fixes it.

namespace boost::asio::detail
{

template <class Executor, class Signature>
class spawn_handler; // Only declared: boost/asio/spawn.hpp, which defines it, requires Boost.Context.

/// These two replace the handlers that are wrong. They derive from the one for results of any types, which works.
template <class Executor>
class spawn_handler<Executor, void(std::exception_ptr)>
    : public spawn_handler<Executor, void(std::monostate, std::exception_ptr)>
{
    using base = spawn_handler<Executor, void(std::monostate, std::exception_ptr)>;

  public:
    using return_type = void;
    using base::base;

    void operator()(std::exception_ptr thrown) { base::operator()(std::monostate{}, std::move(thrown)); }

    static void on_resume(typename base::result_type& result)
    {
        auto [empty, thrown] = base::on_resume(result);
        if (thrown)
        {
            std::rethrow_exception(std::move(thrown));
        }
    }
};

template <class Executor, class T>
class spawn_handler<Executor, void(std::exception_ptr, T)>
    : public spawn_handler<Executor, void(std::monostate, std::exception_ptr, T)>
{
    using base = spawn_handler<Executor, void(std::monostate, std::exception_ptr, T)>;

  public:
    using return_type = T;
    using base::base;

    void operator()(std::exception_ptr thrown, T value)
    {
        base::operator()(std::monostate{}, std::move(thrown), std::move(value));
    }

    static T on_resume(typename base::result_type& result)
    {
        auto [empty, thrown, value] = base::on_resume(result);
        if (thrown)
        {
            std::rethrow_exception(std::move(thrown));
        }
        return std::move(value);
    }
};

} // namespace boost::asio::detail

#endif
