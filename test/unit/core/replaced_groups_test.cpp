// SPDX-License-Identifier: BSL-1.0
// The text of the groups that a change replaces.
#include "core/replaced_groups.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

core::replaced_group replaced(const std::string& name)
{
    return {
        {name, 2, 3, 60s, core::arming_policy::clocks, core::marker_state::armed,
         core::incarnation_end::created, "00000000000000aa", std::string(core::replication_id_length, '1')},
        {name, {"redis://a:1", "redis://b:1", "redis://c:1"}}};
}

const core::replaced_group first = replaced("0123456789abcdef");
const core::replaced_group second = replaced("fedcba9876543210");

} // namespace

TEST_CASE("replaced groups: two lines for each, with its marker and its record")
{
    const std::vector both{first, second};
    const std::string text = core::to_text(both);
    CHECK(
        text == core::to_text(first.shown) + '\n' + core::to_text(first.members) + '\n' +
                    core::to_text(second.shown) + '\n' + core::to_text(second.members));
    CHECK(core::parse_replaced(text) == both);
    CHECK(core::parse_replaced(core::to_text(std::vector{first})) == std::vector{first});
    CHECK(core::to_text(std::vector<core::replaced_group>{}).empty());
    CHECK(core::contains(both, "fedcba9876543210"));
    CHECK_FALSE(core::contains(both, "fedcba9876543211"));
}

TEST_CASE("replaced groups: another text is refused")
{
    const std::string marker = core::to_text(first.shown);
    const std::string record = core::to_text(first.members);
    core::member_record shorter = first.members;
    shorter.names.pop_back();
    const std::string text = GENERATE_COPY(
        std::string{}, marker, record + '\n' + marker, marker + '\n' + record + "\nx", marker + '\n' + "x",
        marker + '\n' + core::to_text(second.members), marker + '\n' + core::to_text(shorter),
        marker + '\n' + record + '\n' + marker + '\n' + record);
    CAPTURE(text);
    CHECK_FALSE(core::parse_replaced(text));
}

TEST_CASE(
    "replaced groups: a marker shows that its group was in use unless it is new, or its master has left")
{
    core::marker its = first.shown;
    CHECK(core::shows_use(its));
    its.state = core::marker_state::quarantine;
    CHECK_FALSE(core::shows_use(its));
    its.why = core::incarnation_end::emptied;
    CHECK_FALSE(core::shows_use(its));
    its.why = core::incarnation_end::stale;
    CHECK(core::shows_use(its));
    its.state = core::marker_state::retired;
    CHECK_FALSE(core::shows_use(its));
}

} // namespace redlock::test
