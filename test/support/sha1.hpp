// SPDX-License-Identifier: BSL-1.0
// SHA-1, as in the reply to SCRIPT LOAD.
#pragma once

#include <string>
#include <string_view>

namespace redlock::test
{

/// Returns the SHA-1 of these bytes as 40 lower-case hexadecimal digits.
std::string sha1_hex(std::string_view bytes);

} // namespace redlock::test
