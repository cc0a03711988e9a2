// SPDX-License-Identifier: BSL-1.0
// Reads RESP2 and RESP3 replies and pushes from bytes that arrive in pieces of any size.
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

/// How much one reply may ask for. A server that sends more is not one that this client talks to.
struct limits
{
    std::uint8_t depth = 8;              // aggregates inside each other; the attributes of a reply count too
    std::uint32_t elements = 1024;       // of all aggregates of the reply together, attributes included
    std::size_t reply_bytes = 64 * 1024; // of the reply as it was sent, from the first type byte on
    std::size_t line_bytes = 64 * 1024;  // of a simple string or error, a double or a big number
};

/// The read buffer of one connection, and the replies in it.
///
/// Read into prepare(), say how much it was with commit(), then call next() until it returns nullptr. Replies
/// are views into the buffer: they live until the next call of next(), prepare() or reset().
///
/// The buffer is allocated once, at limits::reply_bytes + read_room; the nodes of a reply are bounded by
/// limits::elements. Attributes (RESP3's "|") are read, counted against the limits of the reply that they
/// belong to, and dropped.
class parser
{
  public:
    /// Beside the longest reply there is always room for so many bytes.
    static constexpr std::size_t read_room = 16 * 1024;
    /// prepare() makes room for so many bytes.
    static constexpr std::size_t least_room = 4 * 1024;

    explicit parser(limits bounds = {});
    parser(const parser&) = delete;
    parser& operator=(const parser&) = delete;

    /// Where the next bytes are to be read into: least_room bytes or more, if next() returned nullptr before.
    /// (Else it may be less, down to nothing.) A parser with an error throws away what is read.
    std::span<char> prepare();
    /// So many bytes were read into what prepare() returned.
    void commit(std::size_t bytes) noexcept;
    /// The next complete reply. nullptr when more bytes are needed, or when there is an error: it stays.
    const reply* next();
    parse_error error() const noexcept { return error_; }
    /// Forgets everything but its memory: for a new connection.
    void reset() noexcept;

  private:
    // How an attempt to read one element went.
    enum class progress : std::uint8_t
    {
        value,   // A scalar, or an aggregate without elements: it is complete.
        opened,  // The header of an aggregate: its elements follow.
        skipped, // An attribute without elements: nothing to keep.
        starved, // The element isn't there as a whole; nothing was changed.
        broken   // error_ says why.
    };
    // An aggregate whose elements are being read.
    struct open_aggregate
    {
        std::uint32_t missing;    // elements that are still to come
        std::uint32_t first_node; // of an attribute: where the nodes begin that are to be dropped
        bool is_attribute;
    };
    // A line without its type byte and line end.
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
    // Offsets into buffer_, in this order.
    std::size_t begin_ = 0;   // the reply that is being read
    std::size_t cursor_ = 0;  // its first element that isn't read yet
    std::size_t scanned_ = 0; // of a line that isn't complete: what holds no line end
    std::size_t end_ = 0;     // what was read from the connection

    std::vector<node> nodes_;
    std::vector<open_aggregate> open_;
    std::uint32_t elements_ = 0; // that the headers of the reply have announced so far
    parse_error error_ = parse_error::none;
    reply reply_;
};

} // namespace redlock::resp
