// SPDX-License-Identifier: BSL-1.0
// A RESP reply, as a sequence of nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace redlock::resp
{

/// The type of a node. The first six are those of RESP2; the others were added by RESP3.
enum class kind : std::uint8_t
{
    simple_string,   // "+": one line, such as OK.
    simple_error,    // "-": one line that starts with the error code, such as NOSCRIPT.
    integer,         // ":": a signed 64-bit integer.
    bulk_string,     // "$": any bytes.
    null,            // "_", and RESP2's "$-1" and "*-1".
    array,           // "*": any nodes.
    boolean,         // "#": integer is 1 or 0.
    double_number,   // ",": kept as the text that was sent, which may be inf or nan.
    big_number,      // "(": more than 64 bits, kept as text.
    bulk_error,      // "!": an error of any bytes.
    verbatim_string, // "=": a text with a format prefix ("txt:"), which is removed.
    map,             // "%": alternating keys and values.
    set,             // "~": an unordered array.
    push             // ">": an out-of-band message, whose first element is its type.
};

/// One node of a reply. Nodes are in pre-order: an aggregate is followed by its children.
struct node
{
    resp::kind kind;
    std::uint8_t depth;    // 0 for the root.
    std::uint32_t size;    // The number of elements of an aggregate (keys and values of a map), otherwise 0.
    std::int64_t integer;  // The value of an integer or a boolean, otherwise 0.
    std::string_view text; // The text of strings, errors, doubles and big numbers, otherwise empty.
};

/// One complete reply. A view, which is valid until the parser reads on or is reset.
struct reply
{
    std::span<const node> nodes; // Never empty in a reply that is returned by a parser.

    const node& root() const noexcept { return nodes.front(); }
    bool is_error() const noexcept
    {
        return root().kind == kind::simple_error || root().kind == kind::bulk_error;
    }
    bool is_null() const noexcept { return root().kind == kind::null; }
    bool is_push() const noexcept { return root().kind == kind::push; }
    std::string_view text() const noexcept { return root().text; }
    std::int64_t integer() const noexcept { return root().integer; }

    /// Returns the value of a text key in the root, which is a map (RESP3) or an array of alternating keys and values
    /// (RESP2), or nullptr if the key is missing or the root has another type.
    const node* find(std::string_view key) const noexcept
    {
        if (root().kind != kind::map && root().kind != kind::array)
        {
            return nullptr;
        }
        bool at_key = false; // The direct children of the root are alternating keys and values.
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
                return &nodes[index + 1]; // A text has no children, so the next node is its value.
            }
        }
        return nullptr;
    }
};

} // namespace redlock::resp
