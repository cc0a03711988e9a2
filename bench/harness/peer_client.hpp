// SPDX-License-Identifier: BSL-1.0
// A client that uses another lock library or server: a program in peers/, run as a child process.
#pragma once

#include "harness/client.hpp"

#include "support/child_process.hpp"
#include "support/server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace redlock::bench
{

/// The program stays connected between runs. It measures the time itself, so that the pipe isn't part of it. CPU
/// time and allocations aren't measured.
class peer_client final : public client
{
  public:
    /// Starts the program for this kind of peer and waits until it is connected. `peers/peer.js` documents the kinds
    /// and the protocol; `redis++` has a separate program. Throws with the reason if that fails.
    peer_client(const std::string& kind, const std::vector<std::string>& addresses);

    /// Name and version of the library or server.
    const std::string& name() const { return name_; }
    /// Its configuration, in words.
    const std::string& description() const { return description_; }

    /// Supports one worker. Throws if the program ends, exceeds the time limit, or no acquire succeeded.
    run_record run(const workload& load) override;

  private:
    std::string output() const { return directory_.path() + "/output"; }
    std::string read_line(std::chrono::nanoseconds time_limit);

    test::temporary_directory directory_;
    boost::asio::io_context io_{1};
    boost::asio::local::stream_protocol::socket socket_{io_};
    test::child_process program_;
    std::string unread_;
    std::string name_;
    std::string description_;
};

} // namespace redlock::bench
