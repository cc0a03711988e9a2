// SPDX-License-Identifier: BSL-1.0
// Quarantine and arming on real servers: what each script answers, and what it changes.
#include "guarded_master.hpp"

#include "net/arming_scripts.hpp"
#include "net/provision_scripts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace redlock::test;
using redlock::core::marker_state;
using redlock::core::to_text;

namespace
{

constexpr std::string_view record = "0123456789abcdef 1=a:6379 2=b:6379 3=c:6379";

reply run(server& at, const redlock::net::script& what, const std::vector<std::string_view>& arguments)
{
    return run_script(
        at, what, {guarded_master::members, guarded_master::guard, guarded_master::fence}, arguments);
}

reply quarantine(server& at, std::string_view seen, std::string_view marker, std::string_view database = "0")
{
    return run(at, redlock::net::quarantine_script, {seen, marker, database, record});
}

reply arm(server& at, std::string_view waited_for, std::string_view armed, std::string_view floor)
{
    return run(at, redlock::net::arm_script, {waited_for, armed, floor, record});
}

/// Deletes the markers, always in full, as provisioning does.
reply retire(server& at, std::string_view seen, std::string_view database = "0")
{
    return at.command(
        {"EVAL", redlock::net::retire_script, "4", guarded_master::members, guarded_master::guard,
         guarded_master::fence, "lock::redlock-guard-before", seen, database});
}

/// Both texts of a quarantine that a client begins at this master.
struct quarantine_texts
{
    explicit quarantine_texts(guarded_master& at, std::string_view nonce = "00000000000000aa")
    {
        redlock::core::marker one = at.marker_with(marker_state::quarantine);
        one.nonce = nonce;
        waited_for = to_text(one);
        armed = to_text(redlock::core::armed(one));
    }

    std::string waited_for;
    std::string armed;
};

} // namespace

TEST_CASE("quarantine: begins if the marker is the one that was seen")
{
    guarded_master one;
    SECTION("an old one")
    {
        const std::string seen = one.marker();
        one.at().command({"SAVE"});
        one.at().restart();
        const quarantine_texts texts{one};
        CHECK(quarantine(one.at(), seen, texts.waited_for) == texts.waited_for);
        CHECK(one.marker() == texts.waited_for);
    }
    SECTION("none")
    {
        one.at().command({"FLUSHALL"});
        const quarantine_texts texts{one};
        CHECK(quarantine(one.at(), "", texts.waited_for) == texts.waited_for);
        CHECK(one.marker() == texts.waited_for);
        CHECK(one.at().command({"GET", one.members}) == record);
    }
    const std::vector<std::string> before = one.contents();
    CHECK(one.acquire("mine") == redlock::net::guard_differs);
    CHECK(one.contents() == before);
}

TEST_CASE("quarantine: whoever comes second gets the marker that is there")
{
    guarded_master one;
    const std::string seen = GENERATE(false, true) ? one.marker() : "";
    if (seen.empty())
    {
        one.at().command({"DEL", one.guard});
    }
    const quarantine_texts first{one, "00000000000000aa"};
    const quarantine_texts second{one, "00000000000000bb"};
    REQUIRE(quarantine(one.at(), seen, first.waited_for) == first.waited_for);
    CHECK(quarantine(one.at(), seen, second.waited_for) == first.waited_for);
    CHECK(one.marker() == first.waited_for);
    // One that has seen a marker which is gone is told that there is none.
    one.at().command({"DEL", one.guard});
    CHECK(quarantine(one.at(), first.waited_for, second.waited_for) == "");
    CHECK(one.marker().empty());
}

TEST_CASE("quarantine: needs the replication id that the server has now")
{
    guarded_master one;
    const std::string seen = one.marker();
    const quarantine_texts texts{one};
    one.at().command({"SAVE"});
    one.at().restart();
    const std::vector<std::string> before = one.contents();
    CHECK(quarantine(one.at(), seen, texts.waited_for) == redlock::net::incarnation_differs);
    CHECK(one.contents() == before);
}

TEST_CASE("quarantine: a replica isn't put into one")
{
    guarded_master one;
    server replica{server_options::plain()};
    replica.command({"CONFIG", "SET", "replica-read-only", "no"});
    replica.command({"REPLICAOF", "127.0.0.1", std::to_string(one.at().port())});
    REQUIRE(one.at().command({"WAIT", "1", "10000"}) == 1);
    const quarantine_texts texts{one};
    CHECK(quarantine(replica, one.marker(), texts.waited_for) == redlock::net::incarnation_differs);
    CHECK(replica.command({"GET", one.guard}) == one.marker());
}

TEST_CASE("quarantine: deletes the markers of the other databases, so that none comes back")
{
    guarded_master one;
    for (const std::string_view database : {"1", "15"})
    {
        one.at().command({"COPY", one.guard, one.guard, "DB", database});
        one.at().command({"COPY", one.fence, one.fence, "DB", database});
    }
    const quarantine_texts texts{one};
    REQUIRE(quarantine(one.at(), one.marker(), texts.waited_for) == texts.waited_for);
    CHECK(arm(one.at(), texts.waited_for, texts.armed, "2000") == 2000);
    CHECK(one.acquire("mine") == redlock::net::guard_differs); // With the old marker.
    for (const std::string_view database : {"1", "15"})
    {
        one.at().command({"SWAPDB", "0", database});
        CHECK(one.marker().empty());
        CHECK_FALSE(one.counter("floor").is_null());
        one.at().command({"SWAPDB", "0", database});
    }
    CHECK(one.marker() == texts.armed);
}

TEST_CASE("quarantine: in another database than 0, the marker is written there")
{
    guarded_master one;
    const std::string seen = one.marker();
    one.at().command({"SELECT", "3"});
    one.at().command({"SET", one.guard, seen});
    const quarantine_texts texts{one};
    CHECK(quarantine(one.at(), seen, texts.waited_for, "3") == texts.waited_for);
    CHECK(one.marker() == texts.waited_for);
    one.at().command({"SELECT", "0"});
    CHECK(one.marker().empty());
}

TEST_CASE("quarantine: isn't begun if other databases can't be reached")
{
    server_options options = server_options::plain();
    options.settings = {"--rename-command", "SELECT", "no-select"};
    server one{options};
    redlock::core::marker wanted{
        .group = "0123456789abcdef",
        .seat = 1,
        .masters = 3,
        .max_ttl = std::chrono::minutes{1},
        .policy = redlock::core::arming_policy::clocks,
        .state = marker_state::quarantine,
        .why = redlock::core::incarnation_end::emptied,
        .nonce = "fedcba9876543210",
        .replication_id = replication_id_of(one)};
    CHECK(quarantine(one, "", to_text(wanted)) == redlock::net::databases_unknown);
    CHECK(one.command({"GET", guarded_master::guard}).is_null());
}

TEST_CASE("quarantine: a key of another type in the place of the marker stays")
{
    guarded_master one;
    one.at().command({"DEL", one.guard});
    one.at().command({"RPUSH", one.guard, "element"});
    const std::vector<std::string> before = one.contents();
    CHECK(quarantine(one.at(), "", quarantine_texts{one}.waited_for).text.starts_with("WRONGTYPE"));
    CHECK(one.contents() == before);
}

TEST_CASE("retirement: deletes the markers of all databases, if the one of its own is the one that was seen")
{
    guarded_master one;
    for (const std::string_view database : {"1", "15"})
    {
        one.at().command({"COPY", one.guard, one.guard, "DB", database});
    }
    const std::string seen = one.marker();
    const std::vector<std::string> before = one.contents();
    CHECK(retire(one.at(), "another marker") == seen);
    CHECK(one.contents() == before);
    CHECK(retire(one.at(), seen) == "");
    for (const std::string_view database : {"0", "1", "15"})
    {
        one.at().command({"SELECT", database});
        CHECK(one.at().command({"EXISTS", one.guard}) == 0);
    }
    one.at().command({"SELECT", "0"});
    CHECK(one.counter("floor") == "1000");
    CHECK(retire(one.at(), seen) == "");
}

TEST_CASE("retirement: deletes nothing of its own database if others can't be reached")
{
    server_options options = server_options::plain();
    options.settings = {"--rename-command", "SELECT", "no-select"};
    server one{options};
    CHECK(one.command({"SET", guarded_master::guard, "its marker"}) == "OK");
    CHECK(retire(one, "its marker") == redlock::net::databases_unknown);
    CHECK(one.command({"GET", guarded_master::guard}) == "its marker");
}

TEST_CASE("arming: ends the quarantine that was waited for, and restores the counters")
{
    guarded_master one;
    REQUIRE(one.acquire("old") == 1001);
    const quarantine_texts texts{one};
    REQUIRE(quarantine(one.at(), one.marker(), texts.waited_for) == texts.waited_for);
    SECTION("the floor rises")
    {
        CHECK(arm(one.at(), texts.waited_for, texts.armed, "7000") == 7000);
        CHECK(one.counter("floor") == "7000");
    }
    SECTION("it never falls")
    {
        CHECK(arm(one.at(), texts.waited_for, texts.armed, "7") == 1000);
        CHECK(one.counter("floor") == "1000");
    }
    SECTION("the counters are gone")
    {
        one.at().command({"DEL", one.fence});
        CHECK(arm(one.at(), texts.waited_for, texts.armed, "7000") == 7000);
        CHECK(one.counter("floor") == "7000");
    }
    CHECK(one.marker() == texts.armed);
    CHECK(one.at().command({"GET", one.members}) == record);
    // Whoever comes second changes nothing.
    const std::vector<std::string> before = one.contents();
    CHECK(arm(one.at(), texts.waited_for, texts.armed, "9000") == redlock::net::guard_differs);
    CHECK(one.contents() == before);
}

TEST_CASE("arming: another quarantine, another incarnation, evictions or numbers at their end prevent it")
{
    guarded_master one;
    const quarantine_texts texts{one, "00000000000000aa"};
    const quarantine_texts later{one, "00000000000000bb"};
    REQUIRE(quarantine(one.at(), one.marker(), texts.waited_for) == texts.waited_for);
    std::string_view floor = "7000";
    std::int64_t expected = redlock::net::guard_differs;
    SECTION("a later one")
    {
        REQUIRE(quarantine(one.at(), texts.waited_for, later.waited_for) == later.waited_for);
    }
    SECTION("a restart")
    {
        one.at().command({"SAVE"});
        one.at().restart();
        expected = redlock::net::incarnation_differs;
    }
    SECTION("2^53")
    {
        floor = "9007199254740992";
    }
    SECTION("a policy that evicts")
    {
        one.at().command({"CONFIG", "SET", "maxmemory-policy", GENERATE("volatile-lru", "allkeys-random")});
        expected = redlock::net::may_evict;
    }
    const std::vector<std::string> before = one.contents();
    CHECK(arm(one.at(), texts.waited_for, texts.armed, floor) == expected);
    CHECK(one.contents() == before);
}

TEST_CASE("largest counter: of all slots and the floor, under the marker that was seen")
{
    guarded_master one;
    const auto largest = [&](std::string_view marker)
    { return run(one.at(), redlock::net::largest_counter_script, {marker}); };
    const std::string marker = one.marker();
    CHECK(largest(marker) == 1000);
    one.at().command({"HSET", one.fence, "7", "1500", "1023", "1700", "0", "1200"});
    CHECK(largest(marker) == 1700);
    one.at().command({"HSET", one.fence, "7", "9007199254740991"});
    CHECK(largest(marker) == 9007199254740991);
    CHECK(largest(quarantine_texts{one}.waited_for) == redlock::net::guard_differs);
    one.at().command({"HDEL", one.fence, "floor"});
    CHECK(largest(marker) == redlock::net::guard_differs);
    one.at().command({"SAVE"});
    one.at().restart();
    CHECK(largest(marker) == redlock::net::incarnation_differs);
}
