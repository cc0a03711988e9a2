// SPDX-License-Identifier: BSL-1.0
// Counts the system calls of a client, including those of Asio and OpenSSL.
#pragma once

#include <cstdint>

namespace redlock::bench
{

/// The calls of this thread that wait, transfer data, set timers or draw random numbers. Reading a clock makes no
/// system call.
struct system_calls
{
    std::uint64_t count = 0;
    std::uint64_t sent = 0;     // Bytes sent by sockets.
    std::uint64_t received = 0; // Bytes received by sockets.

    friend system_calls operator-(const system_calls& one, const system_calls& other)
    {
        return {one.count - other.count, one.sent - other.sent, one.received - other.received};
    }
};

system_calls system_calls_of_this_thread() noexcept;

} // namespace redlock::bench
