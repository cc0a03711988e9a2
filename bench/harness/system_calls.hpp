// SPDX-License-Identifier: BSL-1.0
// Counts what a client asks of the kernel, whoever asks: the client itself, Asio, OpenSSL.
#pragma once

#include <cstdint>

namespace redlock::bench
{

/// What this thread has asked for so far, at those functions of the C library that a client waits, speaks, sets timers and
/// draws random numbers with. The clocks aren't among them: to read one takes no system call.
struct system_calls
{
    std::uint64_t count = 0;
    std::uint64_t sent = 0;     // Bytes, by sockets.
    std::uint64_t received = 0; // Likewise.

    friend system_calls operator-(const system_calls& one, const system_calls& other)
    {
        return {one.count - other.count, one.sent - other.sent, one.received - other.received};
    }
};

system_calls system_calls_of_this_thread() noexcept;

} // namespace redlock::bench
