// SPDX-License-Identifier: BSL-1.0
// Strings as JSON has them.
#pragma once

#include <string>
#include <string_view>

namespace redlock::cli
{

/// In double quotes and escaped. Valid JSON whatever the bytes are: what isn't UTF-8 becomes U+FFFD.
std::string json_string(std::string_view bytes);
/// The same, but null if it is empty.
std::string json_string_or_null(std::string_view bytes);

} // namespace redlock::cli
