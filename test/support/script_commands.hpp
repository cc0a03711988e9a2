// SPDX-License-Identifier: BSL-1.0
// The commands that a script of Lua may run.
#pragma once

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <string>
#include <string_view>

namespace redlock::test
{

/// Returns the commands that the text of a script names, in capitals.
inline std::set<std::string> commands_of(std::string_view script)
{
    static const std::regex call{R"re((?:call|read|try\(\w+, |\{)\(?"(\w+)")re"};
    const std::string text{script};
    std::set<std::string> names;
    for (std::sregex_iterator at{text.begin(), text.end(), call}; at != std::sregex_iterator{}; ++at)
    {
        std::string name = (*at)[1];
        std::transform(
            name.begin(), name.end(), name.begin(),
            [](unsigned char each) { return static_cast<char>(std::toupper(each)); });
        names.insert(std::move(name));
    }
    return names;
}

} // namespace redlock::test
