// SPDX-License-Identifier: BSL-1.0
// The reference: a minimal client on epoll. Commands are formatted once, all pending commands for a master are
// sent with one write, and a pair continues at its majority. It has no deadlines, retries or reconnects, so it
// can't be used as a lock.
#pragma once

#include "harness/client.hpp"
#include "harness/reference_protocol.hpp"

#include "support/loopback.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace redlock::bench
{

/// Throws if a master refuses a command, closes the connection or doesn't answer. It is only measured with healthy
/// masters.
class raw_client final : public client
{
  public:
    /// Connects to the masters on these ports of the loopback interface.
    explicit raw_client(std::span<const int> ports);

    run_record run(const workload& load) override;

  private:
    void send_all();
    void wait(stopwatch& watch);
    void receive(std::size_t master, stopwatch& watch);

    test::unique_fd epoll_;
    std::vector<test::unique_fd> sockets_;
    reference_protocol protocol_;
};

} // namespace redlock::bench
