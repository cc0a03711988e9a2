// SPDX-License-Identifier: BSL-1.0
// Parses the URL of a master.
#pragma once

#include <redlock/master.hpp>

#include <string_view>
#include <variant>

namespace redlock::api
{

/// Parses `redis://[[user]:password@]host[:port][/db]`, `rediss://...` or `unix:///path[?db=n]`. Throws `system_error`
/// with `errc::invalid_master`, and a message that names the invalid part, for any other text.
std::variant<tcp_address, unix_address> read_master_url(std::string_view url);

} // namespace redlock::api
