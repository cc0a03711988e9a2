// SPDX-License-Identifier: BSL-1.0
// Replies as bytes, and the words of commands as values: for the honest master's own files.
#pragma once

#include "honest_master.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace redlock::test
{

inline constexpr const char* ok_reply = "+OK\r\n";
inline constexpr const char* syntax_error_reply = "-ERR syntax error\r\n";

/// A bulk string.
inline std::string bulk(std::string_view text)
{
    return fmt::format("${}\r\n{}\r\n", text.size(), text);
}

/// An integer.
inline std::string number(std::int64_t value)
{
    return fmt::format(":{}\r\n", value);
}

/// The null of the protocol that the client speaks.
inline std::string null_for(const honest_master::client& who)
{
    return who.protocol == 3 ? "_\r\n" : "$-1\r\n";
}

/// The word in capitals.
inline std::string in_capitals(const std::string& word)
{
    return name_of({word});
}

/// The number that the whole word is.
inline std::optional<std::int64_t> integer_in(const std::string& word)
{
    std::int64_t value = 0;
    const auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc{} && last == word.data() + word.size() ? std::optional{value} : std::nullopt;
}

} // namespace redlock::test
