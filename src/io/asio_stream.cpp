// SPDX-License-Identifier: BSL-1.0
// Byte streams over TCP and unix sockets.
#include "io/asio_stream.hpp"

#include "io/channel_stream.hpp"
#include "io/own_socket.hpp"
#include "io/tcp_connector.hpp"

#include <boost/asio/local/stream_protocol.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace redlock::io
{

namespace
{

using asio::ip::tcp;
using unix_socket = asio::local::stream_protocol;

/// A stream that writes directly into the socket's send buffer while there is room.
template <class Socket>
class plain_stream : public channel_stream<Socket>
{
  public:
    using channel_stream<Socket>::channel_stream;

    std::size_t write_now(std::span<const char> bytes) noexcept override
    {
        error_code full;
        if (!this->channel_.non_blocking())
        {
            this->channel_.non_blocking(true, full);
        }
        return full ? 0 : this->channel_.write_some(asio::buffer(bytes.data(), bytes.size()), full);
    }
};

class tcp_stream final : public plain_stream<tcp::socket>
{
  public:
    tcp_stream(runtime::scheduler& strand, const master& to)
        : plain_stream{strand, strand.executor()}, connector_{strand, channel_, to.host(), to.port()}
    {
    }

    void begin_with(std::size_t address) noexcept override { connector_.begin_with(address); }

    void connect(runtime::io_operation& operation, clock::time_point until) override
    {
        operation.start();
        connector_.connect(until, [&operation](error_code result) { operation.finish(result, 0); });
    }

    void close() noexcept override
    {
        connector_.close();
        plain_stream::close();
    }

    std::string_view complaint() const noexcept override { return connector_.complaint(); }

  private:
    tcp_connector connector_;
};

class unix_stream final : public plain_stream<unix_socket::socket>
{
  public:
    unix_stream(runtime::scheduler& strand, const master& to)
        : plain_stream{strand, strand.executor()}, path_{to.host()}
    {
    }

    void connect(runtime::io_operation& operation, clock::time_point) override
    {
        operation.start();
        auto done = [this, &operation](error_code error) { operation.finish(error ? error : crowded(), 0); };
        if (const error_code failed = open_own(channel_, unix_socket{}))
        {
            strand_.post([&operation, failed] { operation.finish(failed, 0); });
            return;
        }
        channel_.async_connect(unix_socket::endpoint{path_}, strand_.bind(done));
    }

    std::string_view complaint() const noexcept override { return complaint_; }

  private:
    /// If a server's queue of connections is full, the system call fails with EAGAIN. Asio takes that for a connection in
    /// progress, waits until the socket could be written to, which it could at once, and finds no error.
    error_code crowded()
    {
        error_code failed;
        channel_.remote_endpoint(failed);
        if (failed != asio::error::not_connected)
        {
            return {};
        }
        complaint_ = "too many connections wait there until they are accepted";
        return asio::error::try_again;
    }

    std::string path_;
    std::string_view complaint_;
};

} // namespace

std::unique_ptr<runtime::stream> make_tcp_stream(runtime::scheduler& strand, const master& to)
{
    return std::make_unique<tcp_stream>(strand, to);
}

std::unique_ptr<runtime::stream> make_unix_stream(runtime::scheduler& strand, const master& to)
{
    return std::make_unique<unix_stream>(strand, to);
}

} // namespace redlock::io
