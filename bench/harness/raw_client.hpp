// SPDX-License-Identifier: BSL-1.0
// The reference: the least that a client on epoll can do. Commands formatted once, one write to each master for all that
// there is to say to it, and each pair goes on at its majority. No deadlines, no retries, no reconnects: it is no lock to
// be used.
#pragma once

#include "harness/client.hpp"
#include "harness/reference_protocol.hpp"

#include "support/loopback.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace redlock::bench
{

/// Throws when a master refuses, breaks off or doesn't answer: the reference is only measured with healthy
/// ones.
class raw_client final : public client
{
  public:
    /// Of the masters, on the loopback interface.
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
