// SPDX-License-Identifier: BSL-1.0
// Commands in their wire format.
#include "resp/serialise.hpp"

#include "support/resp_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

using namespace std::string_view_literals;

namespace redlock::test
{

TEST_CASE("a command is an array of bulk strings", "[resp]")
{
    std::string out;
    resp::append_command(out, {"PING"});
    CHECK(out == "*1\r\n$4\r\nPING\r\n");

    out.clear();
    resp::append_command(out, {"SET", "lock:a", "", "PX", resp::decimal{10000}});
    CHECK(out == "*5\r\n$3\r\nSET\r\n$6\r\nlock:a\r\n$0\r\n\r\n$2\r\nPX\r\n$5\r\n10000\r\n");
}

TEST_CASE("commands are appended to the buffer", "[resp]")
{
    std::string out = "before";
    const std::vector<std::string_view> arguments{"DEL", "key"};
    resp::append_command(out, arguments);
    resp::append_command(out, {"PING"});
    CHECK(out == "before*2\r\n$3\r\nDEL\r\n$3\r\nkey\r\n*1\r\n$4\r\nPING\r\n");
}

TEST_CASE("a command without a name is not written", "[resp]")
{
    std::string out = "before";
    resp::append_command(out, {});
    CHECK(out == "before");
}

TEST_CASE("arguments with any bytes are written unchanged", "[resp][scenario-51]")
{
    const std::string_view name = GENERATE(
        "\r\n"sv, "\0"sv, "a\r\n$3\r\nDEL\r\n"sv, "a\0b"sv, "\xff\xfe"sv, " "sv, "\"'\\"sv,
        "*1\r\n$8\r\nFLUSHALL\r\n"sv);
    std::string out;
    resp::append_command(out, {"SET", name, name});

    resp::parser parser;
    stream_result result;
    feed(parser, out, result);
    REQUIRE(result.error == resp::parse_error::none);
    REQUIRE(result.replies.size() == 1);
    const std::string node =
        "1 bulk_string size=0 integer=0 text=" + std::to_string(name.size()) + ':' + std::string{name} + '\n';
    CHECK(
        result.replies.front() ==
        "0 array size=3 integer=0 text=0:\n1 bulk_string size=0 integer=0 text=3:SET\n" + node + node);
}

TEST_CASE("long and many arguments are written with correct lengths", "[resp]")
{
    const std::string script(12345, 's');
    const std::vector<std::string_view> arguments(100, script);
    std::string out;
    resp::append_command(out, arguments);
    CHECK(out.starts_with("*100\r\n$12345\r\nsss"));
    CHECK(out.ends_with("sss\r\n"));
    CHECK(out.size() == 6 + 100 * (8 + 12345 + 2));
}

TEST_CASE("a buffer with room is not reallocated", "[resp]")
{
    std::string out;
    out.reserve(4096);
    const char* const memory = out.data();
    while (out.size() < 3500)
    {
        resp::append_command(out, {"SET", "lock:a", "owner", "NX", "PX", resp::decimal{10000}});
    }
    CHECK(out.data() == memory);
}

TEST_CASE("a full buffer grows geometrically", "[resp]")
{
    std::string out;
    std::size_t growths = 0;
    for (int command = 0; command < 10'000; ++command)
    {
        const std::size_t before = out.capacity();
        resp::append_command(out, {"PING"});
        growths += out.capacity() == before ? 0 : 1;
    }
    CHECK(growths < 20);
}

TEST_CASE("a number is written as a plain decimal", "[resp]")
{
    CHECK(resp::decimal{0}.text() == "0");
    CHECK(resp::decimal{-1}.text() == "-1");
    CHECK(resp::decimal{std::uint8_t{7}}.text() == "7");
    CHECK(resp::decimal{std::numeric_limits<std::int64_t>::min()}.text() == "-9223372036854775808");
    CHECK(resp::decimal{std::numeric_limits<std::uint64_t>::max()}.text() == "18446744073709551615");
}

} // namespace redlock::test
