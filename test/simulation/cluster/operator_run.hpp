// SPDX-License-Identifier: BSL-1.0
// A run of `redlock provision`, as an operator makes it to change the group.
#pragma once

#include <redlock/config.hpp>
#include <redlock/error.hpp>
#include <redlock/provision.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace redlock::test
{

class cluster_run;
class process;

/// One run. It looks at the masters, and changes the group, or arms or retires masters so that it can be changed.
class operator_run
{
  public:
    /// Begins it in a process of its own. A change that succeeds restarts all clients.
    operator_run(cluster_run& cluster, const config& masters, const provision_options& options);

    /// It has completed, or its process was killed.
    bool ended() const;
    bool succeeded() const { return state_->result && !*state_->result; }
    /// The places of its masters that belong to a group that nobody remembers. Empty if it has succeeded.
    std::vector<std::size_t> strangers() const;

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
