// SPDX-License-Identifier: BSL-1.0
// The second reference: a minimal client on Boost.Asio, which shows how much of the library's cost is Asio's. It
// sends the same commands as the epoll client.
#pragma once

#include "harness/client.hpp"
#include "harness/reference_protocol.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace redlock::bench
{

/// Throws if a master refuses a command or closes the connection. It has no timeout, so it is only measured with
/// healthy masters.
class asio_client final : public client
{
  public:
    /// Connects to the masters on these ports of the loopback interface.
    explicit asio_client(std::span<const int> ports);

    run_record run(const workload& load) override;

  private:
    struct connection
    {
        boost::asio::ip::tcp::socket socket;
        std::array<char, 16384> buffer{};
    };

    void send_all();
    void receive(std::size_t master);
    void on_received(std::size_t master, std::size_t bytes);

    boost::asio::io_context io_{1};
    std::vector<connection> connections_;
    reference_protocol protocol_;
    stopwatch* watch_ = nullptr; // Of the current run.
};

} // namespace redlock::bench
