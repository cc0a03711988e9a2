// SPDX-License-Identifier: BSL-1.0
// Rules for kept leases: a loss has a cause.
#pragma once

#include "wire_rules.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// The times of a kept lease.
struct kept_times
{
    clock::duration validity; // The ttl without its drift.
    std::chrono::milliseconds margin;
    std::chrono::milliseconds node_timeout;
};

/// Checks the events of a process, by its clock:
///   kept   a lease is lost, and fewer than two extensions that were sent after the confirmed one had a node timeout to be
///          answered, although there was time for two
class keep_rules
{
  public:
    /// A caller got a kept lease.
    void
    begin(std::string_view owner_id, clock::time_point valid_until, kept_times times, clock::time_point now);
    /// Returns a broken rule; empty if no rule is broken. `last_pause`: when the process was paused last.
    std::optional<violation> notified(const event& what, clock::time_point now, clock::time_point last_pause);

  private:
    struct kept_lease
    {
        kept_times times;
        clock::time_point valid_until;
        clock::time_point confirmed; // When it became known.
    };

    std::optional<violation>
    check_loss(const lease_lost& lost, clock::time_point now, clock::time_point last_pause) const;

    std::map<std::string, kept_lease, std::less<>> kept_;                     // By owner id.
    std::map<std::string, std::vector<clock::time_point>, std::less<>> sent_; // Extensions, by owner id.
};

} // namespace redlock::test
