// SPDX-License-Identifier: BSL-1.0
// The framing of replies, independent of the library's parser. An incomplete reply is parsed from its start each time.
#include "exchange_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace redlock::test
{
namespace
{

/// Returns the number in a line; -1 is a null of RESP2.
std::int64_t length_in(std::string_view line)
{
    constexpr std::int64_t max_number = 1'000'000'000;
    std::int64_t number = 0;
    const auto [last, error] = std::from_chars(line.data() + 1, line.data() + line.size(), number);
    if (error != std::errc{} || last != line.data() + line.size() || number < -1 || number > max_number)
    {
        throw malformed_reply{fmt::format("'{}': not a length", line)};
    }
    return number;
}

/// Returns the size of the first value in the text; empty if it is incomplete.
std::optional<std::size_t> first_value(std::string_view text)
{
    std::size_t position = 0;
    for (std::int64_t missing = 1; missing > 0; --missing)
    {
        const std::size_t end = text.find("\r\n", position);
        if (end == std::string_view::npos)
        {
            return {};
        }
        const std::string_view line = text.substr(position, end - position);
        position = end + 2;
        switch (line.empty() ? '\0' : line.front())
        {
        case '+':
        case '-':
        case ':':
        case '_':
        case ',':
        case '#':
        case '(':
            break;
        case '$':
        case '=':
        case '!':
            if (const std::int64_t size = length_in(line); size >= 0)
            {
                position += static_cast<std::size_t>(size) + 2;
            }
            break;
        case '*':
        case '~':
        case '>':
            missing += std::max(length_in(line), std::int64_t{0});
            break;
        case '%':
            missing += 2 * std::max(length_in(line), std::int64_t{0});
            break;
        case '|': // The value follows its attributes, unless they are skipped on their own.
            missing += 2 * std::max(length_in(line), std::int64_t{0}) + (line.data() == text.data() ? 0 : 1);
            break;
        default:
            throw malformed_reply{fmt::format("'{}' where a value belongs", line)};
        }
        if (position > text.size())
        {
            return {};
        }
    }
    return position;
}

} // namespace

void exchange_reader::feed_commands(std::string_view bytes)
{
    reader_.feed(bytes);
    while (std::optional<command> words = reader_.next())
    {
        unanswered_.push_back(*std::move(words));
    }
}

std::optional<exchange> exchange_reader::next()
{
    while (!unanswered_.empty())
    {
        const std::optional<std::size_t> size = first_value(replies_);
        if (!size)
        {
            break;
        }
        const bool is_reply = replies_.front() != '>' && replies_.front() != '|';
        exchange found;
        if (is_reply)
        {
            found = {std::move(unanswered_.front()), replies_.substr(0, *size)};
            unanswered_.pop_front();
        }
        else if (
            replies_.starts_with(">3\r\n$9\r\nsubscribe\r\n") && name_of(unanswered_.front()) == "SUBSCRIBE")
        {
            unanswered_.pop_front(); // A push is its only answer.
        }
        replies_.erase(0, *size);
        if (is_reply)
        {
            return found;
        }
    }
    return {};
}

} // namespace redlock::test
