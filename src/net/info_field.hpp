// SPDX-License-Identifier: BSL-1.0
// The fields of a reply to INFO.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace redlock::net
{

/// Returns the value of `name:` in a reply to INFO; empty if it is missing.
inline std::string_view info_field(std::string_view info, std::string_view name) noexcept
{
    for (std::size_t at = 0; at < info.size();)
    {
        const std::size_t end = std::min(info.find("\r\n", at), info.size());
        const std::string_view line = info.substr(at, end - at);
        if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':')
        {
            return line.substr(name.size() + 1);
        }
        at = end + 2;
    }
    return {};
}

} // namespace redlock::net
