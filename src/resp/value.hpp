// SPDX-License-Identifier: BSL-1.0
// What a server said: the nodes of one RESP reply, and how to look at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace redlock::resp
{

/// What a node is. RESP2 knows the first six; RESP3 adds the others.
enum class kind : std::uint8_t
{
    simple_string,   // "+": one line, such as OK
    simple_error,    // "-": one line that starts with the error's code, such as NOSCRIPT
    integer,         // ":": 64 bits, signed
    bulk_string,     // "$": any bytes
    null,            // "_", and RESP2's "$-1" and "*-1"
    array,           // "*": any nodes
    boolean,         // "#": integer is 1 or 0
    double_number,   // ",": kept as the text that was sent, inf and nan among it
    big_number,      // "(": more than 64 bits, kept as text
    bulk_error,      // "!": an error of any bytes
    verbatim_string, // "=": a text with a format in front ("txt:"), which is cut off
    map,             // "%": keys and values by turns
    set,             // "~": an array without an order
    push             // ">": sent without having been asked for; the first element says what it is
};

/// One node of a reply. Nodes stand in pre-order: an aggregate is followed by its children.
struct node
{
    resp::kind kind;
    std::uint8_t depth;    // 0 for the root
    std::uint32_t size;    // elements of an aggregate (a map counts keys and values), 0 otherwise
    std::int64_t integer;  // of an integer and a boolean, 0 otherwise
    std::string_view text; // of strings, errors, doubles and big numbers, empty otherwise
};

/// One complete reply. A view: it lives until the parser is touched again.
struct reply
{
    std::span<const node> nodes; // never empty in a reply that a parser hands out

    const node& root() const noexcept { return nodes.front(); }
    bool is_error() const noexcept
    {
        return root().kind == kind::simple_error || root().kind == kind::bulk_error;
    }
    bool is_null() const noexcept { return root().kind == kind::null; }
    bool is_push() const noexcept { return root().kind == kind::push; }
    std::string_view text() const noexcept { return root().text; }
    std::int64_t integer() const noexcept { return root().integer; }

    /// The value of a text key in the root's map (RESP3) or array of keys and values by turns (RESP2);
    /// nullptr when the key is missing or the root is something else.
    const node* find(std::string_view key) const noexcept
    {
        if (root().kind != kind::map && root().kind != kind::array)
        {
            return nullptr;
        }
        bool at_key = false; // The root's own children are keys and values by turns.
        for (std::size_t index = 1; index + 1 < nodes.size(); ++index)
        {
            const node& child = nodes[index];
            if (child.depth != 1)
            {
                continue;
            }
            at_key = !at_key;
            const bool is_text = child.kind == kind::simple_string || child.kind == kind::bulk_string ||
                                 child.kind == kind::verbatim_string;
            if (at_key && is_text && child.text == key)
            {
                return &nodes[index + 1]; // A text has no children: its value is what comes next.
            }
        }
        return nullptr;
    }
};

} // namespace redlock::resp
