// SPDX-License-Identifier: BSL-1.0
// The stale connections, which may still run a SET of ours, and have to be killed ahead of any release or new SET.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace redlock::net
{

/// The guard against stale connections. A SET that was written to a connection that broke may run on the server after
/// its release, which is sent on the next connection. Therefore the next connection first kills the broken ones, by
/// their client ids.
///
/// A restarted server assigns the same client ids again. Under another run id, or an unknown one, the ids may be those
/// of other clients, so nothing is killed. That is safe after a restart, because the stale connections ended with it. After a
/// name that led to another server for a while, they may not have: see Ghosts in docs/algorithm.md.
class stale_connection_guard
{
  public:
    /// The maximum number of stale connections. There should be one at most, since no SET is sent before the earlier
    /// connections are confirmed dead; the limit is a safeguard.
    static constexpr std::size_t max_remembered = 64;

    /// Records the client id and the run id of a new connection; 0 and "" if the server doesn't reveal them.
    void identify(std::int64_t client_id, std::string run_id)
    {
        if (run_id.empty() || run_id != run_id_)
        {
            to_kill_.clear();
        }
        client_id_ = client_id;
        run_id_ = std::move(run_id);
    }

    /// Records that the connection broke with a SET unanswered, so that it has become stale.
    void mark_stale()
    {
        if (client_id_ != 0 && !run_id_.empty() && to_kill_.size() < max_remembered)
        {
            to_kill_.push_back(client_id_);
        }
    }

    /// Returns the client ids of the stale connections.
    const std::vector<std::int64_t>& to_kill() const noexcept { return to_kill_; }
    /// Records that all stale connections are dead, or that the server doesn't permit killing them.
    void confirm() noexcept { to_kill_.clear(); }

    /// Returns the run id of the server, as learnt by the last connection.
    const std::string& run_id() const noexcept { return run_id_; }

  private:
    std::int64_t client_id_ = 0;
    std::string run_id_;
    std::vector<std::int64_t> to_kill_;
};

} // namespace redlock::net
