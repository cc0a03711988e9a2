// SPDX-License-Identifier: BSL-1.0
// The reference client on Boost.Asio: one read handler per master, non-blocking writes.
#include "harness/reference_clients.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/system/system_error.hpp>

#include <cstdint>
#include <string>

namespace redlock::bench
{

namespace asio = boost::asio;
using asio::ip::tcp;

asio_client::asio_client(std::span<const int> ports) : protocol_{ports, "payment"}
{
    for (const int port : ports)
    {
        tcp::socket& connected = connections_.emplace_back(tcp::socket{io_}).socket;
        connected.connect({asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)});
        connected.set_option(tcp::no_delay{true});
        connected.non_blocking(true);
    }
    for (std::size_t master = 0; master < connections_.size(); ++master)
    {
        receive(master);
    }
}

run_record asio_client::run(const workload& load)
{
    run_record done;
    stopwatch watch{done, load};
    watch_ = &watch;
    protocol_.start(load, watch);
    send_all();
    io_.restart();
    io_.run();
    watch.finish();
    return done;
}

void asio_client::send_all()
{
    for (std::size_t master = 0; master < connections_.size(); ++master)
    {
        std::string& output = protocol_.output(master);
        if (output.empty())
        {
            continue;
        }
        boost::system::error_code result;
        const std::size_t sent = connections_[master].socket.write_some(asio::buffer(output), result);
        if (result && result != asio::error::would_block)
        {
            throw boost::system::system_error{result, "sending to a master"};
        }
        // The rest is sent with the next commands. There is always a reply outstanding that triggers another send.
        output.erase(0, sent);
    }
}

void asio_client::receive(std::size_t master)
{
    connection& from = connections_[master];
    from.socket.async_read_some(
        asio::buffer(from.buffer),
        [this, master](boost::system::error_code result, std::size_t bytes)
        {
            if (result)
            {
                throw boost::system::system_error{result, "reading from a master"};
            }
            on_received(master, bytes);
        });
}

void asio_client::on_received(std::size_t master, std::size_t bytes)
{
    protocol_.receive(master, {connections_[master].buffer.data(), bytes}, *watch_);
    send_all();
    receive(master);
    if (protocol_.idle())
    {
        io_.stop();
    }
}

} // namespace redlock::bench
