// SPDX-License-Identifier: BSL-1.0
// What a run of provisioning does. Includes the standard library only, because the pure layers use it.
#pragma once

#include <cstdint>

namespace redlock
{

/// What a run of `async_provision` does.
enum class provision_action : std::uint8_t
{
    /// Makes the masters a group. All of them are needed.
    make_group,
    /// Arms the masters of a group with `arming_policy::by_hand` that were restarted with their data. A quorum of them is
    /// needed. If fewer were restarted, clients arm them.
    arm,
    /// Makes a group grant again that has lost the data of more masters than clients can arm. `config::guarded` has to name the
    /// group, because empty servers may be the wrong ones. A quorum of masters is needed.
    arm_again,
    /// Deletes the markers of the masters, so that none of them votes: servers with old data, such as a copy of a virtual
    /// machine, before clients can reach them. Each server is an entry of `config::masters`.
    retire,
    /// Replaces a group by another one, with other masters, another `max_ttl` or another policy. Each lock has expired before
    /// the new group grants one. A quorum of the old masters is needed, and all of the new ones.
    change_group
};

} // namespace redlock
