// SPDX-License-Identifier: BSL-1.0
// Byte streams over TCP and unix sockets.
#include "env/asio_stream.hpp"

#include "env/channel_stream.hpp"
#include "env/tcp_connector.hpp"

#include <boost/asio/local/stream_protocol.hpp>

#include <string>

namespace redlock::env
{

namespace
{

using asio::ip::tcp;
using unix_socket = asio::local::stream_protocol;

class tcp_stream final : public channel_stream<tcp::socket>
{
  public:
    tcp_stream(scheduler& strand, const master& to)
        : channel_stream{strand, strand.strand().get_inner_executor()},
          connector_{strand, channel_, to.host(), to.port()}
    {
    }

    void connect(io_operation& operation, clock::time_point until) override
    {
        operation.start();
        connector_.connect(until, [&operation](error_code result) { operation.finish(result, 0); });
    }

    void close() noexcept override
    {
        connector_.close();
        channel_stream::close();
    }

  private:
    tcp_connector connector_;
};

class unix_stream final : public channel_stream<unix_socket::socket>
{
  public:
    unix_stream(scheduler& strand, const master& to)
        : channel_stream{strand, strand.strand().get_inner_executor()}, path_{to.host()}
    {
    }

    void connect(io_operation& operation, clock::time_point) override
    {
        operation.start();
        auto done = [&operation](error_code error) { operation.finish(error, 0); };
        channel_.async_connect(unix_socket::endpoint{path_}, strand_.bind(done));
    }

  private:
    std::string path_;
};

} // namespace

std::unique_ptr<stream> make_tcp_stream(scheduler& strand, const master& to)
{
    return std::make_unique<tcp_stream>(strand, to);
}

std::unique_ptr<stream> make_unix_stream(scheduler& strand, const master& to)
{
    return std::make_unique<unix_stream>(strand, to);
}

} // namespace redlock::env
