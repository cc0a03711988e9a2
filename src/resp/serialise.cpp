// SPDX-License-Identifier: BSL-1.0
// Writes commands as RESP. Every argument is a bulk string: its length goes first, so its bytes need no care.
#include "resp/serialise.hpp"

#include <algorithm>
#include <cstring>

namespace redlock::resp
{

namespace
{

// The end of what came before, the type byte, a length and a line end.
constexpr std::size_t longest_header = 2 + 1 + 20 + 2;

char* write_header(char* at, char type, std::size_t length) noexcept
{
    *at++ = type;
    at = std::to_chars(at, at + 20, length).ptr;
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

} // namespace

void append_command(std::string& out, std::span<const std::string_view> arguments)
{
    if (arguments.empty())
    {
        return; // "*0" would be no command: the server answers nothing, and replies would be off by one.
    }
    // All memory first: a command is written as a whole or, when there is no memory, not at all.
    std::size_t most = out.size() + longest_header;
    for (const std::string_view argument : arguments)
    {
        most += longest_header + argument.size();
    }
    if (most > out.capacity())
    {
        out.reserve(std::max(most, 2 * out.capacity()));
    }

    std::array<char, longest_header> header;
    const auto append_header = [&](const char* end)
    { out.append(header.data(), static_cast<std::size_t>(end - header.data())); };

    append_header(write_header(header.data(), '*', arguments.size()));
    std::size_t line_end = 0; // of the argument before: written together with the next header
    for (const std::string_view argument : arguments)
    {
        std::memcpy(header.data(), "\r\n", line_end);
        append_header(write_header(header.data() + line_end, '$', argument.size()));
        out.append(argument);
        line_end = 2;
    }
    out.append("\r\n", line_end);
}

void append_command(std::string& out, std::initializer_list<std::string_view> arguments)
{
    append_command(out, std::span<const std::string_view>{arguments.begin(), arguments.size()});
}

} // namespace redlock::resp
