// SPDX-License-Identifier: BSL-1.0
// A TCP proxy between clients and one server, with the faults that a network can have, told by the test.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace redlock::test
{

/// Runs in a thread of its own. Every function may be called from any thread. One that changes something
/// returns when it is in force: bytes that come to the proxy afterwards are treated the new way, on the
/// connections that are there as on later ones.
class proxy
{
  public:
    /// Listens on a free port of 127.0.0.1 and connects each client to this port.
    explicit proxy(int upstream_port);
    proxy(proxy&&) noexcept;
    proxy& operator=(proxy&&) noexcept;
    /// Closes everything; what is held is thrown away.
    ~proxy();

    /// The port for clients.
    int port() const;
    /// redis://127.0.0.1:port.
    std::string url() const;

    /// Delivers what arrives from now on this much later, in both directions. Order is kept.
    void set_delay(std::chrono::microseconds each_way);
    /// Keeps what clients send; up to 1 MiB a connection, then it stops reading. An end of the connection is
    /// kept behind the bytes.
    void hold_to_server();
    /// Keeps what the server sends, likewise.
    void hold_to_client();
    /// Ends both holds: everything held is delivered, in order.
    void release_held();
    /// Throws away what clients send from now on, the end of a connection as well, or stops doing so.
    void drop_to_server(bool on);
    /// Throws away what the server sends, likewise.
    void drop_to_client(bool on);
    /// Forwards single bytes, in both directions, each with a write of its own, or stops doing so.
    void split_bytes(bool on);
    /// Ends all connections with RST, to the client and to the server. What the proxy still has is lost.
    void reset_connections();
    /// Ends all connections in an orderly way (FIN), to the client and to the server. What the proxy still
    /// has is lost.
    void close_connections();
    /// The clients see RST, the server sees nothing: its connections stay, and what is held for it is
    /// delivered there by `release_held`, then their end. The hold goes on for those connections only; new
    /// connections are not held unless `hold_to_server` is called again.
    void close_client_side_keep_server();
    /// Closes new connections at once, or stops doing so. They count as accepted.
    void refuse(bool on);

    /// How many clients are connected now.
    std::size_t connections() const;
    /// How many clients have connected so far.
    std::size_t accepted() const;
    /// How many bytes have come from clients, counted as they arrive: also those held or thrown away.
    std::size_t bytes_to_server() const;
    /// Waits until at least so many bytes have come from clients. False when they haven't in time.
    bool wait_for_bytes_to_server(std::size_t at_least, std::chrono::milliseconds at_most);
    /// Waits until at least so many clients have connected. False when they haven't in time.
    bool wait_for_connections(std::size_t at_least_accepted, std::chrono::milliseconds at_most);
    /// Waits until no client is connected. False when one still is after this time.
    bool wait_for_no_connection(std::chrono::milliseconds at_most);

  private:
    class engine;
    std::unique_ptr<engine> engine_;
};

} // namespace redlock::test
