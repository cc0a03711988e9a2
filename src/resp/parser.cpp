// SPDX-License-Identifier: BSL-1.0
// Parses RESP2 and RESP3. The result depends on the bytes alone: a stream gives the same replies and the same error,
// however it is divided into reads.
#include "resp/parser.hpp"

#include "resp/numbers.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstring>

namespace redlock::resp
{

namespace
{

constexpr std::size_t max_integer = 20; // "-9223372036854775808"
constexpr std::size_t max_length = 10;  // More digits than any limit has.

} // namespace

parser::parser(limits bounds)
    : limits_{bounds},
      capacity_{bounds.reply_bytes + read_room},
      buffer_{std::make_unique_for_overwrite<char[]>(capacity_)}
{
    // A line is part of a reply. The limit also keeps line_bytes + 1 from overflowing.
    limits_.line_bytes = std::min(limits_.line_bytes, limits_.reply_bytes);
    open_.reserve(limits_.depth);
}

// ---- The buffer -------------------------------------------------------------------------------------------

std::span<char> parser::prepare()
{
    if (error_ != parse_error::none || begin_ == end_)
    {
        begin_ = cursor_ = scanned_ = end_ = 0; // Nothing to keep: reuse the front, which is in the cache.
    }
    else if (capacity_ - end_ < min_room && begin_ > 0)
    {
        move_to_front();
    }
    return {buffer_.get() + end_, capacity_ - end_};
}

// Happens at most once for each reply, since the room that follows it is then sufficient.
void parser::move_to_front() noexcept
{
    if (cursor_ == begin_)
    {
        nodes_.clear(); // They belong to the previous reply, whose bytes are overwritten.
    }
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    for (node& moved : nodes_)
    {
        if (!moved.text.empty())
        {
            moved.text = {moved.text.data() - begin_, moved.text.size()};
        }
    }
    end_ -= begin_;
    cursor_ -= begin_;
    scanned_ -= begin_;
    begin_ = 0;
}

void parser::commit(std::size_t bytes) noexcept
{
    assert(bytes <= capacity_ - end_);
    end_ += bytes;
}

void parser::reset() noexcept
{
    begin_ = cursor_ = scanned_ = end_ = 0;
    nodes_.clear();
    open_.clear();
    elements_ = 0;
    error_ = parse_error::none;
    reply_ = {};
}

// The end of the bytes that are parsed. Bytes beyond the longest permitted reply are ignored, so that the error doesn't
// depend on how many of them have been read.
const char* parser::visible_end() const noexcept
{
    return buffer_.get() + begin_ + std::min(end_ - begin_, limits_.reply_bytes);
}

// ---- Replies ----------------------------------------------------------------------------------------------

const reply* parser::next()
{
    if (error_ != parse_error::none)
    {
        return nullptr;
    }
    if (cursor_ == begin_) // A new reply begins.
    {
        nodes_.clear();
        elements_ = 0;
        if (read_short_reply())
        {
            begin_ = cursor_;
            reply_.nodes = nodes_;
            return &reply_;
        }
    }
    while (true) // Each iteration consumes bytes or is the last one.
    {
        switch (read_element())
        {
        case progress::value:
            if (close_aggregates())
            {
                begin_ = cursor_;
                reply_.nodes = nodes_;
                return &reply_;
            }
            break;
        case progress::opened:
        case progress::skipped:
            break;
        case progress::starved:
            if (end_ - begin_ >= limits_.reply_bytes)
            {
                fail(parse_error::reply_too_long);
            }
            return nullptr;
        case progress::broken:
            return nullptr;
        }
    }
}

// A fast path for the most common replies, a single digit or OK, if they are complete.
bool parser::read_short_reply()
{
    constexpr std::string_view ok = "+OK\r\n";
    const char* const first = buffer_.get() + cursor_;
    const std::string_view seen{first, static_cast<std::size_t>(visible_end() - first)};
    const bool is_digit = seen.size() >= 4 && seen[0] == ':' && seen[1] >= '0' && seen[1] <= '9' &&
                          seen[2] == '\r' && seen[3] == '\n';
    if (is_digit)
    {
        add(kind::integer, 0, seen[1] - '0', {}, first + 4);
        return true;
    }
    if (seen.starts_with(ok) && limits_.line_bytes >= ok.size())
    {
        add(kind::simple_string, 0, 0, seen.substr(1, 2), first + ok.size());
        return true;
    }
    return false;
}

// Counts the value that has just been read as an element of the innermost aggregate, and closes each aggregate that is
// complete. Returns true if the root is complete.
bool parser::close_aggregates() noexcept
{
    while (!open_.empty()) // At most limits_.depth iterations.
    {
        open_aggregate& innermost = open_.back();
        if (--innermost.missing > 0)
        {
            return false;
        }
        const open_aggregate closed = innermost;
        open_.pop_back();
        if (closed.is_attribute)
        {
            // An attribute precedes a value; it is neither an element nor a reply.
            nodes_.erase(nodes_.begin() + closed.first_node, nodes_.end());
            return false;
        }
    }
    return true;
}

parser::progress parser::fail(parse_error why) noexcept
{
    error_ = why;
    return progress::broken;
}

// ---- Elements ---------------------------------------------------------------------------------------------

parser::progress parser::read_element()
{
    const char* const first = buffer_.get() + cursor_;
    if (first == visible_end())
    {
        return progress::starved;
    }
    switch (*first)
    {
    case '+':
        return read_line(kind::simple_string, limits_.line_bytes, parse_error::line_too_long);
    case '-':
        return read_line(kind::simple_error, limits_.line_bytes, parse_error::line_too_long);
    case ':':
        return read_line(kind::integer, max_integer, parse_error::bad_integer);
    case '$':
        return read_bulk(kind::bulk_string);
    case '_':
        return read_line(kind::null, 0, parse_error::missing_line_end);
    case '*':
        return read_aggregate(kind::array, 1, false);
    case '#':
        return read_line(kind::boolean, 1, parse_error::bad_boolean);
    case ',':
        return read_line(kind::double_number, limits_.line_bytes, parse_error::line_too_long);
    case '(':
        return read_line(kind::big_number, limits_.line_bytes, parse_error::line_too_long);
    case '!':
        return read_bulk(kind::bulk_error);
    case '=':
        return read_bulk(kind::verbatim_string);
    case '%':
        return read_aggregate(kind::map, 2, false);
    case '~':
        return read_aggregate(kind::set, 1, false);
    case '>':
        return open_.empty() ? read_aggregate(kind::push, 1, false) : fail(parse_error::misplaced_push);
    case '|':
        return read_aggregate(kind::map, 2, true);
    default:
        return fail(parse_error::unknown_type);
    }
}

// Reads an element that consists of one line: all types except bulks and aggregates.
parser::progress parser::read_line(kind type, std::size_t longest, parse_error when_longer)
{
    line found;
    if (const progress state = find_line(longest, when_longer, found); state != progress::value)
    {
        return state;
    }
    const std::string_view text = found.text();
    switch (type)
    {
    case kind::integer:
    {
        std::int64_t value = 0;
        const auto [stop, problem] = std::from_chars(found.begin, found.end, value);
        // from_chars accepts leading zeros and "-0", which no server writes.
        const bool is_odd = text.size() > 1 && (text[0] == '0' || (text[0] == '-' && text[1] == '0'));
        return problem != std::errc{} || stop != found.end || is_odd ? fail(parse_error::bad_integer)
                                                                     : add(type, 0, value, {}, found.after());
    }
    case kind::boolean:
        return text != "t" && text != "f" ? fail(parse_error::bad_boolean)
                                          : add(type, 0, text == "t" ? 1 : 0, {}, found.after());
    case kind::double_number:
        return is_double(text) ? add(type, 0, 0, text, found.after()) : fail(parse_error::bad_number);
    case kind::big_number:
        return is_big_number(text) ? add(type, 0, 0, text, found.after()) : fail(parse_error::bad_number);
    default:
        return add(type, 0, 0, text, found.after());
    }
}

parser::progress parser::read_bulk(kind type)
{
    // The header, a dozen bytes at most, is parsed again if the body was incomplete.
    line header;
    std::uint64_t length = 0;
    if (const progress state = find_length(header, length); state != progress::value)
    {
        return state;
    }
    if (header.text() == "-1")
    {
        return type == kind::bulk_string ? add(kind::null, 0, 0, {}, header.after())
                                         : fail(parse_error::bad_length);
    }
    const char* const body = header.after();
    const auto before = static_cast<std::size_t>(body - (buffer_.get() + begin_));
    if (before + length + 2 > limits_.reply_bytes)
    {
        return fail(parse_error::reply_too_long); // Known from the header, before the body has been received.
    }
    if (static_cast<std::size_t>(visible_end() - body) < length + 2)
    {
        return progress::starved;
    }
    const char* const body_end = body + length;
    if (body_end[0] != '\r' || body_end[1] != '\n')
    {
        return fail(parse_error::missing_line_end);
    }
    std::string_view text{body, static_cast<std::size_t>(length)};
    if (type == kind::verbatim_string)
    {
        constexpr std::size_t format_size = 3; // "txt" or "mkd"
        if (text.size() <= format_size || text[format_size] != ':')
        {
            return fail(parse_error::bad_verbatim);
        }
        text.remove_prefix(format_size + 1);
    }
    return add(type, 0, 0, text, body_end + 2);
}

parser::progress parser::read_aggregate(kind type, std::uint32_t nodes_per_element, bool is_attribute)
{
    line header;
    std::uint64_t length = 0;
    if (const progress state = find_length(header, length); state != progress::value)
    {
        return state;
    }
    if (header.text() == "-1")
    {
        return type == kind::array ? add(kind::null, 0, 0, {}, header.after())
                                   : fail(parse_error::bad_length);
    }
    if (type == kind::push && length == 0)
    {
        return fail(parse_error::bad_length); // A push has at least its type.
    }
    if (open_.size() >= limits_.depth)
    {
        return fail(parse_error::too_deep);
    }
    length *= nodes_per_element;
    if (length > limits_.elements - elements_)
    {
        return fail(parse_error::too_many_elements);
    }
    const auto size = static_cast<std::uint32_t>(length);
    elements_ += size;
    const open_aggregate opened{size, static_cast<std::uint32_t>(nodes_.size()), is_attribute};
    if (is_attribute)
    {
        cursor_ = scanned_ = static_cast<std::size_t>(header.after() - buffer_.get());
    }
    else
    {
        add(type, size, 0, {}, header.after());
    }
    if (size == 0)
    {
        return is_attribute ? progress::skipped : progress::value;
    }
    open_.push_back(opened);
    return progress::opened;
}

// Finds the line that follows the type byte at the cursor.
parser::progress parser::find_line(std::size_t longest, parse_error when_longer, line& found) noexcept
{
    const char* const from = buffer_.get() + cursor_ + 1;
    const char* const end = visible_end();
    const char* const stop = from + std::min(static_cast<std::size_t>(end - from), longest + 1);
    const char* at = std::max(from, static_cast<const char*>(buffer_.get()) + scanned_);
    while (at != stop && *at != '\r' && *at != '\n')
    {
        ++at;
    }
    scanned_ = static_cast<std::size_t>(at - buffer_.get());
    if (at == stop)
    {
        return static_cast<std::size_t>(at - from) > longest ? fail(when_longer) : progress::starved;
    }
    if (*at == '\n')
    {
        return fail(parse_error::missing_line_end);
    }
    if (at + 1 == end)
    {
        return progress::starved;
    }
    if (at[1] != '\n')
    {
        return fail(parse_error::missing_line_end);
    }
    found = {from, at};
    return progress::value;
}

// Finds a line that is a length. For "-1", whose meaning depends on the type, `length` is unchanged.
parser::progress parser::find_length(line& found, std::uint64_t& length) noexcept
{
    if (const progress state = find_line(max_length, parse_error::bad_length, found);
        state != progress::value)
    {
        return state;
    }
    if (found.text() == "-1")
    {
        return progress::value;
    }
    if (found.text() == "?")
    {
        return fail(parse_error::streamed);
    }
    if (!is_plain_number(found.text()))
    {
        return fail(parse_error::bad_length);
    }
    std::from_chars(found.begin, found.end, length);
    return progress::value;
}

// Adds a node for the element at the cursor, and advances the cursor to `after`.
parser::progress
parser::add(kind type, std::uint32_t size, std::int64_t integer, std::string_view text, const char* after)
{
    nodes_.push_back({type, static_cast<std::uint8_t>(open_.size()), size, integer, text});
    cursor_ = scanned_ = static_cast<std::size_t>(after - buffer_.get());
    return progress::value;
}

} // namespace redlock::resp
