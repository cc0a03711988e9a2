// SPDX-License-Identifier: BSL-1.0
// Which resources would have keys of the library.
#include "net/reserved_keys.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <string>

namespace redlock::test
{

TEST_CASE("a resource can't have a key of a queue or of guarded mode", "[guarded]")
{
    const auto [prefix, resource, expected] = GENERATE(table<std::string, std::string, bool>(
        {{"lock:", "stock", false},
         {"lock:", "", false},
         {"", "redlock-queue:order:stock", true},
         {"redlock-", "queue:order", true},
         {"redlock-", "queue", false},
         {"lock:", "redlock-queue:order", false},
         {"lock:", ":redlock-guard", true},
         {"lock:", ":redlock-fence", true},
         {"lock:", ":redlock-members", true},
         {"lock:", "redlock-guard", true}, // "lock:redlock-guard" contains ":redlock-guard".
         {"lock", "redlock-guard", false},
         {"lock:", "a:redlock-guard:b", true},
         {"lock:", "a:redlock-guar", false},
         {"", ":redlock-members", true},
         {"lock::redlock-guar", "d", true},
         {"lock::redlock-guar", "e", false},
         {"lock::redlock-", "fence:7", true}}));
    CAPTURE(prefix, resource);
    CHECK(net::reserved_keys{prefix}.contains(resource) == expected);
}

TEST_CASE("a name of a key of guarded mode is found anywhere", "[guarded]")
{
    const auto [text, expected] = GENERATE(table<std::string, bool>(
        {{"", false},
         {"lock:", false},
         {"redlock-guard", false},
         {"mine:redlock-guard", true},
         {"mine:redlock-fence:", true},
         {"mine:redlock-members", true},
         {"mine:redlock-", false}}));
    CAPTURE(text);
    CHECK(net::contains_guard_name(text) == expected);
}

} // namespace redlock::test
