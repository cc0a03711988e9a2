// SPDX-License-Identifier: BSL-1.0
// The processes around this one: those that descend from it, and those that could continue it.
#pragma once

#include <vector>

#include <sys/types.h>

namespace redlock::cli
{

/// Returns the living processes that descend from this one, as /proc shows them at this moment. A zombie is left out,
/// unless one of its threads still runs. `excluded` are left out with all that descends from them. Empty without /proc.
std::vector<pid_t> descendants(const std::vector<pid_t>& excluded = {});

/// Returns whether this process is in a job: an ancestor of the same session, such as a shell, is in another process
/// group, and can continue this one if it stops. In an orphaned group the kernel discards the stops of a terminal; what
/// reads them by signalfd has to do that itself. False without /proc, unless that ancestor is the parent.
bool can_be_continued() noexcept;

} // namespace redlock::cli
