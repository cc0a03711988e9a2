// SPDX-License-Identifier: BSL-1.0
// What a broken or hostile server may send: every limit, every error, and random bytes.
#include "resp/parser.hpp"

#include "support/resp_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace std::string_view_literals;

namespace redlock::test
{

namespace
{

using resp::parse_error;

std::string repeat(std::string_view text, std::size_t times)
{
    std::string out;
    while (times-- > 0)
    {
        out += text;
    }
    return out;
}

// Parses a stream in one piece and byte by byte; the results must be equal.
stream_result parse_both_ways(std::string_view stream, resp::limits limits = {})
{
    std::vector<std::string_view> bytes;
    for (std::size_t at = 0; at < stream.size(); ++at)
    {
        bytes.push_back(stream.substr(at, 1));
    }
    stream_result whole = parse({stream}, limits);
    CHECK(parse(bytes, limits) == whole);
    return whole;
}

// The stream is refused with its last byte, and not earlier.
void check_refused_at_the_end(std::string_view stream, parse_error why, resp::limits limits = {})
{
    const stream_result refused = parse_both_ways(stream, limits);
    CHECK(refused.replies.empty());
    CHECK(refused.error == why);
    CHECK(parse({stream.substr(0, stream.size() - 1)}, limits) == stream_result{});
}

void check_accepted(std::string_view stream, resp::limits limits = {})
{
    const stream_result accepted = parse_both_ways(stream, limits);
    CHECK(accepted.error == parse_error::none);
    CHECK(accepted.replies.size() == 1);
}

} // namespace

TEST_CASE("an announced size above the limit is refused at once", "[resp][scenario-45]")
{
    check_refused_at_the_end("*4294967295\r\n", parse_error::too_many_elements);
    check_refused_at_the_end("%2147483648\r\n", parse_error::too_many_elements);
    check_refused_at_the_end("~9999999999\r\n", parse_error::too_many_elements);
    check_refused_at_the_end("|4294967295\r\n", parse_error::too_many_elements);
    check_refused_at_the_end("$536870912\r\n", parse_error::reply_too_long);
    check_refused_at_the_end("!4294967295\r\n", parse_error::reply_too_long);
    check_refused_at_the_end("=9999999999\r\n", parse_error::reply_too_long);
    check_refused_at_the_end("$18446744073", parse_error::bad_length);
}

TEST_CASE("a reply has at most 1024 elements, at whatever nesting", "[resp][scenario-45]")
{
    check_accepted("*1024\r\n" + repeat(":1\r\n", 1024));
    check_refused_at_the_end("*1025\r\n", parse_error::too_many_elements);
    check_accepted("%512\r\n" + repeat(":1\r\n", 1024));
    check_refused_at_the_end("%513\r\n", parse_error::too_many_elements);
    check_accepted("*2\r\n*1000\r\n" + repeat("_\r\n", 1000) + "*22\r\n" + repeat("_\r\n", 22));
    check_refused_at_the_end(
        "*2\r\n*1000\r\n" + repeat("_\r\n", 1000) + "*23\r\n", parse_error::too_many_elements);
    check_accepted("|500\r\n" + repeat("_\r\n", 1000) + "*24\r\n" + repeat("_\r\n", 24));
    check_refused_at_the_end("|500\r\n" + repeat("_\r\n", 1000) + "*25\r\n", parse_error::too_many_elements);
}

TEST_CASE("the limit of elements applies to each reply separately", "[resp][scenario-45]")
{
    const std::string reply = "*1024\r\n" + repeat(":1\r\n", 1024);
    CHECK(parse({reply + reply}).replies.size() == 2);
}

TEST_CASE("aggregates are nested at most 8 deep", "[resp][scenario-45]")
{
    const std::string_view level = GENERATE("*1\r\n"sv, "~1\r\n"sv, "%1\r\n:1\r\n"sv);
    check_accepted(repeat(level, 8) + ":1\r\n");
    check_accepted(repeat(level, 8) + "$-1\r\n");
    check_accepted(repeat(level, 8) + "*-1\r\n");
    check_refused_at_the_end(repeat(level, 8) + "*1\r\n", parse_error::too_deep);
    check_refused_at_the_end(repeat(level, 8) + "*0\r\n", parse_error::too_deep);
    check_refused_at_the_end(repeat(level, 8) + "|1\r\n", parse_error::too_deep);
    check_refused_at_the_end(repeat("|1\r\n", 8) + "*1\r\n", parse_error::too_deep);
}

TEST_CASE("a reply is at most 64 KiB long", "[resp][scenario-45]")
{
    // A header of 8 bytes, the body, and 2 bytes after it: 65536.
    check_accepted("$65526\r\n" + std::string(65526, '\0') + "\r\n");
    check_refused_at_the_end("$65527\r\n", parse_error::reply_too_long);

    // 4 bytes, 8, the body, 2: the last element has 4 bytes left.
    const std::string almost = "*2\r\n$65518\r\n" + std::string(65518, 'x') + "\r\n";
    check_accepted(almost + ":1\r\n");
    check_refused_at_the_end(almost + ":12\r", parse_error::reply_too_long);

    check_accepted("+" + std::string(65533, 'x') + "\r\n");
    check_refused_at_the_end("+" + std::string(65535, 'x'), parse_error::reply_too_long);

    // Bytes after the limit don't matter, whether they end the reply or are another error.
    const std::string_view behind = GENERATE("\r\n"sv, "\n"sv, "xx"sv);
    const stream_result refused = parse_both_ways("+" + std::string(65535, 'x') + std::string{behind});
    CHECK(refused.replies.empty());
    CHECK(refused.error == parse_error::reply_too_long);
}

TEST_CASE("an endless series of attributes is refused", "[resp][scenario-45]")
{
    check_refused_at_the_end(repeat("|0\r\n", 16384), parse_error::reply_too_long);
    check_refused_at_the_end(repeat("|1\r\n_\r\n_\r\n", 512) + "|1\r\n", parse_error::too_many_elements);
}

TEST_CASE("the caller's limits are applied", "[resp][scenario-45]")
{
    const resp::limits small{.depth = 1, .elements = 2, .reply_bytes = 32, .line_bytes = 10};
    check_accepted("*2\r\n:1\r\n:2\r\n", small);
    check_refused_at_the_end("*3\r\n", parse_error::too_many_elements, small);
    check_refused_at_the_end("*1\r\n*0\r\n", parse_error::too_deep, small);
    check_accepted("$25\r\n" + std::string(25, 'x') + "\r\n", small);
    check_refused_at_the_end("$26\r\n", parse_error::reply_too_long, small);
    const std::string_view type = GENERATE("+"sv, "-"sv, ","sv, "("sv);
    check_accepted(std::string{type} + std::string(10, '1') + "\r\n", small);
    check_refused_at_the_end(std::string{type} + std::string(11, '1'), parse_error::line_too_long, small);
    CHECK(parse({""}, small) == stream_result{});

    // A line can't exceed its reply, whatever the limit on lines.
    const resp::limits long_lines{.reply_bytes = 32, .line_bytes = std::numeric_limits<std::size_t>::max()};
    check_accepted(std::string{type} + std::string(29, '1') + "\r\n", long_lines);
    check_refused_at_the_end(
        std::string{type} + std::string(31, '1'), parse_error::reply_too_long, long_lines);
}

TEST_CASE("lengths and short lines are bounded", "[resp][scenario-45]")
{
    const std::string_view type = GENERATE("$"sv, "*"sv, "%"sv, "~"sv, ">"sv, "|"sv, "!"sv, "="sv);
    check_refused_at_the_end(std::string{type} + std::string(11, '0'), parse_error::bad_length);
    check_refused_at_the_end(":" + std::string(21, '1'), parse_error::bad_integer);
    check_refused_at_the_end("#tt", parse_error::bad_boolean);
    check_refused_at_the_end("_x", parse_error::missing_line_end);
}

TEST_CASE("input that is not RESP is refused with the specific error", "[resp]")
{
    struct refused
    {
        std::string_view stream;
        parse_error why;
    };
    const refused row = GENERATE(values<refused>({
        {"H", parse_error::unknown_type}, // HTTP/1.1
        {"\r", parse_error::unknown_type},
        {"\n", parse_error::unknown_type},
        {"\0"sv, parse_error::unknown_type},
        {"\xff", parse_error::unknown_type},
        {"*1\r\nx", parse_error::unknown_type},
        {";", parse_error::unknown_type}, // a chunk of a streamed string
        {".", parse_error::unknown_type}, // the end of a streamed aggregate
        {"$\r\n", parse_error::bad_length},
        {"$-2\r\n", parse_error::bad_length},
        {"*-2\r\n", parse_error::bad_length},
        {"$-\r\n", parse_error::bad_length},
        {"$-0\r\n", parse_error::bad_length},
        {"$-1 \r\n", parse_error::bad_length},
        {"$+1\r\n", parse_error::bad_length},
        {"$01\r\n", parse_error::bad_length},
        {"$1a\r\n", parse_error::bad_length},
        {"$ 1\r\n", parse_error::bad_length},
        {"$1\0\r\n"sv, parse_error::bad_length},
        {"%-1\r\n", parse_error::bad_length},
        {"~-1\r\n", parse_error::bad_length},
        {">-1\r\n", parse_error::bad_length},
        {"|-1\r\n", parse_error::bad_length},
        {"!-1\r\n", parse_error::bad_length},
        {"=-1\r\n", parse_error::bad_length},
        {">0\r\n", parse_error::bad_length},
        {"$?\r\n", parse_error::streamed},
        {"*?\r\n", parse_error::streamed},
        {"%?\r\n", parse_error::streamed},
        {"~?\r\n", parse_error::streamed},
        {":\r\n", parse_error::bad_integer},
        {":-\r\n", parse_error::bad_integer},
        {":+1\r\n", parse_error::bad_integer},
        {":-0\r\n", parse_error::bad_integer},
        {":00\r\n", parse_error::bad_integer},
        {":01\r\n", parse_error::bad_integer},
        {":-01\r\n", parse_error::bad_integer},
        {":1 \r\n", parse_error::bad_integer},
        {":1.5\r\n", parse_error::bad_integer},
        {":9223372036854775808\r\n", parse_error::bad_integer},
        {":-9223372036854775809\r\n", parse_error::bad_integer},
        {"#\r\n", parse_error::bad_boolean},
        {"#T\r\n", parse_error::bad_boolean},
        {"#1\r\n", parse_error::bad_boolean},
        {",\r\n", parse_error::bad_number},
        {",-\r\n", parse_error::bad_number},
        {",+1\r\n", parse_error::bad_number},
        {",.5\r\n", parse_error::bad_number},
        {",1.\r\n", parse_error::bad_number},
        {",1e\r\n", parse_error::bad_number},
        {",1e+\r\n", parse_error::bad_number},
        {",0x10\r\n", parse_error::bad_number},
        {",1,5\r\n", parse_error::bad_number},
        {",infinity\r\n", parse_error::bad_number},
        {"(\r\n", parse_error::bad_number},
        {"(-\r\n", parse_error::bad_number},
        {"(-0\r\n", parse_error::bad_number},
        {"(01\r\n", parse_error::bad_number},
        {"(1a\r\n", parse_error::bad_number},
        {"=3\r\ntxt\r\n", parse_error::bad_verbatim},
        {"=0\r\n\r\n", parse_error::bad_verbatim},
        {"=5\r\ntxt a\r\n", parse_error::bad_verbatim},
        {"+a\n", parse_error::missing_line_end},
        {"+a\rb", parse_error::missing_line_end},
        {"+a\r\r", parse_error::missing_line_end},
        {"$1\n", parse_error::missing_line_end},
        {"$1\r1", parse_error::missing_line_end},
        {"$1\r\nab\r", parse_error::missing_line_end},
        {"$1\r\na\r\r", parse_error::missing_line_end},
        {"$1\r\na\n\n", parse_error::missing_line_end},
        {"_\n", parse_error::missing_line_end},
        {"*1\r\n>", parse_error::misplaced_push},
        {"|1\r\n>", parse_error::misplaced_push},
    }));
    CAPTURE(row.stream);
    check_refused_at_the_end(row.stream, row.why);
}

TEST_CASE("replies ahead of an error are returned, and none after it", "[resp]")
{
    const stream_result result = parse_both_ways("+OK\r\n:1\r\n:x\r\n+OK\r\n");
    CHECK(result.replies.size() == 2);
    CHECK(result.error == parse_error::bad_integer);
}

TEST_CASE("after an error a parser stays in error, whatever follows", "[resp]")
{
    resp::parser parser;
    stream_result result;
    feed(parser, "+OK\r\n$x\r\n+OK\r\n", result);
    REQUIRE(result.error == parse_error::bad_length);
    for (int turn = 0; turn < 100; ++turn)
    {
        const std::span<char> room = parser.prepare();
        REQUIRE(room.size() >= resp::parser::min_room);
        std::memcpy(room.data(), "+OK\r\n", 5);
        std::fill(room.begin() + 5, room.end(), 'x');
        parser.commit(room.size()); // As a flood of input does.
        CHECK(parser.next() == nullptr);
        CHECK(parser.error() == parse_error::bad_length);
    }
}

TEST_CASE("every error has its own message", "[resp]")
{
    std::vector<std::string_view> sentences;
    for (int value = 0; value <= static_cast<int>(parse_error::reply_too_long); ++value)
    {
        const std::string_view sentence = describe(static_cast<parse_error>(value));
        CHECK(std::find(sentences.begin(), sentences.end(), sentence) == sentences.end());
        CHECK(sentence != "unknown error");
        sentences.push_back(sentence);
    }
}

namespace
{

// Random bytes that are mostly RESP, then invalid.
std::string noise(std::mt19937& random)
{
    static const std::vector<std::string_view> pieces{
        "+OK\r\n", ":1\r\n",   "$-1\r\n", "*-1\r\n", "_\r\n",  "$3\r\nabc\r\n",
        "*2\r\n",  "%1\r\n",   "~3\r\n",  ">2\r\n",  "|1\r\n", "*0\r\n",
        "#t\r\n",  ",1.5\r\n", "(12\r\n", "\r\n",    "\r",     "\n",
        "$",       "*",        "-",       "9",       "0",      "?",
        "!4\r\n",  "=5\r\n",   "txt:a"};
    const auto below = [&random](std::size_t bound) { return random() % bound; };
    const std::size_t style = below(3);
    std::string out;
    for (std::size_t left = below(60); left > 0; --left)
    {
        if (style == 0)
        {
            out += static_cast<char>(below(256));
        }
        else
        {
            out += pieces[below(pieces.size() - (style == 1 ? 0 : 12))];
        }
    }
    if (style == 2 && !out.empty())
    {
        out[below(out.size())] = static_cast<char>(below(256));
    }
    return out;
}

} // namespace

TEST_CASE("random bytes end in an error or wait for more, independent of how they are split", "[resp]")
{
    std::mt19937 random{20240917}; // The standard specifies its output: the inputs are the same everywhere.
    resp::parser whole_parser;
    resp::parser pieces_parser;
    const char* const buffer_end = whole_parser.prepare().data() + whole_parser.prepare().size();
    std::size_t errors = 0;
    std::size_t replies = 0;
    constexpr std::size_t inputs = 60'000;
    for (std::size_t input = 0; input < inputs; ++input)
    {
        const std::string stream = noise(random);
        whole_parser.reset();
        stream_result whole;
        feed(whole_parser, stream, whole);

        pieces_parser.reset();
        stream_result pieces;
        for (std::size_t at = 0; at < stream.size();)
        {
            const std::size_t size = 1 + random() % 7;
            feed(pieces_parser, std::string_view{stream}.substr(at, size), pieces);
            at += size;
        }
        if (whole != pieces)
        {
            CAPTURE(input, stream);
            REQUIRE(whole == pieces);
        }
        errors += whole.error == parse_error::none ? 0 : 1;
        replies += whole.replies.size();
    }
    const std::span<char> room = whole_parser.prepare();
    CHECK(room.data() + room.size() == buffer_end);
    // The inputs are varied: some are errors, some incomplete, many contain replies.
    CHECK(errors > inputs / 4);
    CHECK(errors < inputs - inputs / 100);
    CHECK(replies > inputs);
}

} // namespace redlock::test
