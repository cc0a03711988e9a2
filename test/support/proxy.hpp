// SPDX-License-Identifier: BSL-1.0
// A TCP proxy between clients and one server, which injects network faults under the control of the test.
#pragma once

#include "proxy_link.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace redlock::test
{

/// Runs on its own thread. Thread-safe. A function that changes something returns when the change is in force: bytes
/// that reach the proxy later are subject to it, on existing and on new connections.
class proxy
{
  public:
    /// Listens on a free port of 127.0.0.1 and connects each client to `upstream_port`. The tap must not throw.
    explicit proxy(int upstream_port, proxy_tap tap = {});
    proxy(const proxy&) = delete;
    proxy& operator=(const proxy&) = delete;
    /// Closes all connections; held bytes are discarded.
    ~proxy();

    /// The port for clients.
    int port() const { return port_; }
    /// redis://127.0.0.1:port.
    std::string url() const;

    /// Delays everything that arrives from now on by this much, in both directions. Preserves the order.
    void set_delay(std::chrono::microseconds each_way);
    /// Holds what clients send, up to 1 MiB per connection; then it stops reading. The end of a connection is held,
    /// too, after the bytes.
    void hold_to_server();
    /// Holds what the server sends, likewise.
    void hold_to_client();
    /// Ends both holds: everything that was held is delivered in order.
    void release_held();
    /// Starts or stops discarding what clients send, including the end of a connection.
    void drop_to_server(bool on);
    /// Starts or stops discarding what the server sends, likewise.
    void drop_to_client(bool on);
    /// Starts or stops forwarding single bytes, each with a separate write, in both directions.
    void split_bytes(bool on);
    /// Resets all connections (RST), to the clients and to the server. Bytes in the proxy are lost.
    void reset_connections();
    /// Closes all connections in an orderly way (FIN), to the clients and to the server. Bytes in the proxy are lost.
    void close_connections();
    /// Resets the connections to the clients; those to the server stay open. `release_held` delivers the bytes held for
    /// the server, then closes these connections. The hold remains for these connections only: new connections are not
    /// held unless `hold_to_server` is called again.
    void close_client_side_keep_server();
    /// Starts or stops closing new connections at once. They count as accepted.
    void refuse(bool on);
    /// Connects clients that come from now on to another server.
    void redirect(int upstream_port);

    /// Returns the number of connected clients.
    std::size_t connections() const;
    /// Returns the number of connections accepted so far.
    std::size_t accepted() const;
    /// Returns the number of bytes received from clients, including those held or discarded.
    std::size_t bytes_to_server() const;
    /// Waits until this many bytes have come from clients. False if they don't in time.
    bool wait_for_bytes_to_server(std::size_t at_least, std::chrono::milliseconds at_most);
    /// Waits until this many clients have connected. False if they don't in time.
    bool wait_for_connections(std::size_t at_least_accepted, std::chrono::milliseconds at_most);
    /// Waits until no client is connected. False if one still is after this time.
    bool wait_for_no_connection(std::chrono::milliseconds at_most);

  private:
    void accept();
    void take(asio::ip::tcp::socket client);
    void forget_finished();
    void run(std::function<void()> change);
    void set_holds(bool to_server, bool to_client);
    void on_each_link(void (proxy_link::*change)());
    bool wait(std::chrono::milliseconds at_most, const std::function<bool()>& condition);

    const proxy_tap tap_;
    int port_ = 0;
    mutable proxy_counters counters_;
    asio::io_context io_{1};
    // Used on the proxy's thread only.
    asio::ip::tcp::endpoint upstream_;
    proxy_faults faults_;
    bool refusing_ = false;
    asio::ip::tcp::acceptor acceptor_{io_};
    std::list<std::shared_ptr<proxy_link>> links_;
    int accept_errors_ = 0;

    std::thread thread_;
};

} // namespace redlock::test
