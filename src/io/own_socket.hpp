// SPDX-License-Identifier: BSL-1.0
// Opens the sockets of the library.
#pragma once

#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

#include <redlock/error.hpp>

namespace redlock::io
{

/// Opens a socket that no program inherits which this process executes. Otherwise a connection would outlive this process,
/// and its server would not notice the end. Asio opens sockets without this flag; a flag that is set afterwards comes too late
/// if another thread executes a program meanwhile.
template <class Socket>
error_code open_own(Socket& socket, const typename Socket::protocol_type& protocol)
{
    const int descriptor = ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
    if (descriptor < 0)
    {
        return {errno, boost::system::system_category()};
    }
    error_code failed;
    socket.assign(protocol, descriptor, failed);
    if (failed)
    {
        ::close(descriptor);
    }
    return failed;
}

} // namespace redlock::io
