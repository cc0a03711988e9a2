// SPDX-License-Identifier: BSL-1.0
// Another way to lock than redlock, as a client to be measured: a program of its own, below peers/.
#pragma once

#include "harness/client.hpp"

#include "support/child_process.hpp"
#include "support/loopback.hpp"
#include "support/server.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace redlock::bench
{

/// It stays connected from the first stretch to the last. The stopwatch runs in the program, so that the way to it and
/// back isn't measured. CPU time and allocations aren't told.
class peer_client final : public client
{
  public:
    /// Starts the program for this kind of peer and waits until it is connected; `peers/peer.js` says which kinds there
    /// are and what is said, and `redis++` has a program of its own. Throws with the reason when it can't.
    peer_client(const std::string& kind, const std::vector<std::string>& addresses);

    /// Name and version of what it locks with.
    const std::string& name() const { return name_; }
    /// What that is, and how it is set.
    const std::string& description() const { return description_; }

    /// One worker only. Throws when it ends, doesn't answer in time, or no acquire succeeded.
    run_record run(const workload& load) override;

  private:
    std::string output() const { return directory_.path() + "/output"; }
    std::string read_line(std::chrono::nanoseconds time_limit);

    test::temporary_directory directory_;
    test::unique_fd socket_;
    test::child_process program_;
    std::string unread_;
    std::string name_;
    std::string description_;
};

} // namespace redlock::bench
