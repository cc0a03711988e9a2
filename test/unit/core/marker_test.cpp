// SPDX-License-Identifier: BSL-1.0
// The text of markers: what is read from one, and which texts are none.
#include "core/marker.hpp"
#include "core/validity.hpp"

#include <redlock/vote.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

namespace
{

using core::marker;

marker example()
{
    return {
        .group = "0123456789abcdef",
        .seat = 2,
        .masters = 5,
        .max_ttl = std::chrono::minutes{1},
        .policy = core::arming_policy::clocks,
        .state = core::marker_state::quarantine,
        .why = core::incarnation_end::stale,
        .nonce = "fedcba9876543210",
        .replication_id = "00112233445566778899aabbccddeeff00112233"};
}

constexpr std::string_view example_text = "redlock 1 0123456789abcdef 2 5 60000 clocks quarantine stale "
                                          "fedcba9876543210 00112233445566778899aabbccddeeff00112233";

std::vector<std::string> words_of(std::string_view text)
{
    std::vector<std::string> words{""};
    for (const char each : text)
    {
        if (each == ' ')
        {
            words.emplace_back();
        }
        else
        {
            words.back() += each;
        }
    }
    return words;
}

std::string with_word(std::size_t at, std::string_view word)
{
    std::vector<std::string> words = words_of(example_text);
    words.at(at) = word;
    std::string text = words.front();
    for (std::size_t index = 1; index < words.size(); ++index)
    {
        text += " " + words[index];
    }
    return text;
}

} // namespace

TEST_CASE("marker: the text is that of format 1")
{
    CHECK(core::to_text(example()) == example_text);
}

TEST_CASE("marker: every marker is read as it was written")
{
    marker one = example();
    one.policy = GENERATE(core::arming_policy::clocks, core::arming_policy::by_hand);
    one.state =
        GENERATE(core::marker_state::armed, core::marker_state::quarantine, core::marker_state::retired);
    one.why = GENERATE(
        core::incarnation_end::created, core::incarnation_end::stale, core::incarnation_end::emptied,
        core::incarnation_end::clock);
    one.masters = GENERATE(std::uint32_t{2}, static_cast<std::uint32_t>(max_masters));
    one.max_ttl = GENERATE(std::chrono::milliseconds{1}, core::max_ttl);
    CAPTURE(core::to_text(one));
    CHECK(core::parse_marker(core::to_text(one)) == one);
}

TEST_CASE("marker: the words are those of the format")
{
    marker one = example();
    one.policy = core::arming_policy::by_hand;
    one.state = core::marker_state::retired;
    one.why = core::incarnation_end::created;
    CHECK(core::to_text(one).find(" operator retired new ") != std::string::npos);
    one.state = core::marker_state::armed;
    one.why = core::incarnation_end::emptied;
    CHECK(core::to_text(one).find(" armed emptied ") != std::string::npos);
    one.why = core::incarnation_end::clock;
    CHECK(core::to_text(one).find(" armed clock ") != std::string::npos);
}

TEST_CASE("marker: another text is none")
{
    const std::string_view longest = "3153600000000"; // A hundred years.
    CHECK(core::parse_marker(with_word(5, longest)));
    const auto [at, word] = GENERATE(table<std::size_t, std::string_view>(
        {{0, "redlocks"},
         {0, ""},
         {1, "2"},
         {1, "01"},
         {2, "0123456789ABCDEF"},
         {2, "0123456789abcde"},
         {2, "0123456789abcdef0"},
         {2, "0123456789abcdeg"},
         {3, "0"},
         {3, "6"},
         {3, "02"},
         {3, "+2"},
         {3, ""},
         {4, "1"},
         {4, "32"},
         {5, "0"},
         {5, "-1"},
         {5, "60s"},
         {5, "3153600000001"},
         {5, "99999999999999999999"},
         {6, "Clocks"},
         {7, "arm"},
         {8, "fresh"},
         {9, "fedcba987654321"},
         {10, "00112233445566778899aabbccddeeff0011223"},
         {10, "00112233445566778899aabbccddeeff00112233 "},
         {10, " 00112233445566778899aabbccddeeff00112233"}}));
    const std::string text = with_word(at, word);
    CAPTURE(text);
    CHECK_FALSE(core::parse_marker(text));
}

TEST_CASE("marker: a part of a text is none")
{
    const std::string_view whole = example_text;
    for (std::size_t size = 0; size < whole.size(); ++size)
    {
        CAPTURE(size);
        CHECK_FALSE(core::parse_marker(whole.substr(0, size)));
    }
}

TEST_CASE("marker: arming changes nothing but the state")
{
    const std::string text = core::to_text(core::armed(example()));
    CHECK(text == with_word(7, "armed"));
}

} // namespace redlock::test
