// SPDX-License-Identifier: BSL-1.0
// Replies in wire format, and parsing of arguments, for the implementation of fake and simulated masters.
#pragma once

#include "request_reader.hpp"

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace redlock::test
{

inline constexpr const char* ok_reply = "+OK\r\n";
inline constexpr const char* syntax_error_reply = "-ERR syntax error\r\n";

/// Returns a bulk string.
inline std::string bulk(std::string_view text)
{
    return fmt::format("${}\r\n{}\r\n", text.size(), text);
}

/// Returns an integer.
inline std::string number(std::int64_t value)
{
    return fmt::format(":{}\r\n", value);
}

/// Returns the null of the protocol that the client uses.
template <class Client>
std::string null_for(const Client& who)
{
    return who.protocol == 3 ? "_\r\n" : "$-1\r\n";
}

/// Returns the word in capitals.
inline std::string in_capitals(const std::string& word)
{
    return name_of({word});
}

/// Returns the number; empty if the word isn't one.
template <std::integral Number = std::int64_t>
std::optional<Number> integer_in(std::string_view word)
{
    Number value = 0;
    const auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc{} && last == word.data() + word.size() ? std::optional{value} : std::nullopt;
}

} // namespace redlock::test
