// SPDX-License-Identifier: BSL-1.0
// Every type of RESP2 and RESP3, split into pieces of every size.
#include "resp/parser.hpp"

#include "support/resp_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace std::string_view_literals;

namespace redlock::test
{

namespace
{

// Complete replies, as servers send them.
const std::vector<std::string_view> valid_replies{
    "+OK\r\n"sv,
    "+\r\n"sv,
    "-NOSCRIPT No matching script.\r\n"sv,
    ":0\r\n"sv,
    ":-9223372036854775808\r\n"sv,
    "$-1\r\n"sv,
    "*-1\r\n"sv,
    "_\r\n"sv,
    "$0\r\n\r\n"sv,
    "$11\r\nab\r\n\0\xff$3\r\n\r\r\n"sv,
    "*0\r\n"sv,
    "*3\r\n$3\r\nfoo\r\n$-1\r\n*2\r\n:1\r\n+two\r\n"sv,
    "#t\r\n"sv,
    ",-1.5e+300\r\n"sv,
    "(-3492890328409238509324850943850943825024385\r\n"sv,
    "!21\r\nSYNTAX invalid syntax\r\n"sv,
    "=8\r\ntxt:a\r\nb\r\n"sv,
    "%2\r\n+first\r\n:1\r\n$6\r\nsecond\r\n*1\r\n#f\r\n"sv,
    "~2\r\n+a\r\n+b\r\n"sv,
    ">3\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\nlock:a\r\n_\r\n"sv,
    "|1\r\n+ttl\r\n:3600\r\n*2\r\n|1\r\n+a\r\n%1\r\n+b\r\n+c\r\n:7\r\n$1\r\nx\r\n"sv,
    "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n"
    "$2\r\nid\r\n:17\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
    "$7\r\nmodules\r\n*0\r\n"sv,
    "*8\r\n*8\r\n*0\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n$-1\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n"
    "+a\r\n+b\r\n+c\r\n+d\r\n+e\r\n+f\r\n+g\r\n"sv,
};

std::string all_valid_replies()
{
    std::string stream;
    for (const std::string_view reply : valid_replies)
    {
        stream += reply;
    }
    return stream;
}

std::string only_reply(std::string_view stream)
{
    const stream_result result = parse({stream});
    REQUIRE(result.error == resp::parse_error::none);
    REQUIRE(result.replies.size() == 1);
    return result.replies.front();
}

// Returns the only reply of a stream; it lives in the caller's parser.
const resp::reply& read(resp::parser& parser, std::string_view stream)
{
    const std::span<char> room = parser.prepare();
    REQUIRE(room.size() >= stream.size());
    std::memcpy(room.data(), stream.data(), stream.size());
    parser.commit(stream.size());
    const resp::reply* const reply = parser.next();
    REQUIRE(reply != nullptr);
    return *reply;
}

} // namespace

TEST_CASE("the parser reads every single-line type", "[resp]")
{
    CHECK(only_reply("+OK\r\n") == "0 simple_string size=0 integer=0 text=2:OK\n");
    CHECK(only_reply("+\r\n") == "0 simple_string size=0 integer=0 text=0:\n");
    CHECK(only_reply("+a\0b\tc\r\n"sv) == "0 simple_string size=0 integer=0 text=5:a\0b\tc\n"sv);
    CHECK(only_reply("-ERR no\r\n") == "0 simple_error size=0 integer=0 text=6:ERR no\n");
    CHECK(only_reply(":0\r\n") == "0 integer size=0 integer=0 text=0:\n");
    CHECK(only_reply(":1000\r\n") == "0 integer size=0 integer=1000 text=0:\n");
    CHECK(only_reply(":9223372036854775807\r\n") == "0 integer size=0 integer=9223372036854775807 text=0:\n");
    CHECK(
        only_reply(":-9223372036854775808\r\n") == "0 integer size=0 integer=-9223372036854775808 text=0:\n");
    CHECK(only_reply("_\r\n") == "0 null size=0 integer=0 text=0:\n");
    CHECK(only_reply("#t\r\n") == "0 boolean size=0 integer=1 text=0:\n");
    CHECK(only_reply("#f\r\n") == "0 boolean size=0 integer=0 text=0:\n");
    const std::string_view number =
        GENERATE("0"sv, "-0"sv, "10"sv, "1.25"sv, "-1e-5"sv, "1E+20"sv, "inf"sv, "-inf"sv, "nan"sv);
    CHECK(
        only_reply("," + std::string{number} + "\r\n") ==
        "0 double size=0 integer=0 text=" + std::to_string(number.size()) + ':' + std::string{number} + '\n');
    CHECK(only_reply("(-123\r\n") == "0 big_number size=0 integer=0 text=4:-123\n");
}

TEST_CASE("the parser reads every bulk type, with any bytes", "[resp][scenario-51]")
{
    CHECK(only_reply("$5\r\na\r\n\0\n\r\n"sv) == "0 bulk_string size=0 integer=0 text=5:a\r\n\0\n\n"sv);
    CHECK(only_reply("$0\r\n\r\n") == "0 bulk_string size=0 integer=0 text=0:\n");
    CHECK(only_reply("$-1\r\n") == "0 null size=0 integer=0 text=0:\n");
    CHECK(only_reply("!5\r\nE\r\n\0\r\r\n"sv) == "0 bulk_error size=0 integer=0 text=5:E\r\n\0\r\n"sv);
    CHECK(only_reply("=7\r\nmkd:a\r\n\r\n") == "0 verbatim size=0 integer=0 text=3:a\r\n\n");
    CHECK(only_reply("=4\r\ntxt:\r\n") == "0 verbatim size=0 integer=0 text=0:\n");
}

TEST_CASE("the parser reads every aggregate in pre-order", "[resp]")
{
    CHECK(only_reply("*-1\r\n") == "0 null size=0 integer=0 text=0:\n");
    CHECK(only_reply("*0\r\n") == "0 array size=0 integer=0 text=0:\n");
    CHECK(
        only_reply("*3\r\n*1\r\n:1\r\n~0\r\n$1\r\nx\r\n") == "0 array size=3 integer=0 text=0:\n"
                                                             "1 array size=1 integer=0 text=0:\n"
                                                             "2 integer size=0 integer=1 text=0:\n"
                                                             "1 set size=0 integer=0 text=0:\n"
                                                             "1 bulk_string size=0 integer=0 text=1:x\n");
    CHECK(
        only_reply("%1\r\n+key\r\n%1\r\n:1\r\n:2\r\n") == "0 map size=2 integer=0 text=0:\n"
                                                          "1 simple_string size=0 integer=0 text=3:key\n"
                                                          "1 map size=2 integer=0 text=0:\n"
                                                          "2 integer size=0 integer=1 text=0:\n"
                                                          "2 integer size=0 integer=2 text=0:\n");
    CHECK(
        only_reply(">2\r\n+message\r\n_\r\n") == "0 push size=2 integer=0 text=0:\n"
                                                 "1 simple_string size=0 integer=0 text=7:message\n"
                                                 "1 null size=0 integer=0 text=0:\n");
}

TEST_CASE("attributes are dropped at any position", "[resp]")
{
    CHECK(only_reply("|1\r\n+a\r\n+b\r\n:1\r\n") == only_reply(":1\r\n"));
    CHECK(only_reply("|0\r\n|0\r\n:1\r\n") == only_reply(":1\r\n"));
    CHECK(only_reply("|1\r\n+a\r\n*2\r\n:1\r\n|1\r\n:2\r\n:3\r\n:4\r\n:5\r\n") == only_reply(":5\r\n"));
    CHECK(
        only_reply("*2\r\n|1\r\n+a\r\n+b\r\n+x\r\n|1\r\n+c\r\n+d\r\n*1\r\n|0\r\n+y\r\n") ==
        only_reply("*2\r\n+x\r\n*1\r\n+y\r\n"));
    CHECK(only_reply("|1\r\n+a\r\n+b\r\n>1\r\n+x\r\n") == only_reply(">1\r\n+x\r\n"));
    CHECK(parse({"|1\r\n+a\r\n+b\r\n"}) == stream_result{});
}

TEST_CASE("a reply provides the type and value of its root", "[resp]")
{
    resp::parser parser;
    CHECK(read(parser, "-ERR x\r\n").is_error());
    CHECK(read(parser, "!3\r\nERR\r\n").is_error());
    CHECK_FALSE(read(parser, "*1\r\n-ERR x\r\n").is_error());
    CHECK(read(parser, "_\r\n").is_null());
    CHECK(read(parser, "$-1\r\n").is_null());
    CHECK(read(parser, "*-1\r\n").is_null());
    CHECK_FALSE(read(parser, "$0\r\n\r\n").is_null());
    CHECK(read(parser, ">1\r\n+x\r\n").is_push());
    CHECK_FALSE(read(parser, "*1\r\n+x\r\n").is_push());
    CHECK(read(parser, "$2\r\nab\r\n").text() == "ab");
    CHECK(read(parser, ":-7\r\n").integer() == -7);
}

TEST_CASE("a reply finds the value of a key in a map or in a flat array", "[resp]")
{
    resp::parser parser;
    const std::string_view header = GENERATE("%4\r\n"sv, "*8\r\n"sv);
    const std::string pairs = "$2\r\nid\r\n:17\r\n+list\r\n*2\r\n+no\r\n+id\r\n*2\r\n+id\r\n:3\r\n+mode\r\n"
                              "+mode\r\n$4\r\nlast\r\n";
    const resp::reply& reply = read(parser, std::string{header} + pairs);
    REQUIRE(reply.find("id") != nullptr);
    CHECK(reply.find("id")->integer == 17);
    REQUIRE(reply.find("list") != nullptr);
    CHECK(reply.find("list")->size == 2);
    REQUIRE(reply.find("mode") != nullptr);
    CHECK(reply.find("mode")->text == "last");
    CHECK(reply.find("no") == nullptr);   // inside a value
    CHECK(reply.find("last") == nullptr); // a value
    CHECK(reply.find("") == nullptr);

    CHECK(read(parser, "*3\r\n+a\r\n+b\r\n+c\r\n").find("c") == nullptr); // a key without a value
    CHECK(read(parser, "%1\r\n:1\r\n+b\r\n").find("") == nullptr);        // an integer is not text
    CHECK(read(parser, "~2\r\n+a\r\n+b\r\n").find("a") == nullptr);
    CHECK(read(parser, "+a\r\n").find("a") == nullptr);
}

TEST_CASE("a stream yields the same replies when it is split in two at any byte", "[resp]")
{
    const std::string stream = all_valid_replies();
    const stream_result whole = parse({stream});
    REQUIRE(whole.error == resp::parse_error::none);
    REQUIRE(whole.replies.size() == valid_replies.size());
    for (std::size_t split = 0; split <= stream.size(); ++split)
    {
        const std::string_view bytes = stream;
        CAPTURE(split);
        CHECK(parse({bytes.substr(0, split), bytes.substr(split)}) == whole);
    }
}

TEST_CASE("a stream yields the same replies in pieces of any size", "[resp]")
{
    const std::string stream = all_valid_replies();
    const stream_result whole = parse({stream});
    for (std::size_t size = 1; size <= 64; ++size)
    {
        std::vector<std::string_view> pieces;
        for (std::size_t at = 0; at < stream.size(); at += size)
        {
            pieces.push_back(std::string_view{stream}.substr(at, size));
        }
        CAPTURE(size);
        CHECK(parse(pieces) == whole);
    }
}

TEST_CASE("an incomplete reply waits for more", "[resp]")
{
    const std::string_view reply = GENERATE(from_range(valid_replies));
    for (std::size_t size = 0; size < reply.size(); ++size)
    {
        CAPTURE(reply, size);
        CHECK(parse({reply.substr(0, size)}) == stream_result{});
    }
}

TEST_CASE("a partial reply survives being moved to the start of the buffer", "[resp]")
{
    const std::string_view reply = GENERATE(from_range(valid_replies));
    const std::string filler = "+" + std::string(100, 'f') + "\r\n";
    for (std::size_t split = 1; split < reply.size(); ++split)
    {
        resp::parser parser;
        const std::span<char> room = parser.prepare();
        std::string first;
        while (first.size() + filler.size() + split <= room.size())
        {
            first += filler;
        }
        const std::size_t fillers = first.size() / filler.size();
        first += reply.substr(0, split);

        stream_result result;
        feed(parser, first, result);
        REQUIRE(room.size() - first.size() < resp::parser::min_room); // Otherwise nothing has to be moved.
        const std::span<char> behind = parser.prepare();
        REQUIRE(behind.size() >= resp::parser::read_room);
        std::fill(
            behind.begin(), behind.end(),
            '#'); // The previous bytes of the reply, which must not be read again.
        feed(parser, reply.substr(split), result);
        CAPTURE(reply, split);
        REQUIRE(result.replies.size() == fillers + 1);
        CHECK(result.replies.back() == only_reply(reply));
    }
}

TEST_CASE("the buffer never reallocates and always has room", "[resp]")
{
    resp::parser parser;
    const std::span<char> first = parser.prepare();
    CHECK(first.size() == resp::limits{}.reply_bytes + resp::parser::read_room);
    const std::string reply = "$60000\r\n" + std::string(60000, 'x') + "\r\n";
    std::string stream;
    while (stream.size() < 1'000'000)
    {
        stream += reply + "+OK\r\n";
    }
    std::size_t replies = 0;
    std::size_t at = 0;
    while (at < stream.size())
    {
        const std::span<char> room = parser.prepare();
        REQUIRE(room.size() >= resp::parser::min_room);
        REQUIRE(room.data() + room.size() == first.data() + first.size());
        const std::size_t size = std::min<std::size_t>({room.size(), stream.size() - at, 5000});
        std::memcpy(room.data(), stream.data() + at, size);
        parser.commit(size);
        at += size;
        while (parser.next() != nullptr)
        {
            ++replies;
        }
    }
    CHECK(parser.error() == resp::parse_error::none);
    CHECK(replies == 2 * (stream.size() / (reply.size() + 5)));
}

TEST_CASE("a parser without room reports it if its replies are not taken", "[resp]")
{
    resp::parser parser;
    const std::string stream(resp::limits{}.reply_bytes + resp::parser::read_room, '+');
    std::memcpy(parser.prepare().data(), stream.data(), stream.size());
    parser.commit(stream.size());
    CHECK(parser.prepare().empty());
}

TEST_CASE("a reset parser starts again in the same memory", "[resp]")
{
    const std::string_view before =
        GENERATE("?"sv, "*2\r\n:1\r\n"sv, "|1\r\n+a\r\n"sv, "$5\r\nab"sv, "+long"sv, ":1\r\n:2"sv);
    resp::parser parser;
    const char* const memory = parser.prepare().data();
    stream_result ignored;
    feed(parser, before, ignored);
    parser.reset();
    CHECK(parser.error() == resp::parse_error::none);
    CHECK(parser.next() == nullptr);
    CHECK(parser.prepare().data() == memory);
    stream_result result;
    feed(parser, all_valid_replies(), result);
    CHECK(result == parse({all_valid_replies()}));
}

} // namespace redlock::test
