// SPDX-License-Identifier: BSL-1.0
// Puts the text of a script together at compile time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace redlock::net
{

/// Joins string literals at compile time.
template <std::size_t... sizes>
consteval auto join(const char (&... parts)[sizes])
{
    std::array<char, (0 + ... + (sizes - 1))> joined{};
    char* end = joined.data();
    ((end = std::copy_n(parts, sizes - 1, end)), ...);
    return joined;
}

} // namespace redlock::net
