// SPDX-License-Identifier: BSL-1.0
// The common part of the streams on Asio sockets, plain or encrypted: reading, writing, closing.
#pragma once

#include "runtime/environment.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include <utility>

namespace redlock::io
{

namespace asio = boost::asio;

/// A stream on an Asio socket or TLS stream. Its completion handlers only call `runtime::io_operation::finish`, which
/// notifies the waiting coroutine without resuming it.
template <class Channel>
class channel_stream : public runtime::stream
{
  public:
    template <class... Arguments>
    explicit channel_stream(runtime::scheduler& strand, Arguments&&... arguments)
        : strand_{strand}, channel_{std::forward<Arguments>(arguments)...}
    {
    }

    void read_some(std::span<char> buffer, runtime::io_operation& operation) override
    {
        operation.start();
        auto done = [this, &operation](error_code error, std::size_t bytes)
        { operation.finish(told(error), bytes); };
        channel_.async_read_some(asio::buffer(buffer.data(), buffer.size()), strand_.bind(done));
    }

    void write(std::span<const char> bytes, runtime::io_operation& operation) override
    {
        operation.start();
        auto done = [this, &operation](error_code error, std::size_t count)
        { operation.finish(told(error), count); };
        asio::async_write(channel_, asio::buffer(bytes.data(), bytes.size()), strand_.bind(done));
    }

    void close() noexcept override
    {
        error_code ignored;
        channel_.lowest_layer().close(ignored);
    }

  protected:
    /// Returns the error to report for an error of the channel.
    virtual error_code told(error_code error) { return error; }

    runtime::scheduler& strand_;
    Channel channel_;
};

} // namespace redlock::io
