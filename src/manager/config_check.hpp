// SPDX-License-Identifier: BSL-1.0
// Whether the options of a manager can be used.
#pragma once

#include <redlock/config.hpp>

namespace redlock::manager
{

/// Throws `system_error` (`errc::invalid_config`; `errc::invalid_master` if two masters are one server) with
/// the option, its value and the allowed range.
void check(const config& options);

} // namespace redlock::manager
