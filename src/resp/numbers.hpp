// SPDX-License-Identifier: BSL-1.0
// The syntax of numbers in RESP.
#pragma once

#include <string_view>

namespace redlock::resp
{

/// Returns whether `text` is one or more digits without leading zeros.
bool is_plain_number(std::string_view text) noexcept;
/// Returns whether `text` is a plain number with an optional minus sign, other than "-0".
bool is_big_number(std::string_view text) noexcept;
/// Returns whether `text` is a number as printed by "%.17g": digits with an optional minus sign, fraction and exponent,
/// or inf or nan.
bool is_double(std::string_view text) noexcept;

} // namespace redlock::resp
