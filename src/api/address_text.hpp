// SPDX-License-Identifier: BSL-1.0
// Helpers for parsing and checking addresses: permitted characters, and the parts that a message may show.
#pragma once

#include <redlock/error.hpp>
#include <redlock/report.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace redlock::api
{

inline constexpr std::string_view digits = "0123456789";
inline constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Returns whether `text` consists of digits and characters from `characters` and `more` only.
inline bool
consists_of(std::string_view text, std::string_view characters, std::string_view more = {}) noexcept
{
    const auto allowed = [&](char one)
    {
        constexpr std::size_t npos = std::string_view::npos;
        return digits.find(one) != npos || characters.find(one) != npos || more.find(one) != npos;
    };
    return std::all_of(text.begin(), text.end(), allowed);
}

/// Returns `text` for a message: shortened, and with unprintable bytes escaped.
inline std::string printable(std::string_view text)
{
    return std::string{short_text{text}.view()};
}

/// Returns a value in quotes, followed by a space; or nothing if it might be a whole URL with a password.
inline std::string in_quotes(std::string_view value)
{
    if (value.find_first_of(":@") != std::string_view::npos)
    {
        return {};
    }
    // Not a single expression, for which g++ 12 gives a false warning at -O3.
    std::string quoted{"'"};
    quoted.append(printable(value)).append("' ");
    return quoted;
}

[[noreturn]] inline void refuse_master(const std::string& text)
{
    throw system_error{errc::invalid_master, text};
}

} // namespace redlock::api
