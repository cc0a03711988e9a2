// SPDX-License-Identifier: BSL-1.0
// Escapes as in RFC 8259, and what is UTF-8 as in RFC 3629.
#include "cli/json.hpp"

#include <fmt/format.h>

#include <cstddef>

namespace redlock::cli
{

namespace
{

constexpr std::string_view replacement = "\\ufffd";

unsigned byte_at(std::string_view bytes, std::size_t at) noexcept
{
    return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0U;
}

bool in_range(unsigned value, unsigned least, unsigned most) noexcept
{
    return value >= least && value <= most;
}

/// How many bytes the character at the front has, 0 if there is none: overlong forms, surrogates and what is above
/// U+10FFFF aren't any.
std::size_t length_of_character(std::string_view bytes) noexcept
{
    const unsigned first = byte_at(bytes, 0);
    const unsigned second = byte_at(bytes, 1);
    const bool third = in_range(byte_at(bytes, 2), 0x80, 0xbf);
    const bool fourth = in_range(byte_at(bytes, 3), 0x80, 0xbf);
    if (first < 0x80)
    {
        return 1;
    }
    if (in_range(first, 0xc2, 0xdf))
    {
        return in_range(second, 0x80, 0xbf) ? 2 : 0;
    }
    if (in_range(first, 0xe0, 0xef))
    {
        const unsigned least = first == 0xe0 ? 0xa0 : 0x80;
        const unsigned most = first == 0xed ? 0x9f : 0xbf;
        return in_range(second, least, most) && third ? 3 : 0;
    }
    if (in_range(first, 0xf0, 0xf4))
    {
        const unsigned least = first == 0xf0 ? 0x90 : 0x80;
        const unsigned most = first == 0xf4 ? 0x8f : 0xbf;
        return in_range(second, least, most) && third && fourth ? 4 : 0;
    }
    return 0;
}

std::string escaped(std::string_view character)
{
    const char only = character.front();
    switch (only)
    {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        break;
    }
    const auto value = static_cast<unsigned char>(only);
    return value < 0x20 || value == 0x7f ? fmt::format("\\u{:04x}", value) : std::string{character};
}

} // namespace

std::string json_string(std::string_view bytes)
{
    std::string text = "\"";
    while (!bytes.empty())
    {
        const std::size_t length = length_of_character(bytes);
        text += length == 0 ? std::string{replacement} : escaped(bytes.substr(0, length));
        bytes.remove_prefix(length == 0 ? 1 : length);
    }
    return text + '"';
}

std::string json_string_or_null(std::string_view bytes)
{
    return bytes.empty() ? std::string{"null"} : json_string(bytes);
}

} // namespace redlock::cli
