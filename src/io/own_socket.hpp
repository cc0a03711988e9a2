// SPDX-License-Identifier: BSL-1.0
// Opens the sockets of the library.
#pragma once

#include <fcntl.h>

#include <redlock/error.hpp>

namespace redlock::io
{

/// Opens a socket that no program inherits which this process executes. Otherwise a connection would outlive this process,
/// and its server would not notice the end. Asio opens sockets without this flag. If it fails, connecting will.
template <class Socket>
void open_own(Socket& socket, const typename Socket::protocol_type& protocol)
{
    error_code failed;
    socket.open(protocol, failed);
    if (!failed)
    {
        ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    }
}

} // namespace redlock::io
