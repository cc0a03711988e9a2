// SPDX-License-Identifier: BSL-1.0
// The reader parses an incomplete command from its start each time: that is simple, and tests send little.
#include "request_reader.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace redlock::test
{

std::string name_of(const command& words)
{
    std::string name = words.empty() ? "" : words.front();
    for (char& character : name)
    {
        if (character >= 'a' && character <= 'z')
        {
            character = static_cast<char>(character - 'a' + 'A');
        }
    }
    return name;
}

/// Reads "<mark>number CR LF" and advances the position; empty if it is incomplete.
std::optional<std::size_t> request_reader::length_at(std::size_t& position, char mark, std::size_t most) const
{
    constexpr std::size_t max_head_size = 24;
    if (position >= buffer_.size())
    {
        return {};
    }
    const std::size_t end = buffer_.find("\r\n", position);
    const std::size_t shown = std::min(max_head_size, buffer_.size() - position);
    const std::string head = buffer_.substr(position, end == std::string::npos ? shown : end - position);
    if (head.empty() || head.front() != mark || (end == std::string::npos && shown == max_head_size))
    {
        throw malformed_request{fmt::format("'{}' where a '{}' line belongs", head, mark)};
    }
    if (end == std::string::npos)
    {
        return {};
    }
    std::size_t length = 0;
    const auto [last, error] = std::from_chars(head.data() + 1, head.data() + head.size(), length);
    if (error != std::errc{} || last != head.data() + head.size() || length > most)
    {
        throw malformed_request{fmt::format("'{}': not a length up to {}", head, most)};
    }
    position = end + 2;
    return length;
}

std::optional<command> request_reader::next()
{
    std::size_t position = 0;
    const std::optional<std::size_t> words = length_at(position, '*', max_words);
    if (!words)
    {
        return {};
    }
    command result;
    for (std::size_t word = 0; word < *words; ++word)
    {
        const std::optional<std::size_t> length = length_at(position, '$', max_word_size);
        if (!length || buffer_.size() < position + *length + 2)
        {
            return {};
        }
        if (buffer_.compare(position + *length, 2, "\r\n") != 0)
        {
            throw malformed_request{"a word does not end where its length says"};
        }
        result.push_back(buffer_.substr(position, *length));
        position += *length + 2;
    }
    buffer_.erase(0, position);
    return result;
}

} // namespace redlock::test
