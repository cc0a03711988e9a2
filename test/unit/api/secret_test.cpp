// SPDX-License-Identifier: BSL-1.0
// A password appears in no message and no name, and can't be written or compared by accident.
#include "unit/refusal.hpp"

#include <redlock/error.hpp>
#include <redlock/master.hpp>
#include <redlock/report.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <concepts>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>

namespace redlock::test
{

namespace
{

using namespace std::string_literals;

template <class T>
concept streamable = requires(std::ostream& out, const T& value) { out << value; };

template <class T>
concept has_words = requires(const T& value) { to_string(value); };

template <class T>
constexpr bool formattable = fmt::is_formattable<T>::value;

// Shows that the check detects types that can be written.
static_assert(streamable<std::string> && streamable<report>);
static_assert(formattable<std::string>);
static_assert(has_words<vote>);
static_assert(std::equality_comparable<std::string>);

template <class T>
constexpr bool kept_to_itself =
    !streamable<T> && !formattable<T> && !has_words<T> && !std::equality_comparable<T> &&
    !std::is_convertible_v<T, std::string> && !std::is_convertible_v<T, std::string_view> &&
    !std::is_convertible_v<T, const char*> && !std::is_convertible_v<T, bool>;

static_assert(kept_to_itself<secret>);
static_assert(kept_to_itself<tcp_address>);
static_assert(kept_to_itself<unix_address>);
static_assert(kept_to_itself<master>);

} // namespace

TEST_CASE("a password is shown only by the call that is named for it", "[scenario-52]")
{
    STATIC_REQUIRE(kept_to_itself<secret>);
    const secret none;
    const secret given{"sesame"};
    CHECK(none.empty());
    CHECK_FALSE(given.empty());
    CHECK(given.reveal() == "sesame");
}

TEST_CASE("the message about a malformed URL never contains its password", "[scenario-52]")
{
    for (const std::string& url :
         {"redis://alice:sesame@"s,
          "redis://alice:sesame@:6379"s,
          "redis://alice:sesame@h:0"s,
          "redis://alice:sesame@h:x"s,
          "redis://alice:sesame@h/x"s,
          "redis://alice:sesame@h?x"s,
          "redis://alice:sesame@[::1"s,
          "redis://alice:sesame@::1"s,
          "redis://alice:sesame@a@b"s,
          "redis://al@ice:sesame@h"s,
          "redis://alice:sesame@h%"s,
          "redis://alice:%sesame@h"s,
          "redis://alice:ses<sesame@h"s,
          "redis://alice:sesame@h\n"s,
          "redis://alice:sesame"s,
          "redis://:sesame"s,
          "redis://alice:/sesame@h"s,
          "redis://alice:#sesame@h"s,
          "redis://alice:?sesame@h"s,
          "redis://alice:sesame/@h"s,
          "redis://alice:sesame?@h"s,
          "redis://alice:sesame#@h"s,
          "redis://alice: sesame@h"s,
          "redis://sesame@h"s,
          "rediss://alice:sesame@h:0"s,
          "http://alice:sesame@h"s,
          "alice:sesame@h"s,
          ":sesame@h"s,
          "alice:sesame://h"s,
          "sesame@redis://h"s,
          "redis:alice:sesame@h"s,
          "redis:/alice:sesame@h"s,
          "redis://alice:sesame@h/x@y"s,
          "redis://alice:@sesame@h"s,
          "unix://alice:sesame@/run/x"s,
          "unix://:sesame@/run/x"s,
          "unix:///run/x?password=sesame"s,
          "unix:///run/x?password=@sesame"s,
          "redis://h?password=sesame"s,
          "redis://h#sesame"s,
          "redis://h:6379/?@sesame"s,
          "redis://alice:sesame@h:6379:1"s,
          "redis://al%20ice:sesame@h"s,
          "redis://alice:sesame@"s + std::string(300, 'h'),
          "redis://alice:sesame@h"s + std::string(70'000, 'h')})
    {
        CAPTURE(url.substr(0, 100));
        CHECK(refusal_of(url).find("sesame") == std::string::npos);
    }
}

TEST_CASE(
    "no message and no name contains the password after any typing error of one character", "[scenario-52]")
{
    const std::string before = "redis://alice:";
    const std::string password = "S3same.Open";
    const std::string behind = "@10.0.0.1:6379/3";
    const std::string url = before + password + behind;
    int tried = 0;
    const auto check = [&](const std::string& slipped)
    {
        ++tried;
        std::string shown;
        try
        {
            const master accepted{slipped};
            shown = accepted.name() + accepted.host();
        }
        catch (const system_error& error)
        {
            shown = error.what();
        }
        if (shown.find(password) != std::string::npos)
        {
            FAIL_CHECK(short_text{slipped}.view() << ": " << short_text{shown}.view());
        }
    };
    for (std::size_t at = 0; at <= url.size(); ++at)
    {
        const bool inside = at >= before.size() && at < before.size() + password.size();
        for (int byte = 0; byte < 256 && (!inside || at == before.size()); ++byte)
        {
            std::string slipped = url;
            check(slipped.insert(at, 1, static_cast<char>(byte)));
            slipped = url;
            if (!inside && at < url.size())
            {
                slipped[at] = static_cast<char>(byte);
                check(slipped);
            }
        }
        if (!inside && at < url.size())
        {
            check(std::string{url}.erase(at, 1));
            check(url.substr(0, at));
        }
    }
    CHECK(tried > 10'000);
}

TEST_CASE("a URL that has a password and is in the wrong field isn't shown", "[scenario-52]")
{
    for (const std::string& url :
         {"redis://alice:sesame@h"s, "alice:sesame@h"s, "sesame@h"s, "redis://:sesame"s})
    {
        CHECK(refusal_of(tcp_address{.host = url}).find("sesame") == std::string::npos);
        CHECK(refusal_of(unix_address{.path = url}).find("sesame") == std::string::npos);
    }
    const master good{tcp_address{.host = "h", .username = "alice", .password = "sesame"}};
    CHECK(good.name().find("sesame") == std::string::npos);
    CHECK(good.name().find("alice") == std::string::npos);
    CHECK(refusal_of(tcp_address{.host = "", .password = "sesame"}).find("sesame") == std::string::npos);
    CHECK(
        refusal_of(tcp_address{.host = "h", .password = "sesame", .database = -1}).find("sesame") ==
        std::string::npos);
}

} // namespace redlock::test
