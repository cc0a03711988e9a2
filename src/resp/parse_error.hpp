// SPDX-License-Identifier: BSL-1.0
// The errors of a RESP stream.
#pragma once

#include <cstdint>
#include <string_view>

namespace redlock::resp
{

/// The reason why a stream can't be parsed any further.
enum class parse_error : std::uint8_t
{
    none,              // No error.
    unknown_type,      // A reply or an element starts with a byte that is not a RESP type.
    bad_length,        // A length is not a plain number of up to ten digits, or -1 where that means null.
    bad_integer,       // An integer is not a plain decimal number of 64 bits.
    bad_boolean,       // A boolean is neither t nor f.
    bad_number,        // A double or a big number has the wrong syntax.
    bad_verbatim,      // A verbatim string doesn't start with three characters and a colon.
    missing_line_end,  // CR LF is missing, or a line contains a single CR or LF.
    streamed,          // A length is "?": an aggregate or string of unknown size, which is not supported.
    misplaced_push,    // A push within another reply.
    too_deep,          // More nested aggregates than limits::depth.
    too_many_elements, // More elements than limits::elements.
    line_too_long,     // A line of more than limits::line_bytes.
    reply_too_long     // A reply of more than limits::reply_bytes.
};

/// Returns a description for a log or an error message.
std::string_view describe(parse_error value) noexcept;

} // namespace redlock::resp
