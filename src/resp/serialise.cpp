// SPDX-License-Identifier: BSL-1.0
// Serialises commands as RESP. Each argument is a bulk string with its length, so its bytes need no escaping.
#include "resp/serialise.hpp"

#include <algorithm>

namespace redlock::resp
{

namespace
{

// A type byte, a length and a line end.
constexpr std::size_t max_header_size = 1 + 20 + 2;

char* write_line_end(char* at) noexcept
{
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

char* write_header(char* at, char type, std::size_t length) noexcept
{
    *at++ = type;
    return write_line_end(std::to_chars(at, at + 20, length).ptr);
}

} // namespace

void append_command(std::string& out, std::span<const std::string_view> arguments)
{
    if (arguments.empty())
    {
        return; // A server doesn't reply to "*0", so later replies would be matched to the wrong commands.
    }
    // Allocate first, so that a command is written completely, or not at all if memory is exhausted.
    const std::size_t before = out.size();
    std::size_t most = before + max_header_size;
    for (const std::string_view argument : arguments)
    {
        most += max_header_size + argument.size() + 2;
    }
    if (most > out.capacity())
    {
        out.reserve(std::max(most, 2 * out.capacity()));
    }
    out.resize(most);

    char* at = write_header(out.data() + before, '*', arguments.size());
    for (const std::string_view argument : arguments)
    {
        at = write_header(at, '$', argument.size());
        at = write_line_end(std::copy(argument.begin(), argument.end(), at));
    }
    out.resize(static_cast<std::size_t>(at - out.data()));
}

void append_command(std::string& out, std::initializer_list<std::string_view> arguments)
{
    append_command(out, std::span<const std::string_view>{arguments.begin(), arguments.size()});
}

} // namespace redlock::resp
