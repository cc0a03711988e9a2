// SPDX-License-Identifier: BSL-1.0
// The result of parsing a stream, as text that tests can compare and print.
#pragma once

#include "resp/parser.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// Formats one node per line: depth, kind, and value; a text has its length, so that the result is unambiguous.
inline std::string to_text(const resp::reply& reply)
{
    static constexpr std::array<std::string_view, 14> names{
        "simple_string", "simple_error", "integer",    "bulk_string", "null", "array", "boolean",
        "double",        "big_number",   "bulk_error", "verbatim",    "map",  "set",   "push"};
    std::string out;
    for (const resp::node& node : reply.nodes)
    {
        out += std::to_string(node.depth) + ' ';
        out += names.at(static_cast<std::size_t>(node.kind));
        out += " size=" + std::to_string(node.size) + " integer=" + std::to_string(node.integer);
        out += " text=" + std::to_string(node.text.size()) + ':';
        out += node.text;
        out += '\n';
    }
    return out;
}

/// The replies of a stream, and its end.
struct stream_result
{
    std::vector<std::string> replies;
    resp::parse_error error = resp::parse_error::none;

    bool operator==(const stream_result&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const stream_result& result)
    {
        for (const std::string& reply : result.replies)
        {
            out << reply << "--\n";
        }
        return out << resp::describe(result.error) << '\n';
    }
};

/// Adds the complete replies.
inline void drain(resp::parser& parser, stream_result& result)
{
    while (const resp::reply* reply = parser.next())
    {
        result.replies.push_back(to_text(*reply));
    }
    result.error = parser.error();
}

/// Feeds bytes in one piece, or in several if the parser has no room for all of them. Stops at an error.
inline void feed(resp::parser& parser, std::string_view bytes, stream_result& result)
{
    while (!bytes.empty() && result.error == resp::parse_error::none)
    {
        const std::span<char> room = parser.prepare();
        const std::size_t size = std::min(room.size(), bytes.size());
        if (size == 0)
        {
            return; // No room: the test fails because replies are missing.
        }
        std::memcpy(room.data(), bytes.data(), size);
        parser.commit(size);
        bytes.remove_prefix(size);
        drain(parser, result);
    }
}

/// Feeds the pieces to a new parser, one after the other.
inline stream_result parse(const std::vector<std::string_view>& pieces, resp::limits limits = {})
{
    resp::parser parser{limits};
    stream_result result;
    for (const std::string_view piece : pieces)
    {
        feed(parser, piece, result);
    }
    return result;
}

} // namespace redlock::test
