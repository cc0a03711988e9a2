// SPDX-License-Identifier: BSL-1.0
// The text of the record of members: what is read from one, and which texts are none.
#include "core/members.hpp"

#include <redlock/vote.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <string>
#include <string_view>

namespace redlock::test
{

namespace
{

using core::member_record;

constexpr std::string_view three_members =
    "0123456789abcdef 1=redis://a:6379 2=rediss://[::1]:6380/2 3=unix:///run/r=2.sock";

member_record of_size(std::size_t members)
{
    member_record made{"0123456789abcdef", {}};
    for (std::size_t seat = 1; seat <= members; ++seat)
    {
        made.names.push_back("redis://a:" + std::to_string(seat));
    }
    return made;
}

} // namespace

TEST_CASE("members: the text has the group, and the names by their seats")
{
    const member_record wanted{
        "0123456789abcdef", {"redis://a:6379", "rediss://[::1]:6380/2", "unix:///run/r=2.sock"}};
    CHECK(core::parse_members(three_members) == wanted);
    CHECK(core::to_text(wanted) == three_members);
}

TEST_CASE("members: from 1 to as many as a group can have")
{
    const std::size_t members = GENERATE(std::size_t{1}, max_masters);
    const member_record made = of_size(members);
    CHECK(core::parse_members(core::to_text(made)) == made);
}

TEST_CASE("members: another text is none")
{
    const std::string text = GENERATE(
        as<std::string>{}, "", "0123456789abcdef", "0123456789abcdef ", "0123456789abcde 1=a",
        "0123456789ABCDEF 1=a", "0123456789abcdef 2=a", "0123456789abcdef 01=a",
        "0123456789abcdef 1=", "0123456789abcdef 1a", "0123456789abcdef 1=a 3=b", "0123456789abcdef 2=b 1=a",
        "0123456789abcdef 1=a 1=b", "0123456789abcdef 1=a 2=a", "0123456789abcdef  1=a",
        "0123456789abcdef 1=a ", "0123456789abcdef 1=a  2=b", " 0123456789abcdef 1=a",
        "0123456789abcdef 1=a\t2=b", "0123456789abcdef 1=a\n");
    CAPTURE(text);
    CHECK_FALSE(core::parse_members(text));
}

TEST_CASE("members: neither too many of them, nor too long a name")
{
    CHECK_FALSE(core::parse_members(core::to_text(of_size(max_masters + 1))));
    member_record long_name{"0123456789abcdef", {std::string(core::max_member_name, 'a')}};
    CHECK(core::parse_members(core::to_text(long_name)) == long_name);
    long_name.names.front() += 'a';
    CHECK_FALSE(core::parse_members(core::to_text(long_name)));
}

TEST_CASE("members: the seat of a name")
{
    const std::optional<member_record> record = core::parse_members(three_members);
    REQUIRE(record);
    CHECK(core::seat_of(*record, "redis://a:6379") == 1U);
    CHECK(core::seat_of(*record, "unix:///run/r=2.sock") == 3U);
    CHECK_FALSE(core::seat_of(*record, "redis://a:637"));
}

} // namespace redlock::test
