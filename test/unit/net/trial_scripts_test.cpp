// SPDX-License-Identifier: BSL-1.0
// The trials have all commands of the scripts.
#include "net/trial_scripts.hpp"

#include "net/arming_scripts.hpp"
#include "net/guard_scripts.hpp"
#include "net/provision_scripts.hpp"
#include "net/queue_scripts.hpp"
#include "support/script_commands.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

namespace redlock::test::trying // Its names are equal to others in a unity build.
{

namespace
{

using names = std::set<std::string>;

names commands_of_all(std::initializer_list<std::string_view> scripts)
{
    names all;
    for (const std::string_view each : scripts)
    {
        all.merge(commands_of(each));
    }
    return all;
}

names without(const names& some, const names& others)
{
    names left;
    std::set_difference(
        some.begin(), some.end(), others.begin(), others.end(), std::inserter(left, left.end()));
    return left;
}

} // namespace

TEST_CASE("a trial of a queue has the commands of its scripts, and no other one")
{
    const names needed = commands_of_all({net::ask_script.text, net::release_to_queue_script.text});
    const names tried = commands_of(net::queue_trial_script);
    CHECK(
        without(needed, tried) ==
        names{"PUBLISH", "SET"}); // The subscription tries the first one, and locks the second.
    CHECK(without(tried, needed).empty());
}

TEST_CASE("a trial of provisioning has all commands that the look hasn't", "[guarded]")
{
    const std::string quarantine = net::provision_quarantine_script();
    const names needed = commands_of_all({quarantine, net::arm_script.text});
    CHECK(needed == names{"DEL", "GET", "HMGET", "HSET", "INFO", "SELECT", "SET"});
    const names tried = commands_of_all({net::provision_look_script, net::provision_trial_script});
    CHECK(without(needed, tried).empty());
}

TEST_CASE("a trial of a vote has all commands that locks without a group don't need", "[guarded]")
{
    const names needed = commands_of_all(
        {net::guarded_acquire_script.text, net::raise_script.text, net::quarantine_script.text,
         net::largest_counter_script.text, net::arm_script.text});
    const names plain{"DEL", "GET", "SET"};
    CHECK(without(without(needed, plain), commands_of(net::vote_trial_script)).empty());
}

} // namespace redlock::test::trying
