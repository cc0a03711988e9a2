// SPDX-License-Identifier: BSL-1.0
// The syntax of numbers in RESP, as servers write them. Strict, and independent of the locale.
#include "resp/numbers.hpp"

#include <algorithm>

namespace redlock::resp
{

namespace
{

bool is_digit(char byte) noexcept
{
    return byte >= '0' && byte <= '9';
}

const char* skip_digits(const char* at, const char* end) noexcept
{
    return std::find_if_not(at, end, is_digit);
}

std::string_view without_minus(std::string_view text) noexcept
{
    return text.starts_with('-') ? text.substr(1) : text;
}

} // namespace

// One or more digits without leading zeros.
bool is_plain_number(std::string_view text) noexcept
{
    const char* const end = text.data() + text.size();
    return !text.empty() && skip_digits(text.data(), end) == end && (text.front() != '0' || text.size() == 1);
}

bool is_big_number(std::string_view text) noexcept
{
    return is_plain_number(without_minus(text)) && text != "-0";
}

// The output of "%.17g": digits, a fraction, an exponent; or inf or nan.
bool is_double(std::string_view text) noexcept
{
    text = without_minus(text);
    if (text == "inf" || text == "nan")
    {
        return true;
    }
    const char* at = text.data();
    const char* const end = at + text.size();
    // Reads one or more digits.
    const auto digits = [&at, end]
    {
        const char* const from = at;
        at = skip_digits(at, end);
        return at != from;
    };
    if (!digits())
    {
        return false;
    }
    if (at != end && *at == '.')
    {
        ++at;
        if (!digits())
        {
            return false;
        }
    }
    if (at != end && (*at == 'e' || *at == 'E'))
    {
        ++at;
        if (at != end && (*at == '+' || *at == '-'))
        {
            ++at;
        }
        if (!digits())
        {
            return false;
        }
    }
    return at == end;
}

} // namespace redlock::resp
