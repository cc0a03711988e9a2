// SPDX-License-Identifier: BSL-1.0
// How Asio is compiled. The library and its program share objects of Asio, so they must agree on it.
#pragma once

#include <boost/asio/detail/config.hpp>
#include <boost/version.hpp>

namespace redlock::detail
{

/// A number for what changes the layout or the functions of these objects: the version of Boost, macros of Asio, and modes of the
/// compiler. It is an argument of `basic_executor_source`, and so a part of a name that the linker looks for: a program that
/// differs from its library isn't linked. It would crash.
inline constexpr long asio_build = BOOST_VERSION * 256L
#ifdef BOOST_ASIO_ENABLE_HANDLER_TRACKING
                                   + 1
#endif
#ifdef BOOST_ASIO_HAS_THREADS
                                   + 2
#endif
#ifdef BOOST_ASIO_HAS_EPOLL
                                   + 4
#endif
#ifdef BOOST_ASIO_HAS_IO_URING
                                   + 8
#endif
#ifdef BOOST_ASIO_HAS_IO_URING_AS_DEFAULT
                                   + 16
#endif
#ifdef BOOST_ASIO_NO_TYPEID
                                   + 32
#endif
#ifdef BOOST_ASIO_DISABLE_STD_ATOMIC
                                   + 64
#endif
#ifdef _GLIBCXX_DEBUG
                                   + 128
#endif
    ;

} // namespace redlock::detail
