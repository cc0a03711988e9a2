// SPDX-License-Identifier: BSL-1.0
// The messages of parse errors.
#include "resp/parse_error.hpp"

namespace redlock::resp
{

std::string_view describe(parse_error value) noexcept
{
    switch (value)
    {
    case parse_error::none:
        return "no error";
    case parse_error::unknown_type:
        return "the server sent something that is not RESP";
    case parse_error::bad_length:
        return "the server sent a length that is not a plain number";
    case parse_error::bad_integer:
        return "the server sent an integer that is not a plain number of 64 bits";
    case parse_error::bad_boolean:
        return "the server sent a boolean that is neither true nor false";
    case parse_error::bad_number:
        return "the server sent a double or a big number with invalid syntax";
    case parse_error::bad_verbatim:
        return "the server sent a verbatim string without its format";
    case parse_error::missing_line_end:
        return "the server sent a line or a string that does not end with CR LF";
    case parse_error::streamed:
        return "the server sent a reply of unknown length, which is not supported";
    case parse_error::misplaced_push:
        return "the server sent a push within another reply";
    case parse_error::too_deep:
        return "the server sent a reply that is nested too deeply";
    case parse_error::too_many_elements:
        return "the server sent a reply with too many elements";
    case parse_error::line_too_long:
        return "the server sent a line that is too long";
    case parse_error::reply_too_long:
        return "the server sent a reply that is too long";
    }
    return "unknown error";
}

} // namespace redlock::resp
