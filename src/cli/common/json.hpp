// SPDX-License-Identifier: BSL-1.0
// Strings as JSON values.
#pragma once

#include <boost/json/value.hpp>

#include <string_view>

namespace redlock::cli
{

/// Returns a JSON string. Each byte that isn't UTF-8 is replaced by U+FFFD.
boost::json::value json_string(std::string_view bytes);
/// Returns a JSON string, or null if `bytes` is empty.
boost::json::value json_string_or_null(std::string_view bytes);

} // namespace redlock::cli
