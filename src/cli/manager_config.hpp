// SPDX-License-Identifier: BSL-1.0
// The options of the manager that each subcommand makes.
#pragma once

#include "cli/arguments.hpp"

#include <redlock/config.hpp>

namespace redlock::cli
{

/// Throws `system_error` with `errc::invalid_master` if a URL can't be used, and with `errc::invalid_config` if there
/// are files for TLS and no master is spoken to over it.
config manager_config(const master_arguments& asked);
/// The same with the key's prefix.
config manager_config(const resource_arguments& asked);

/// The exit code for such an error; says what was wrong.
int refuse(const system_error& error);

} // namespace redlock::cli
