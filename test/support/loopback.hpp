// SPDX-License-Identifier: BSL-1.0
// Sockets of the tests on the loopback interface: an owning descriptor, free ports and listeners.
#pragma once

#include <utility>

namespace redlock::test
{

/// Owns a file descriptor and closes it.
class unique_fd
{
  public:
    /// Owns nothing.
    unique_fd() = default;
    /// Owns `descriptor`, or nothing when it is negative.
    explicit unique_fd(int descriptor) : descriptor_{descriptor} {}
    unique_fd(unique_fd&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}
    unique_fd& operator=(unique_fd&& other) noexcept
    {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~unique_fd() { reset(); }

    /// The descriptor, -1 when there is none.
    int get() const { return descriptor_; }
    /// Whether a descriptor is owned.
    explicit operator bool() const { return descriptor_ >= 0; }
    /// Gives the descriptor away without closing it.
    int release() { return std::exchange(descriptor_, -1); }
    /// Closes the descriptor now.
    void reset();

  private:
    int descriptor_ = -1;
};

/// A listening TCP socket on 127.0.0.1 and its port.
struct listener
{
    unique_fd socket;
    int port = 0;
};

/// Listens on a free port of 127.0.0.1. The port lies outside the range from which the kernel takes ports
/// for outgoing connections, where one can be had: else a client that keeps trying a port whose server was
/// killed could be given that very port and end up connected to itself. Throws when no port is free.
listener listen_on_loopback();

/// A port of 127.0.0.1 on which nobody listened a moment ago, chosen like those of `listen_on_loopback`.
int free_port();

} // namespace redlock::test
