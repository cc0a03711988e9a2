// SPDX-License-Identifier: BSL-1.0
// How numbers are written in RESP.
#pragma once

#include <string_view>

namespace redlock::resp
{

/// One or more digits, without zeros in front.
bool is_plain_number(std::string_view text) noexcept;
/// The same, perhaps with a minus; not "-0".
bool is_big_number(std::string_view text) noexcept;
/// Digits, perhaps with a minus, a fraction and an exponent, as "%.17g" prints them; or inf or nan.
bool is_double(std::string_view text) noexcept;

} // namespace redlock::resp
