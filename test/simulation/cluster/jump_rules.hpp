// SPDX-License-Identifier: BSL-1.0
// What guarded mode promises although a master's clock has jumped ahead.
#pragma once

#include "wire_rules.hpp"

#include <redlock/clock.hpp>

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

/// Checks that a jump isn't forgotten:
///   known clock   a client that was notified of it counts a vote of the master before all locks of then have ended, although
///                 the master has been in no other quarantine since
class jump_rules
{
  public:
    /// A manager of a process, by their numbers.
    using client = std::pair<int, int>;

    /// A clock is set. `nonce`: that of the master's marker.
    void set(std::size_t master, bool ahead, clock::time_point at, const std::string& nonce);
    /// The clocks of masters have wrong speeds, or that of a client has stood still.
    void distrust() noexcept { distrusted_ = true; }
    /// A manager reports that a clock is ahead.
    void noticed(const client& by, std::size_t master, clock::time_point at, const std::string& nonce);
    /// Returns whether any clock was set, or had a wrong speed.
    bool were_wrong() const noexcept { return distrusted_ || !all_.empty(); }
    /// An acquire that began at `began` counts the vote of a master.
    std::optional<violation> counted(
        const client& by, clock::time_point began, std::size_t master, clock::time_point now,
        const std::string& nonce, std::chrono::milliseconds max_ttl) const;

  private:
    struct change
    {
        std::size_t master;
        bool ahead;
        clock::time_point at;
        std::string nonce;
    };
    struct knowledge
    {
        change jump;
        clock::time_point since;
    };

    std::vector<change> all_; // In their order.
    std::map<std::pair<client, std::size_t>, knowledge> known_;
    bool distrusted_ = false;
};

} // namespace redlock::test
