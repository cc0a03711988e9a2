// SPDX-License-Identifier: BSL-1.0
// The other reference: the least that a client on Boost.Asio can do, for telling what of the library's cost is Asio's own.
// It says the same as the one on epoll.
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

/// Throws when a master refuses or breaks off, and waits for ever when one doesn't answer: it is only measured with
/// healthy ones.
class asio_client final : public client
{
  public:
    /// Of the masters, on the loopback interface.
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
    stopwatch* watch_ = nullptr; // Of the stretch that is on.
};

} // namespace redlock::bench
