// SPDX-License-Identifier: BSL-1.0
// Boost.JSON writes strings as they are, so they are made valid UTF-8 first.
#include "cli/common/json.hpp"

#include <boost/locale/utf.hpp>

namespace redlock::cli
{

boost::json::value json_string(std::string_view bytes)
{
    namespace utf = boost::locale::utf;
    boost::json::string text;
    for (const char* next = bytes.data(); next != bytes.data() + bytes.size();)
    {
        const char* const start = next;
        if (utf::is_valid_codepoint(utf::utf_traits<char>::decode(next, bytes.data() + bytes.size())))
        {
            text.append(start, next);
        }
        else
        {
            text.append("\xef\xbf\xbd");
            next = start + 1;
        }
    }
    return text;
}

boost::json::value json_string_or_null(std::string_view bytes)
{
    return bytes.empty() ? nullptr : json_string(bytes);
}

} // namespace redlock::cli
