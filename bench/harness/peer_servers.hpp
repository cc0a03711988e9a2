// SPDX-License-Identifier: BSL-1.0
// The servers that are compared with redlock, each on a free loopback port and with a temporary directory.
#pragma once

#include "support/child_process.hpp"
#include "support/loopback.hpp"
#include "support/server.hpp"

#include <string>
#include <vector>

namespace redlock::bench
{

/// Returns the last lines of a program's output as one line.
std::string end_of(const std::string& output);

/// A free loopback port, and a process with a temporary directory.
class peer_server
{
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
class etcd_server : peer_server
{
  public:
    /// Waits until the port accepts connections; the server may still be starting. Throws if etcd isn't installed or
    /// exits.
    etcd_server();

    /// Returns the arguments for `peers/peer.js`.
    std::vector<std::string> address() const { return {std::to_string(port_)}; }
};

/// A server with default settings. PostgreSQL refuses to run as root; in that case it runs as the user `postgres`.
class postgres_server : peer_server
{
  public:
    /// Waits until the port accepts connections. Throws if PostgreSQL isn't installed or exits, or if initdb fails.
    postgres_server();
    postgres_server(const postgres_server&) = delete;
    postgres_server& operator=(const postgres_server&) = delete;
    /// Shuts the server down with SIGINT. After SIGKILL its shared memory would remain.
    ~postgres_server();

    /// Returns the arguments for `peers/peer.js`.
    std::vector<std::string> address() const { return {std::to_string(port_), password_file()}; }

  private:
    std::string password_file() const { return directory_.path() + "/password"; }
    void write_password() const;
};

} // namespace redlock::bench
