// SPDX-License-Identifier: BSL-1.0
// What reading and checking an address share: which characters it may have, and what of it a message may
// show.
#pragma once

#include <redlock/error.hpp>
#include <redlock/report.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace redlock::net
{

inline constexpr std::string_view digits = "0123456789";
inline constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Whether there is nothing in `text` but digits and characters from the other two.
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

/// For a message: short, and without what isn't printable.
inline std::string printable(std::string_view text)
{
    return std::string{short_text{text}.view()};
}

/// A value in quotes, with a space behind it; empty if it might be a whole URL with its password.
inline std::string in_quotes(std::string_view value)
{
    if (value.find_first_of(":@") != std::string_view::npos)
    {
        return {};
    }
    // Not as one sum: g++ 12 warns of that at -O3, for nothing.
    std::string quoted{"'"};
    quoted.append(printable(value)).append("' ");
    return quoted;
}

[[noreturn]] inline void refuse_master(const std::string& text)
{
    throw system_error{errc::invalid_master, text};
}

} // namespace redlock::net
