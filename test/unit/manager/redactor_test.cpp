// SPDX-License-Identifier: BSL-1.0
// Server messages with the passwords that they repeat blanked out.
#include "manager/redactor.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

namespace redlock::test
{

namespace
{

using manager::redactor;

std::string shown(const redactor& by, std::string_view said)
{
    return std::string{by.show(said).view()};
}

redactor knowing(std::initializer_list<std::string> passwords)
{
    std::vector<master> masters;
    for (const std::string& each : passwords)
    {
        masters.emplace_back(tcp_address{.host = "h", .password = each});
    }
    return redactor{masters};
}

} // namespace

TEST_CASE("a server's message without a password is unchanged", "[secrets]")
{
    CHECK(shown(knowing({""}), "ERR what's 'this'\n") == "ERR what's 'this'\\n");
    CHECK(shown(knowing({"sesame"}), "ERR what's this") == "ERR what's this");
    CHECK(shown(knowing({"sesame"}), "").empty());
}

TEST_CASE("a password in a server's message is blanked out", "[secrets][scenario-94]")
{
    const redactor one = knowing({"sesame-open"});
    CHECK(shown(one, "sesame-open") == "***");
    CHECK(shown(one, "'AUTH' 'sesame-open' and sesame-open") == "'AUTH' '***' and ***");
    CHECK(shown(one, "sesame-opensesame-open") == "******");
    // A long enough prefix counts as the password, whatever follows it.
    CHECK(shown(one, "it begins with 'sesame-o', they say") == "it begins with '***', they say");
    CHECK(shown(one, "sesame is a plant") == "sesame is a plant");
}

TEST_CASE("a password that a server truncated is blanked out", "[secrets]")
{
    const redactor one = knowing({"sesame-open"});
    for (const std::string cut : {"ses", "sesam", "sesame-", "sesame-o", "sesame-ope"})
    {
        CAPTURE(cut);
        CHECK(shown(one, "beginning with: 'AUTH' '" + cut) == "beginning with: 'AUTH' '***");
        CHECK(shown(one, "beginning with: 'AUTH' '" + cut + "' ") == "beginning with: 'AUTH' '***' ");
        CHECK(shown(one, "beginning with: " + cut + "...") == "beginning with: ***...");
    }
    CHECK(shown(one, "no such key, yes") == "no such key, yes");
    // Truncated by this library: no part of the password remains at the end.
    for (std::size_t before = 0; before < 200; ++before)
    {
        CHECK(shown(one, std::string(before, 'x') + "sesame-open").find("ses") == std::string::npos);
    }
    CHECK(shown(one, std::string(1020, ' ') + "sesame-open").find("ses") == std::string::npos);
}

TEST_CASE("a password that a server escaped is blanked out", "[secrets]")
{
    const redactor one = knowing({"a\"b\\c\nd\xc3\xa9"});
    CHECK(shown(one, "AUTH \"a\\\"b\\\\c\\nd\\xc3\\xa9\" no") == "AUTH \"***\" no");
    CHECK(shown(one, "AUTH a\"b\\c d\xc3\xa9 no") == "AUTH *** no");
    CHECK(shown(one, "AUTH a\"b\\c\nd\xc3\xa9 no") == "AUTH *** no");
}

TEST_CASE("none of several passwords is shown, even if one is a prefix of another", "[secrets]")
{
    const redactor several = knowing({"sesame", "sesame-open", "x", "sesame"});
    CHECK(shown(several, "sesame-open, sesame") == "***, ***");
    CHECK(shown(several, "a x b") == "a *** b");
}

} // namespace redlock::test
