// SPDX-License-Identifier: BSL-1.0
// A TCP server whose answers, right or wrong, and their timing are defined by the test.
#pragma once

#include "behaviours.hpp"
#include "session.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// Listens on 127.0.0.1 on its own thread, with one more thread per connection. Thread-safe.
class fake_server
{
  public:
    /// The most commands that `commands()` returns. Later ones are only counted.
    static constexpr std::size_t max_recorded = 100'000;

    /// Serves every connection with this behaviour.
    explicit fake_server(behaviour how);
    fake_server(fake_server&&) noexcept;
    fake_server& operator=(fake_server&&) noexcept;
    /// Ends all connections and waits for their threads.
    ~fake_server();

    /// Returns the port on 127.0.0.1.
    int port() const;
    /// redis://127.0.0.1:port.
    std::string url() const;
    /// Changes the behaviour for new connections.
    void behave(behaviour how);
    /// Ends the existing connections.
    void end_connections();

    /// Returns the number of connected clients.
    std::size_t connections() const;
    /// Returns the number of connections accepted so far.
    std::size_t accepted() const;
    /// Returns the commands received on all connections, in the order in which they were read.
    std::vector<command> commands() const;
    /// Returns how often a command was received; the name is in capitals.
    std::size_t count(std::string_view name) const;
    /// Returns malformed requests, and exceptions thrown by scripts. A test expects none.
    std::vector<std::string> complaints() const;
    /// Waits until this many clients have connected. False if they don't in time.
    bool wait_for_connections(std::size_t at_least_accepted, std::chrono::milliseconds at_most);
    /// Waits until no client is connected. False if one still is after this time.
    bool wait_for_no_connection(std::chrono::milliseconds at_most);
    /// Waits until a command was received this many times. False if it isn't in time.
    bool wait_for_command(std::string_view name, std::size_t at_least, std::chrono::milliseconds at_most);

  private:
    class engine;
    std::unique_ptr<engine> engine_;
};

} // namespace redlock::test
