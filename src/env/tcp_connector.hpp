// SPDX-License-Identifier: BSL-1.0
// Connects a socket to a host by its name: resolves it anew, and tries one address after the other.
#pragma once

#include "env/scheduler.hpp"

#include <redlock/error.hpp>

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redlock::env
{

/// Each address that a name leads to gets an equal share of the time that is left: one that hangs costs no more.
class tcp_connector final : private deadline
{
  public:
    using tcp = asio::ip::tcp;
    using completion = std::function<void(error_code)>;

    /// No name needs more; what is behind these isn't tried.
    static constexpr std::size_t most_addresses = 16;

    tcp_connector(scheduler& strand, tcp::socket& socket, std::string host, std::uint16_t port);

    /// Calls `done` in a later turn, by `until` or a little after it. Once.
    void connect(clock::time_point until, completion done);
    /// The same with addresses that are known.
    void connect_to(std::vector<tcp::endpoint> addresses, clock::time_point until, completion done);
    /// `done` is called soon, with `operation_aborted`, if it wasn't. The caller closes the socket behind this.
    void close() noexcept;

  private:
    void resolve();
    void try_next();
    void on_attempt(error_code result);
    void finish(error_code result);
    void on_deadline() override;

    scheduler& strand_;
    tcp::socket& socket_;
    tcp::resolver resolver_;
    std::string host_;
    std::uint16_t port_;
    clock::time_point until_{};
    completion done_;
    std::vector<tcp::endpoint> addresses_;
    std::size_t next_ = 0;
    bool resolving_ = false;
    bool overdue_ = false; // The attempt in flight has had its share of the time.
    bool closed_ = false;
    error_code last_error_;
    // A name server that hangs holds the resolver's thread for longer than this lives.
    std::shared_ptr<char> alive_ = std::make_shared<char>();
};

} // namespace redlock::env
