// SPDX-License-Identifier: BSL-1.0
// Connects a socket to a host by name: resolves the name each time, and tries one address after the other.
#pragma once

#include "io/name_lookup.hpp"
#include "runtime/scheduler.hpp"

#include <redlock/error.hpp>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::io
{

namespace asio = boost::asio;

/// Connects a socket to one of the addresses of a host. Each address gets an equal share of the remaining time, so that
/// one that doesn't answer leaves time for the others. If the process was suspended, or its thread busy, until the time was
/// over, they share an eighth of it.
class tcp_connector final : private runtime::deadline
{
  public:
    using tcp = asio::ip::tcp;
    using completion = std::function<void(error_code)>;

    tcp_connector(runtime::scheduler& strand, tcp::socket& socket, std::string host, std::uint16_t port);

    /// Begins with this address of the name, counted from 0; see `runtime::stream`.
    void begin_with(std::size_t address) noexcept { first_ = address; }
    /// Connects, and calls `done` once, in a later step. The time until `until` is divided among the addresses; the
    /// caller closes the connector at `until`, if `done` has not been called.
    void connect(clock::time_point until, completion done);
    /// Does the same with addresses that are known.
    void connect_to(std::vector<tcp::endpoint> addresses, clock::time_point until, completion done);
    /// Causes `done` to be called soon with `operation_aborted`, unless it has been called. The caller then closes the
    /// socket.
    void close() noexcept;
    /// Returns why connecting has not succeeded, in addition to the error; often empty.
    std::string_view complaint() const noexcept { return complaint_; }

  private:
    void begin(clock::time_point until, completion done);
    void resolve();
    void on_resolved(error_code result);
    void take(std::vector<tcp::endpoint> addresses);
    void try_next();
    void on_attempt(error_code result);
    void finish(error_code result);
    void on_deadline() override;

    runtime::scheduler& strand_;
    tcp::socket& socket_;
    std::string host_;
    std::uint16_t port_;
    clock::time_point until_{};
    clock::duration least_{}; // The least time that the addresses share.
    completion done_;
    std::vector<tcp::endpoint> addresses_;
    std::size_t first_ = 0;
    std::size_t next_ = 0;
    std::shared_ptr<name_lookup> lookup_;     // While the name is being resolved.
    asio::posix::stream_descriptor resolved_; // Becomes readable when the name has been resolved.
    std::string_view complaint_;
    bool overdue_ = false; // The attempt in flight has used up its share of the time.
    bool closed_ = false;
    error_code last_error_;
};

} // namespace redlock::io
