// SPDX-License-Identifier: BSL-1.0
// Which master may go by which run id: the one that announced it first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::net
{

/// The run ids of a manager's masters. Two addresses with one run id lead to one server, or one of them lies: the first one
/// keeps it, also while it is disconnected, until it announces another one. So a server that announces the run id of another
/// never takes its place, and two addresses that were exchanged get along again: whatever the first announces, the second
/// one's is free.
class run_ids
{
  public:
    explicit run_ids(std::size_t masters) : claimed_(masters) {}

    /// A master has announced this. False if it is another one's. A master that announces none keeps what it has.
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
    std::vector<std::string> claimed_; // By each master; empty where it has announced none that is its own.
};

} // namespace redlock::net
