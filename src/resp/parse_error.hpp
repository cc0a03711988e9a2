// SPDX-License-Identifier: BSL-1.0
// What can be wrong with a RESP stream.
#pragma once

#include <cstdint>
#include <string_view>

namespace redlock::resp
{

/// Why a stream can't be read any further.
enum class parse_error : std::uint8_t
{
    none,              // Nothing is wrong so far.
    unknown_type,      // A reply or an element starts with a byte that is no RESP type.
    bad_length,        // A length is no plain decimal number of at most ten digits, or -1 where that is null.
    bad_integer,       // An integer is no plain decimal number of 64 bits.
    bad_boolean,       // A boolean is neither t nor f.
    bad_number,        // A double or a big number isn't written as one.
    bad_verbatim,      // A verbatim string doesn't start with three characters and a colon.
    missing_line_end,  // CR LF is missing where it has to be, or one of them stands alone in a line.
    streamed,          // A length is "?": an aggregate or string of unknown size, which is not supported.
    misplaced_push,    // A push stands inside of another reply.
    too_deep,          // More aggregates inside each other than limits::depth.
    too_many_elements, // More elements than limits::elements.
    line_too_long,     // A line of more than limits::line_bytes.
    reply_too_long     // A reply of more than limits::reply_bytes.
};

/// A sentence for a log or an error message.
std::string_view describe(parse_error value) noexcept;

} // namespace redlock::resp
