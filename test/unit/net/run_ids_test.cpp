// SPDX-License-Identifier: BSL-1.0
// Which master may use which run id: tables of announcements.
#include "net/run_ids.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace redlock::test
{

namespace
{

/// A master's announcement of a run id, and whether it may use it.
struct announcement
{
    std::size_t master;
    std::string_view run_id;
    bool may;
};

void check(const std::vector<announcement>& sequence)
{
    net::run_ids all{3};
    std::size_t at = 0;
    for (const announcement& each : sequence)
    {
        CAPTURE(at++, each.master, each.run_id);
        CHECK(all.claim(each.master, each.run_id) == each.may);
    }
}

} // namespace

TEST_CASE("each master keeps its own run id, however often it connects", "[handshake]")
{
    check({{0, "a", true}, {1, "b", true}, {2, "c", true}, {0, "a", true}, {1, "b", true}});
}

TEST_CASE("a run id belongs to the master that announced it first", "[handshake][scenario-90]")
{
    // The second row stands for any number of reconnects of the first in between.
    check(
        {{0, "a", true}, {1, "a", false}, {0, "a", true}, {1, "a", false}, {2, "a", false}, {0, "a", true}});
}

TEST_CASE("a restarted server has a new run id, and its previous one is free", "[handshake]")
{
    check({{0, "a", true}, {0, "a2", true}, {1, "a", true}, {0, "a", false}, {0, "a2", true}});
}

TEST_CASE("two addresses that were swapped recover", "[handshake][scenario-90]")
{
    check(
        {{0, "a", true},
         {1, "b", true},
         // From here on, each address leads to the other's server.
         {0, "b", false},
         {1, "a", true},
         {0, "b", true}});
    check(
        {{0, "a", true},
         {1, "b", true},
         {2, "c", true},
         {0, "b", false},
         {1, "c", false},
         {2, "a", true},
         {1, "c", true},
         {0, "b", true}});
}

TEST_CASE("a master that announces no run id keeps its previous one", "[handshake]")
{
    check({{0, "a", true}, {0, "", true}, {1, "a", false}, {1, "", true}, {2, "", true}, {0, "a", true}});
}

TEST_CASE("an address whose run id was not taken by another master can claim it again", "[handshake]")
{
    check({{0, "a", true}, {1, "b", true}, {1, "a", false}, {1, "b", true}, {2, "b", false}});
}

} // namespace redlock::test
