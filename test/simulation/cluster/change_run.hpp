// SPDX-License-Identifier: BSL-1.0
// The change of a guarded group, as an operator makes it with `redlock provision --change`.
#pragma once

#include <redlock/error.hpp>
#include <redlock/provision.hpp>

#include <chrono>
#include <memory>
#include <optional>

namespace redlock::test
{

class cluster_run;
class process;

/// Replaces the group by one of the same masters.
class change_run
{
  public:
    /// Begins it in a process of its own. `takeover`: replaces the group of another run as well, if that hasn't finished.
    change_run(cluster_run& cluster, std::chrono::milliseconds max_ttl, bool takeover);

    /// It has completed, or its process was killed.
    bool ended() const;
    bool succeeded() const { return state_->result && !*state_->result; }

  private:
    struct state
    {
        std::optional<error_code> result{};
        provision_report report{};
    };

    std::shared_ptr<process> process_;
    std::shared_ptr<state> state_;
};

} // namespace redlock::test
