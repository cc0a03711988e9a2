// SPDX-License-Identifier: BSL-1.0
// A TLS server with a certificate for each server name, as one address of several hosts has it.
#pragma once

#include "certificates.hpp"
#include "loopback.hpp"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace redlock::test
{

/// Listens on 127.0.0.1, and ends each connection when the client ends it or fails the handshake. It presents the
/// certificate of the server name that the client sends (SNI, case-sensitive), or that of the empty name to a client that
/// sends none. It refuses other names with `unrecognized_name`. One connection at a time.
class tls_server
{
  public:
    explicit tls_server(const std::map<std::string, certificate_files>& certificates);
    tls_server(const tls_server&) = delete;
    tls_server& operator=(const tls_server&) = delete;
    ~tls_server();

    int port() const { return listener_.port; }
    /// Returns the server names as they were sent, one for each client hello. Empty for a client that sent none.
    std::vector<std::string> names() const;

  private:
    struct contexts;

    void serve();
    void handshake(const unique_fd& client);

    listener listener_;
    std::unique_ptr<contexts> contexts_;
    mutable std::mutex mutex_;
    std::vector<std::string> names_;
    int client_ = -1; // The connection that is served.
    bool stopping_ = false;
    std::thread thread_;
};

} // namespace redlock::test
