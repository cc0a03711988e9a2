// SPDX-License-Identifier: BSL-1.0
// Tests of who may go by which run id: tables of announcements.
#include "net/run_ids.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace redlock::test
{

namespace
{

/// A master announces a run id, and may go by it or not.
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

TEST_CASE("each master goes by its own run id, as often as it connects", "[handshake]")
{
    check({{0, "a", true}, {1, "b", true}, {2, "c", true}, {0, "a", true}, {1, "b", true}});
}

TEST_CASE("the master that announced a run id first keeps it", "[handshake][scenario-90]")
{
    // The second row stands for any number of reconnects of the first in between.
    check(
        {{0, "a", true}, {1, "a", false}, {0, "a", true}, {1, "a", false}, {2, "a", false}, {0, "a", true}});
}

TEST_CASE("a server that was restarted has a new run id, and its old one is free", "[handshake]")
{
    check({{0, "a", true}, {0, "a2", true}, {1, "a", true}, {0, "a", false}, {0, "a2", true}});
}

TEST_CASE("two addresses that were exchanged get along again", "[handshake][scenario-90]")
{
    check(
        {{0, "a", true},
         {1, "b", true},
         // From now on each leads to the other's server.
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

TEST_CASE("a master that announces no run id keeps the one that it had", "[handshake]")
{
    check({{0, "a", true}, {0, "", true}, {1, "a", false}, {1, "", true}, {2, "", true}, {0, "a", true}});
}

TEST_CASE("an address that lost its run id to nobody may have it again", "[handshake]")
{
    check({{0, "a", true}, {1, "b", true}, {1, "a", false}, {1, "b", true}, {2, "b", false}});
}

} // namespace redlock::test
