// SPDX-License-Identifier: BSL-1.0
// Detects two addresses of one server by its run id.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::net
{

/// The run ids of a manager's masters. If two addresses announce the same run id, they lead to the same server, or one
/// of the servers announces a false one. The master that announced it first keeps it, even while it is disconnected,
/// until it announces another one. So a server can't displace another one by announcing its run id; and if the servers
/// of two addresses are exchanged, both recover, because each announcement frees the master's previous run id.
class run_ids
{
  public:
    explicit run_ids(std::size_t masters) : claimed_(masters) {}

    /// Records the run id that a master has announced. Returns false if it belongs to another master. A master that
    /// announces none keeps its previous run id.
    bool claim(std::size_t master, std::string_view run_id)
    {
        if (run_id.empty() || claimed_[master] == run_id)
        {
            return true;
        }
        claimed_[master].clear();
        const bool free = std::find(claimed_.begin(), claimed_.end(), run_id) == claimed_.end();
        if (free)
        {
            claimed_[master] = run_id;
        }
        return free;
    }

  private:
    std::vector<std::string> claimed_; // The run id of each master; empty if it has none.
};

} // namespace redlock::net
