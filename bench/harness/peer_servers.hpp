// SPDX-License-Identifier: BSL-1.0
// The servers that are compared with redlock, each on a free loopback port and with a temporary directory.
#pragma once

#include "support/child_process.hpp"
#include "support/loopback.hpp"
#include "support/server.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace redlock::bench
{

/// Returns the last lines of a program's output as one line.
std::string end_of(const std::string& output);

/// A free loopback port, and a process with a temporary directory.
class peer_server
{
  public:
    int port() const { return port_; }
    /// Returns the user and system time of the process and its children that are still running.
    std::chrono::nanoseconds cpu() const;

  protected:
    std::string output() const { return directory_.path() + "/output"; }
    std::string data() const { return directory_.path() + "/data"; }
    /// Starts the process and waits until the port accepts connections. Throws if the process ends first.
    void start(const std::vector<std::string>& command);

    test::temporary_directory directory_;
    int port_ = test::free_port();
    test::child_process process_;
};

/// A single-node cluster with default settings: each change is written to disk before it is confirmed.
class etcd_server : public peer_server
{
  public:
    /// Waits until the port accepts connections; the server may still be starting. Throws if etcd isn't installed or
    /// exits.
    etcd_server();

    /// Returns the arguments for `peers/peer.js`.
    std::vector<std::string> address() const { return {std::to_string(port_)}; }
};

/// A server with default settings, except the number of clients. PostgreSQL refuses to run as root; in that case it runs
/// as the user `postgres`.
class postgres_server : public peer_server
{
  public:
    /// Waits until the port accepts connections. Throws if PostgreSQL isn't installed or exits, or if initdb fails.
    explicit postgres_server(std::size_t max_clients = 100);
    postgres_server(const postgres_server&) = delete;
    postgres_server& operator=(const postgres_server&) = delete;
    /// Shuts the server down with SIGINT. After SIGKILL its shared memory would remain.
    ~postgres_server();

    /// Returns the arguments for `peers/peer.js`.
    std::vector<std::string> address() const { return {std::to_string(port_), password_file()}; }
    static constexpr const char* user = "bench";
    const std::string& password() const { return password_; }

  private:
    std::string password_file() const { return directory_.path() + "/password"; }
    void write_password();

    std::string password_;
};

} // namespace redlock::bench
