// SPDX-License-Identifier: BSL-1.0
// The options of each subcommand's manager.
#pragma once

#include "cli/common/arguments.hpp"

#include <redlock/config.hpp>

namespace redlock::cli
{

/// Returns the options of a manager. Throws `system_error` with `errc::invalid_master` if a URL can't be used, and with
/// `errc::invalid_config` if files for TLS are given and no master uses TLS.
config manager_config(const master_arguments& asked);
/// Same, with the key prefix.
config manager_config(const resource_arguments& asked);

/// Replaces the library's names of options by those of the command.
std::string in_terms_of_command(std::string text);
/// Reports such an error on stderr. Returns its exit code.
int refuse(const system_error& error);

} // namespace redlock::cli
