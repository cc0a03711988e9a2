// SPDX-License-Identifier: BSL-1.0
// The servers of other ways to lock: each on a free port of the loopback interface, with a directory of its own.
#pragma once

#include "support/child_process.hpp"
#include "support/server.hpp"

#include <string>
#include <vector>

namespace redlock::bench
{

/// The last lines of a file, as one.
std::string last_lines(const std::string& path);

/// A cluster of one node, with its settings at their defaults: it writes each change to disk before it says so.
class etcd_server
{
  public:
    /// Waits until it can be connected to, which may be before it serves. Throws when there is no etcd, or it ends.
    etcd_server();

    /// What `peers/peer.js` is to be told of it.
    std::vector<std::string> address() const { return {std::to_string(port_)}; }

  private:
    std::string output() const { return directory_.path() + "/output"; }

    test::temporary_directory directory_;
    int port_ = 0;
    test::child_process process_;
};

/// With its settings at their defaults. It takes root for nobody to work for: then it runs as the user `postgres`.
class postgres_server
{
  public:
    /// Likewise, and throws when its files can't be made.
    postgres_server();
    postgres_server(const postgres_server&) = delete;
    postgres_server& operator=(const postgres_server&) = delete;
    /// Ends it in order: killed, it would leave shared memory behind.
    ~postgres_server();

    /// What `peers/peer.js` is to be told of it.
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
