// SPDX-License-Identifier: BSL-1.0
// Checks the options of a manager.
#pragma once

#include <redlock/config.hpp>

namespace redlock::api
{

/// Throws `system_error` with the option, its value and the allowed range if an option can't be used:
/// `errc::invalid_config`, or `errc::invalid_master` for two masters that are the same server.
void check(const config& options);

} // namespace redlock::api
