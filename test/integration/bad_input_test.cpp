// SPDX-License-Identifier: BSL-1.0
// Invalid arguments are refused before anything is sent; the complaint has the value and the allowed range.
#include "integration/fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <ostream>
#include <string>
#include <vector>

using namespace redlock::test;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using redlock::errc;

namespace
{

/// A refused acquire, and the text that its complaint must contain.
struct refusal
{
    std::string resource;
    redlock::acquire_options options;
    errc error;
    std::vector<std::string> words;

    friend std::ostream& operator<<(std::ostream& out, const refusal& one)
    {
        return out << one.words.front();
    }
};

void check(const refusal& given, const acquired& result)
{
    CHECK(result.error == given.error);
    CHECK_FALSE(result.lease);
    CHECK(result.report.rounds == 0);
    CHECK(result.report.masters().empty());
    for (const std::string& word : given.words)
    {
        CHECK_THAT(result.report.argument_error, ContainsSubstring(word));
        CHECK_THAT(result.report.to_string(), ContainsSubstring(word));
    }
}

} // namespace

TEST_CASE(
    "an acquire with invalid arguments is refused, and the complaint has the value and the allowed range",
    "[own-servers]")
{
    const auto given = GENERATE(
        refusal{"", {.ttl = 10s}, errc::invalid_resource, {"0 bytes", "1 to 1024"}},
        refusal{std::string(1025, 'x'), {.ttl = 10s}, errc::invalid_resource, {"1025 bytes", "1 to 1024"}},
        refusal{"stock", {}, errc::invalid_ttl, {"ttl of 0 ms", "from 105 ms to"}},
        refusal{"stock", {.ttl = -1ms}, errc::invalid_ttl, {"ttl of -1 ms", "from 105 ms to"}},
        refusal{
            "stock",
            {.ttl = 100ms},
            errc::invalid_ttl,
            {"ttl of 100 ms", "from 105 ms to", "100 ms of node timeout"}},
        refusal{
            "stock",
            {.ttl = 104ms},
            errc::invalid_ttl,
            {"ttl of 104 ms", "from 105 ms to", "100 ms of node timeout"}},
        refusal{
            "stock",
            {.ttl = std::chrono::milliseconds::max()},
            errc::invalid_ttl,
            {"ttl of 9223372036854775807 ms", "to 3153600000000 ms"}},
        refusal{
            "stock",
            {.ttl = 3153600000001ms},
            errc::invalid_ttl,
            {"3153600000001 ms", "to 3153600000000 ms"}},
        refusal{
            "stock",
            {.ttl = 10s, .min_validity = -1ms},
            errc::invalid_min_validity,
            {"min_validity of -1 ms", "ttl of 10000 ms", "from 0 ms to 9897 ms"}},
        refusal{
            "stock",
            {.ttl = 10s, .min_validity = 9898ms},
            errc::invalid_min_validity,
            {"min_validity of 9898 ms", "ttl of 10000 ms", "from 0 ms to 9897 ms"}},
        refusal{"stock", {.ttl = 10s, .wait = -1ms}, errc::invalid_wait, {"wait of -1 ms", "0 ms or more"}},
        refusal{
            "stock",
            {.ttl = 10s, .max_rounds = 0},
            errc::invalid_max_rounds,
            {"max_rounds of 0", "1 or more"}});
    CAPTURE(given);
    server at;
    redlock::config options = unhurried({address_of(at)});
    options.node_timeout = 100ms;
    client own{options};
    own.wait_for_masters();
    check(given, own.acquire(given.resource, given.options));
    if (given.error != errc::invalid_wait && given.error != errc::invalid_max_rounds)
    {
        check(
            given,
            own.try_acquire(
                given.resource, {.ttl = given.options.ttl, .min_validity = given.options.min_validity}));
    }
    CHECK(info_number(at, "commandstats", "cmdstat_set") == 0);
}

TEST_CASE("arguments at their limits are accepted, by servers too", "[plain]")
{
    server at{server_options::plain()}; // The keys of this test don't begin with lock:.
    redlock::config options = unhurried({address_of(at)});
    // As long as a loaded machine may need, and a ttl just above it.
    options.node_timeout = 10s;
    options.key_prefix = std::string(1024, 'p');
    client own{options};
    own.wait_for_masters();
    CHECK_FALSE(own.try_acquire(std::string(1024, 'x'), {.ttl = 3153600000000ms}).error);
    CHECK_FALSE(own.try_acquire("x", {.ttl = long_ttl, .min_validity = 500'000ms}).error);
    CHECK(own.try_acquire("y", {.ttl = 10'105ms}).error != errc::invalid_ttl);
    CHECK(own.acquire("z", {.ttl = long_ttl, .wait = 0ms, .max_rounds = 1}).error != errc::invalid_wait);
}

TEST_CASE("an extension to an invalid ttl is refused, and leaves the lease unchanged")
{
    const auto ttl = GENERATE(0ms, -1ms, 104ms, 3153600000001ms);
    CAPTURE(ttl.count());
    server at;
    redlock::config options = unhurried({address_of(at)});
    options.node_timeout = 100ms;
    client own{options};
    acquired held = own.acquire("stock", {.ttl = long_ttl, .wait = redlock::no_limit});
    REQUIRE_FALSE(held.error);
    const auto before = held.lease.valid_until();
    const finished refused = extend(held.lease, ttl);
    CHECK(refused.error == errc::invalid_ttl);
    CHECK_THAT(
        refused.report.argument_error, ContainsSubstring("ttl of " + std::to_string(ttl.count()) + " ms"));
    CHECK_THAT(refused.report.argument_error, ContainsSubstring("from 105 ms to 3153600000000 ms"));
    CHECK(held.lease.valid_until() == before);
    CHECK(held.lease.valid());
}

TEST_CASE("an operation on an empty lease returns not_held", "[own-servers]")
{
    redlock::lease empty;
    CHECK_FALSE(empty);
    CHECK_FALSE(empty.valid());
    CHECK(empty.resource().empty());
    CHECK(empty.owner_id().empty());
    CHECK(extend(empty, long_ttl).error == errc::not_held);
    CHECK(release(empty).error == errc::not_held);
}
