// SPDX-License-Identifier: BSL-1.0
// A TCP server whose answers, right or wrong, and their timing are defined by the test.
#pragma once

#include "behaviours.hpp"
#include "loopback.hpp"
#include "session.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace redlock::test
{

/// Listens on 127.0.0.1 on its own thread, with one more thread per connection. Thread-safe.
class fake_server
{
  public:
    /// Serves every connection with this behaviour.
    explicit fake_server(behaviour how);
    fake_server(const fake_server&) = delete;
    fake_server& operator=(const fake_server&) = delete;
    /// Ends all connections and waits for their threads.
    ~fake_server();

    /// Returns the port on 127.0.0.1.
    int port() const { return listener_.port; }
    /// redis://127.0.0.1:port.
    std::string url() const;
    /// Changes the behaviour for new connections.
    void behave(behaviour how);
    /// Ends the existing connections.
    void end_connections();

    /// Returns the number of connections accepted so far.
    std::size_t accepted() const;
    /// Returns the commands received on all connections, in the order in which they were read. After 100000, they
    /// are only counted.
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
    struct served
    {
        std::thread thread;
        bool over = false;
    };

    void accept_all();
    void take(unique_fd socket);
    void serve(served& place, const behaviour& how, std::unique_ptr<session> client);
    void join_those_that_are_over();
    void record(const command& words);
    void complain(std::string what);
    std::size_t counted(std::string_view name) const;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t accepted_ = 0;
    std::list<session*> clients_;
    std::vector<command> commands_;
    std::map<std::string, std::size_t, std::less<>> counts_;
    std::vector<std::string> complaints_;
    behaviour behaviour_;
    bool stopping_ = false;
    listener listener_;
    std::list<served> served_;
    std::thread acceptor_;
};

} // namespace redlock::test
