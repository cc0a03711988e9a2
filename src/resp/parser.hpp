// SPDX-License-Identifier: BSL-1.0
// An incremental parser of RESP2 and RESP3 replies and pushes.
#pragma once

#include "resp/parse_error.hpp"
#include "resp/value.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace redlock::resp
{

/// The limits of one reply. A larger reply is an error.
struct limits
{
    std::uint8_t depth = 8;              // Nested aggregates, including attributes.
    std::uint32_t elements = 1024;       // Elements of all aggregates of the reply, including attributes.
    std::size_t reply_bytes = 64 * 1024; // The whole reply, from its first type byte on.
    std::size_t line_bytes = 64 * 1024;  // A simple string or error, a double or a big number.
};

/// The read buffer of one connection, and the parser of the replies in it.
///
/// Read into the buffer that prepare() returns, call commit() with the number of bytes read, then call next() until it
/// returns nullptr. Replies are views into the buffer: they are valid until the next call of next(), prepare() or
/// reset().
///
/// The buffer is allocated once, with limits::reply_bytes + read_room bytes; the number of nodes is bounded by
/// limits::elements. Attributes (RESP3's "|") are parsed, counted against the limits of their reply, and discarded.
class parser
{
  public:
    /// The size of the buffer in excess of the longest reply.
    static constexpr std::size_t read_room = 16 * 1024;
    /// The minimum number of bytes that prepare() provides.
    static constexpr std::size_t min_room = 4 * 1024;

    explicit parser(limits bounds = {});
    parser(const parser&) = delete;
    parser& operator=(const parser&) = delete;

    /// Returns the buffer for the next read: at least min_room bytes if next() has returned nullptr, otherwise
    /// possibly fewer or none. After an error, the bytes read are discarded.
    std::span<char> prepare();
    /// Makes the first `bytes` bytes of the buffer available to the parser.
    void commit(std::size_t bytes) noexcept;
    /// Returns the next complete reply, or nullptr if more bytes are needed or after an error, which is permanent.
    const reply* next();
    parse_error error() const noexcept { return error_; }
    /// Resets everything except the memory, for a new connection.
    void reset() noexcept;

  private:
    // The result of parsing one element.
    enum class progress : std::uint8_t
    {
        value,   // A complete scalar, or an aggregate without elements.
        opened,  // The header of an aggregate, whose elements follow.
        skipped, // An attribute without elements, which is discarded.
        starved, // The element is incomplete; no state was changed.
        broken   // An error, which is in error_.
    };
    // An aggregate whose elements are being parsed.
    struct open_aggregate
    {
        std::uint32_t missing;    // The number of elements that are still missing.
        std::uint32_t first_node; // For an attribute: the first node to discard.
        bool is_attribute;
    };
    // A line without its type byte and its line end.
    struct line
    {
        const char* begin;
        const char* end;
        std::size_t size() const noexcept { return static_cast<std::size_t>(end - begin); }
        std::string_view text() const noexcept { return {begin, size()}; }
        const char* after() const noexcept { return end + 2; }
    };

    bool read_short_reply();
    progress read_element();
    progress read_line(kind type, std::size_t longest, parse_error when_longer);
    progress read_bulk(kind type);
    progress read_aggregate(kind type, std::uint32_t nodes_per_element, bool is_attribute);
    progress find_line(std::size_t longest, parse_error when_longer, line& found) noexcept;
    progress find_length(line& found, std::uint64_t& length) noexcept;
    progress
    add(kind type, std::uint32_t size, std::int64_t integer, std::string_view text, const char* after);
    bool close_aggregates() noexcept;
    progress fail(parse_error why) noexcept;
    void move_to_front() noexcept;
    const char* visible_end() const noexcept;

    limits limits_;
    std::size_t capacity_;
    std::unique_ptr<char[]> buffer_;
    // Offsets into buffer_, in ascending order.
    std::size_t begin_ = 0;   // The start of the current reply.
    std::size_t cursor_ = 0;  // The start of its next element.
    std::size_t scanned_ = 0; // The end of the part of an incomplete line that was searched for the line end.
    std::size_t end_ = 0;     // The end of the bytes that were read.

    std::vector<node> nodes_;
    std::vector<open_aggregate> open_;
    std::uint32_t elements_ = 0; // The number announced by the headers of the current reply so far.
    parse_error error_ = parse_error::none;
    reply reply_;
};

} // namespace redlock::resp
