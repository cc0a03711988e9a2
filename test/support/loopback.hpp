// SPDX-License-Identifier: BSL-1.0
// Loopback sockets for the tests: an owning descriptor, free ports, listeners and connections.
#pragma once

#include <chrono>
#include <utility>

#include <netinet/in.h>

namespace redlock::test
{

/// Owns a file descriptor and closes it.
class unique_fd
{
  public:
    /// Owns nothing.
    unique_fd() = default;
    /// Owns `descriptor`, or nothing if it is negative.
    explicit unique_fd(int descriptor) : descriptor_{descriptor} {}
    unique_fd(unique_fd&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}
    unique_fd& operator=(unique_fd&& other) noexcept
    {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~unique_fd() { reset(); }

    /// Returns the descriptor, -1 if there is none.
    int get() const { return descriptor_; }
    /// True if a descriptor is owned.
    explicit operator bool() const { return descriptor_ >= 0; }
    /// Returns the descriptor and gives up ownership.
    int release() { return std::exchange(descriptor_, -1); }
    /// Closes the descriptor now.
    void reset();

  private:
    int descriptor_ = -1;
};

/// A TCP socket that listens on 127.0.0.1, and its port.
struct listener
{
    unique_fd socket;
    int port = 0;
};

/// Listens on a free port of 127.0.0.1, outside the range of outgoing connections if possible. Otherwise a client that
/// keeps reconnecting to the port of a killed server could be given that port for its own end, and be connected to
/// itself. Throws if no port is free.
listener listen_on_loopback();

/// Returns a port of 127.0.0.1 that was just free, chosen as in `listen_on_loopback`.
int free_port();

/// Keeps a port of 127.0.0.1: connections are refused, and nobody else can listen there. Empty if it is in use.
unique_fd hold_port(int port);

/// Returns a new stream socket. Throws `std::system_error`.
unique_fd open_socket(int family);

/// Returns the address of a port of 127.0.0.1.
sockaddr_in loopback_address(int port);

/// Connects to a port of 127.0.0.1, with TCP_NODELAY. Throws `std::system_error`.
unique_fd connect_to_loopback(int port);

/// Waits until the descriptor is ready for one of these events of poll(). False if it isn't by the deadline.
bool wait_for(int descriptor, short events, std::chrono::steady_clock::time_point deadline);

} // namespace redlock::test
