// SPDX-License-Identifier: BSL-1.0
// The words of the commands for the wait queue, after their name, their digest or text, and "1".
#pragma once

#include <cstddef>
#include <string_view>

namespace redlock::test::queue_words
{

inline constexpr std::size_t key = 3;

inline constexpr std::size_t ask_member = 4;
inline constexpr std::size_t ask_owner_id = 5;
inline constexpr std::size_t ask_waited = 7;
inline constexpr std::size_t ask_count = 10;

inline constexpr std::size_t release_owner_id = 4;
inline constexpr std::size_t release_mode = 6;
inline constexpr std::size_t release_member = 7;
inline constexpr std::size_t release_waited = 8;
inline constexpr std::size_t release_pause = 10;

/// Returns the name of a client in the queue: without the mark of those that receive no messages.
constexpr std::string_view without_mark(std::string_view member)
{
    return member.starts_with('-') ? member.substr(1) : member;
}

/// Returns whether the reply to a question says that the client is in the queue.
constexpr bool is_entered(std::string_view reply)
{
    return reply.starts_with("*3\r\n:") && !reply.starts_with("*3\r\n:-");
}

/// Returns the number of clients in the queue, by the reply to the question of one of them.
constexpr std::size_t waiting(std::string_view reply)
{
    std::size_t number = 0;
    for (const char digit : reply.substr(reply.rfind(':') + 1))
    {
        number =
            digit == '\r' || digit == '\n' ? number : 10 * number + static_cast<std::size_t>(digit - '0');
    }
    return number;
}

} // namespace redlock::test::queue_words
