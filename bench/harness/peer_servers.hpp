// SPDX-License-Identifier: BSL-1.0
// The servers that are compared with redlock, each on a free loopback port and with a temporary directory.
#pragma once

#include "support/child_process.hpp"
#include "support/server.hpp"

#include <string>
#include <vector>

namespace redlock::bench
{

/// Returns the last lines of a file as one line.
std::string last_lines(const std::string& path);

/// A single-node cluster with default settings: each change is written to disk before it is confirmed.
class etcd_server
{
  public:
    /// Waits until the port accepts connections; the server may still be starting. Throws if etcd isn't installed or
    /// exits.
    etcd_server();

    /// Returns the arguments for `peers/peer.js`.
    std::vector<std::string> address() const { return {std::to_string(port_)}; }

  private:
    std::string output() const { return directory_.path() + "/output"; }

    test::temporary_directory directory_;
    int port_ = 0;
    test::child_process process_;
};

/// A server with default settings. PostgreSQL refuses to run as root; in that case it runs as the user `postgres`.
class postgres_server
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
    std::string output() const { return directory_.path() + "/output"; }
    void write_password() const;
    void run_initdb(const std::vector<std::string>& as_user, const std::string& programs) const;

    test::temporary_directory directory_;
    int port_ = 0;
    test::child_process process_;
};

} // namespace redlock::bench
