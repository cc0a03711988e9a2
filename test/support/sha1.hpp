// SPDX-License-Identifier: BSL-1.0
// SHA-1, as SCRIPT LOAD answers it.
#pragma once

#include <string>
#include <string_view>

namespace redlock::test
{

/// The SHA-1 of these bytes, as 40 small hexadecimal digits.
std::string sha1_hex(std::string_view bytes);

} // namespace redlock::test
