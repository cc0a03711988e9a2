// SPDX-License-Identifier: BSL-1.0
// Prepares server messages for display: short, printable, and without the manager's passwords.
#include "manager/redactor.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace redlock::manager
{

namespace
{

constexpr std::string_view mark = "***";

/// The text that is searched for passwords. A `short_text` shows less than a tenth of it, whatever is redacted.
constexpr std::size_t max_bytes = 1024;

/// A password is redacted wherever this many of its first bytes occur: they would give most of it away.
constexpr std::size_t min_secret_beginning = 8;

/// A shorter match at the end of a text is considered a coincidence.
constexpr std::size_t min_cut_bytes = 3;

/// Quotes arguments as Redis does in errors and logs (sdscatrepr).
std::string in_quotes(std::string_view text)
{
    constexpr std::string_view digits = "0123456789abcdef";
    constexpr std::string_view special = "\\\"\n\r\t\a\b";
    constexpr std::string_view letters = "\\\"nrtab";
    std::string out;
    for (const char each : text)
    {
        const auto byte = static_cast<unsigned char>(each);
        if (const std::size_t at = special.find(each); at != std::string_view::npos)
        {
            out += {'\\', letters[at]};
        }
        else if (byte >= 0x20 && byte < 0x7f)
        {
            out += each;
        }
        else
        {
            out += {'\\', 'x', digits[byte >> 4], digits[byte & 0x0f]};
        }
    }
    return out;
}

/// Replaces line breaks as Redis does in error messages.
std::string in_one_line(std::string text)
{
    std::replace_if(
        text.begin(), text.end(), [](char one) { return one == '\r' || one == '\n'; }, ' ');
    return text;
}

/// Redacts each occurrence of the secret, or of enough of its first bytes.
void blank_out(std::string& text, std::string_view secret)
{
    const std::string_view beginning = secret.substr(0, min_secret_beginning);
    for (std::size_t at = text.find(beginning); at != std::string::npos;
         at = text.find(beginning, at + mark.size()))
    {
        const std::string_view rest = std::string_view{text}.substr(at);
        const auto [end, unlike] = std::mismatch(secret.begin(), secret.end(), rest.begin(), rest.end());
        text.replace(at, static_cast<std::size_t>(end - secret.begin()), mark);
    }
}

/// Redacts the beginning of a secret at the end of the text, including before the quote that follows a truncation.
void blank_out_cut(std::string& text, std::string_view secret)
{
    for (const std::size_t end : {text.size(), text.find_last_not_of("'\"`. ") + 1})
    {
        const std::string_view shown = std::string_view{text}.substr(0, end);
        for (std::size_t length = std::min(secret.size() - 1, min_secret_beginning - 1);
             length >= min_cut_bytes; --length)
        {
            if (shown.ends_with(secret.substr(0, length)))
            {
                text.replace(end - length, length, mark);
                return;
            }
        }
    }
}

} // namespace

redactor::redactor(std::span<const master> masters)
{
    for (const master& each : masters)
    {
        const std::string& password = each.password().reveal();
        for (std::string form : {password, in_quotes(password), in_one_line(password)})
        {
            if (!form.empty() && std::find(secrets_.begin(), secrets_.end(), form) == secrets_.end())
            {
                secrets_.push_back(std::move(form));
            }
        }
    }
    std::stable_sort(
        secrets_.begin(), secrets_.end(),
        [](const std::string& left, const std::string& right) { return left.size() > right.size(); });
}

short_text redactor::show(std::string_view raw) const
{
    return secrets_.empty() || raw.empty() ? short_text{raw}
                                           : short_text{redact(std::string{raw.substr(0, max_bytes)})};
}

std::string redactor::redact(std::string text) const
{
    for (const std::string& each : secrets_)
    {
        blank_out(text, each);
        blank_out_cut(text, each);
    }
    return text;
}

} // namespace redlock::manager
