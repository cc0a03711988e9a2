// SPDX-License-Identifier: BSL-1.0
// A TCP server that answers what the test says, when it says it, as wrong as it says it.
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

/// Listens on 127.0.0.1 in a thread of its own, with one more thread per connection. Every function may be
/// called from any thread.
class scripted_server
{
  public:
    /// How many commands are kept for `commands()`. Later ones are only counted.
    static constexpr std::size_t most_recorded = 100'000;

    /// Serves every connection with this behaviour.
    explicit scripted_server(behaviour how);
    scripted_server(scripted_server&&) noexcept;
    scripted_server& operator=(scripted_server&&) noexcept;
    /// Ends all connections and waits for their scripts to return.
    ~scripted_server();

    /// The port on 127.0.0.1.
    int port() const;
    /// redis://127.0.0.1:port.
    std::string url() const;
    /// Serves connections that come from now on in another way.
    void behave(behaviour how);
    /// Ends the connections that are there.
    void end_connections();

    /// How many clients are connected now.
    std::size_t connections() const;
    /// How many clients have connected so far.
    std::size_t accepted() const;
    /// The commands that have come, on all connections, in the order in which they were read.
    std::vector<command> commands() const;
    /// How often a command of this name has come; the name in capitals.
    std::size_t count(std::string_view name) const;
    /// Requests that were malformed, and exceptions that scripts threw. A test expects it to be empty.
    std::vector<std::string> complaints() const;
    /// Waits until at least so many clients have connected. False when they haven't in time.
    bool wait_for_connections(std::size_t at_least_accepted, std::chrono::milliseconds at_most);
    /// Waits until no client is connected. False when one still is after this time.
    bool wait_for_no_connection(std::chrono::milliseconds at_most);
    /// Waits until a command of this name has come at least so often. False when it hasn't in time.
    bool wait_for_command(std::string_view name, std::size_t at_least, std::chrono::milliseconds at_most);

  private:
    class engine;
    std::unique_ptr<engine> engine_;
};

} // namespace redlock::test
