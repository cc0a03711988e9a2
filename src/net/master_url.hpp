// SPDX-License-Identifier: BSL-1.0
// Reads the address of a master from a URL.
#pragma once

#include <redlock/master.hpp>

#include <string_view>
#include <variant>

namespace redlock::net
{

/// Throws `system_error` with `errc::invalid_master`, and says which part is wrong, for what isn't
/// `redis://[user[:password]@]host[:port][/db]` or `unix:///path[?db=n]`.
std::variant<tcp_address, unix_address> read_master_url(std::string_view url);

} // namespace redlock::net
