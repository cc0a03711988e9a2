// SPDX-License-Identifier: BSL-1.0
// The real environment.
#include "io/asio_environment.hpp"

#include "io/asio_alarm.hpp"
#include "io/asio_stream.hpp"

#include <cerrno>
#include <exception>
#include <sys/random.h>

namespace redlock::io
{

clock::time_point asio_environment::now() const noexcept
{
    return clock::now();
}

void asio_environment::random(std::span<std::byte> out) const noexcept
{
    // Not buffered, because after a fork both processes would draw the same numbers from their copies of the buffer.
    while (!out.empty())
    {
        const ssize_t got = ::getrandom(out.data(), out.size(), 0);
        if (got > 0)
        {
            out = out.subspan(static_cast<std::size_t>(got));
        }
        else if (errno != EINTR)
        {
            // Owner ids would not be unique. getrandom exists since Linux 3.17.
            std::terminate();
        }
    }
}

std::unique_ptr<runtime::stream>
asio_environment::make_stream(runtime::scheduler& strand, const master& to) const
{
    if (to.is_unix())
    {
        return make_unix_stream(strand, to);
    }
    if (to.is_tls())
    {
        return make_tls_stream(strand, to, tls_);
    }
    return make_tcp_stream(strand, to);
}

std::unique_ptr<runtime::alarm> asio_environment::make_alarm(runtime::scheduler& strand) const
{
    return std::make_unique<asio_alarm>(strand);
}

} // namespace redlock::io
