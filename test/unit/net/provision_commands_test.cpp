// SPDX-License-Identifier: BSL-1.0
// The commands of provisioning, word by word, and the meaning of each reply.
#include "net/provision_commands.hpp"
#include "net/provision_scripts.hpp"
#include "net/trial_scripts.hpp"
#include "unit/net/only_command.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

const net::guard_keys keys{"lock:"};

resp::node text(std::string_view value)
{
    return {resp::kind::bulk_string, 1, 0, 0, value};
}

resp::node number(std::int64_t value)
{
    return {resp::kind::integer, 1, 0, value, {}};
}

const resp::node none{resp::kind::null, 1, 0, 0, {}};

/// The reply of a master without keys.
std::vector<resp::node> empty_master()
{
    return {
        {resp::kind::array, 0, 13, 0, {}},
        none,
        none,
        none,
        number(-1),
        number(0),
        number(0),
        text("0123"),
        text("master"),
        text("noeviction"),
        number(0),
        number(-1),
        text(""),
        number(1'700'000'000'000'000)};
}

} // namespace

TEST_CASE("the commands of provisioning", "[wire][guarded]")
{
    std::string out;
    SECTION("a look")
    {
        net::append_provision_look(out, keys, 7);
        CHECK(
            only_command(out) == command{
                                     "EVAL", std::string{net::provision_look_script}, "4",
                                     "lock::redlock-members", "lock::redlock-guard", "lock::redlock-fence",
                                     "lock::redlock-guard-before", "7"});
    }
    SECTION("a trial")
    {
        const bool leaves = GENERATE(false, true);
        net::append_provision_trial(out, keys, 3, leaves);
        CHECK(
            only_command(out) == command{
                                     "EVAL", std::string{net::provision_trial_script}, "4",
                                     "lock::redlock-members", "lock::redlock-guard", "lock::redlock-fence",
                                     "lock::redlock-guard-before", "3", leaves ? "1" : "0"});
    }
    SECTION("a quarantine")
    {
        const std::string marker = "redlock 1 0123456789abcdef 2 3 60000 clocks quarantine new "
                                   "fedcba9876543210 00112233445566778899aabbccddeeff00112233";
        const std::string record = "0123456789abcdef 1=redis://a:1 2=redis://b:1 3=redis://c:1";
        const core::marker begun = core::parse_marker(marker).value();
        const core::member_record members = core::parse_members(record).value();
        const std::vector<core::replaced_group> replaced{{begun, members}};
        std::string groups;
        std::string counts = "1";
        SECTION("of a new group")
        {
            net::append_provision_quarantine(out, keys, {"seen", begun, members}, 7);
        }
        SECTION("of a group that replaces another one")
        {
            net::append_provision_quarantine(out, keys, {"seen", begun, members, replaced, false}, 7);
            groups = marker + '\n' + record;
            counts = "0";
        }
        CHECK(
            only_command(out) == command{
                                     "EVAL", net::provision_quarantine_script(), "4", "lock::redlock-members",
                                     "lock::redlock-guard", "lock::redlock-fence",
                                     "lock::redlock-guard-before", "seen", marker, "7", record, groups,
                                     counts});
    }
    SECTION("the deletion of a marker")
    {
        net::append_retire(out, keys, "seen", 7);
        CHECK(
            only_command(out) == command{
                                     "EVAL", std::string{net::retire_script}, "4", "lock::redlock-members",
                                     "lock::redlock-guard", "lock::redlock-fence",
                                     "lock::redlock-guard-before", "seen", "7"});
    }
}

TEST_CASE("the reply to a look of provisioning", "[wire][guarded]")
{
    std::vector<resp::node> nodes = empty_master();
    const auto read = [&nodes] { return net::read_provision_look(resp::reply{nodes}); };
    SECTION("of an empty master")
    {
        const std::optional<core::provision_sight> seen = read();
        REQUIRE(seen);
        CHECK(seen->is_known);
        CHECK(!seen->marker);
        CHECK(!seen->members);
        CHECK(!seen->replaced);
        CHECK(!seen->largest);
        CHECK(!seen->has_floor);
        CHECK(!seen->has_foreign_key);
        CHECK(seen->replication_id == "0123");
        CHECK(seen->is_master);
        CHECK(seen->maxmemory_policy == "noeviction");
        CHECK(!seen->has_other_keys);
        CHECK(!seen->other_database);
        CHECK(seen->clock == 1'700'000'000s);
    }
    SECTION("of a master that has everything")
    {
        nodes[1] = text("its marker");
        nodes[2] = text("");
        nodes[3] = text("of before");
        nodes[4] = number(4711);
        nodes[5] = nodes[6] = nodes[10] = number(1);
        nodes[8] = text("slave");
        nodes[11] = number(15);
        nodes[12] = text("another marker");
        const std::optional<core::provision_sight> seen = read();
        REQUIRE(seen);
        CHECK(seen->marker == "its marker");
        CHECK(seen->members == "");
        CHECK(seen->replaced == "of before");
        CHECK(seen->largest == 4711);
        CHECK(seen->has_floor);
        CHECK(seen->has_foreign_key);
        CHECK(!seen->is_master);
        CHECK(seen->has_other_keys);
        CHECK(seen->other_database == 15);
        CHECK(seen->other_marker == "another marker");
    }
    SECTION("of another form")
    {
        const std::size_t element = GENERATE(range(std::size_t{1}, std::size_t{14}));
        nodes[element] = GENERATE(
            resp::node{resp::kind::array, 1, 0, 0, {}}, resp::node{resp::kind::simple_string, 1, 0, 0, "OK"});
        CHECK(!read());
    }
    SECTION("that is too short, too long, or no array")
    {
        SECTION("")
        {
            nodes.pop_back();
        }
        SECTION("")
        {
            nodes.push_back(none);
        }
        SECTION("")
        {
            nodes.front().kind = resp::kind::set;
        }
        SECTION("")
        {
            nodes = {{resp::kind::integer, 0, 0, 1, {}}};
        }
        CHECK(!read());
    }
}

} // namespace redlock::test
