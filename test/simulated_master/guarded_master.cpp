// SPDX-License-Identifier: BSL-1.0
// A real server as a master of a guarded group.
#include "guarded_master.hpp"

#include "net/guard_scripts.hpp"

#include <catch2/catch_test_macros.hpp>

namespace redlock::test
{

std::string replication_id_of(server& of)
{
    const std::string info = of.command({"INFO", "replication"}).text;
    const std::string name = "master_replid:";
    return info.substr(info.find(name) + name.size(), core::replication_id_length);
}

std::int64_t time_of(server& of)
{
    const reply now = of.command({"TIME"});
    return std::stoll(now.elements.at(0).text) * 1'000'000 + std::stoll(now.elements.at(1).text);
}

reply run_script(
    server& at, const net::script& what, const std::vector<std::string_view>& keys,
    const std::vector<std::string_view>& arguments)
{
    REQUIRE(at.command({"SCRIPT", "LOAD", what.text}) == what.sha1);
    const std::string count = std::to_string(keys.size());
    std::vector<std::string_view> words{"EVALSHA", what.sha1, count};
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), arguments.begin(), arguments.end());
    return at.command(words);
}

core::marker guarded_master::marker_with(core::marker_state state)
{
    return {
        .group = "0123456789abcdef",
        .seat = 1,
        .masters = 3,
        .max_ttl = std::chrono::minutes{1},
        .policy = core::arming_policy::clocks,
        .state = state,
        .why = core::incarnation_end::created,
        .nonce = "fedcba9876543210",
        .replication_id = replication_id_of(server_)};
}

void guarded_master::arm(std::int64_t floor)
{
    marker_ = core::to_text(marker_with(core::marker_state::armed));
    server_.command({"SET", guard, marker_});
    server_.command({"HSET", fence, "floor", std::to_string(floor)});
}

reply guarded_master::acquire_at(
    server& there, std::string_view owner, std::string_view slot, std::int64_t hint,
    const std::string& latest)
{
    const std::string proposed = std::to_string(hint);
    return run_script(
        there, net::guarded_acquire_script, {key, guard, fence},
        {owner, "60000", marker_, slot, proposed, latest});
}

reply guarded_master::raise(std::string_view owner, std::int64_t token, std::string_view slot)
{
    const std::string value = std::to_string(token);
    return run_script(server_, net::raise_script, {key, guard, fence}, {owner, marker_, slot, value});
}

reply guarded_master::ask(std::string_view member, std::string_view owner, const guarded_question& how)
{
    const std::string proposed = std::to_string(how.hint);
    const std::string latest = how.latest.empty() ? later() : how.latest;
    constexpr std::string_view grace = "3600000";
    return run_script(
        server_, net::guarded_ask_script, {key, guard, fence},
        {member, owner, "60000", how.waited, how.liveness, grace, marker_, "7", proposed, latest});
}

reply guarded_master::extend(std::string_view owner, std::string_view ttl, std::string_view beginning)
{
    return run_script(server_, net::guarded_extend_script, {key, guard}, {owner, ttl, beginning});
}

std::vector<std::string> guarded_master::queue()
{
    std::vector<std::string> found;
    for (const reply& each : server_.command({"ZRANGE", order, "0", "-1"}).elements)
    {
        found.push_back(each.text);
    }
    return found;
}

std::vector<std::string> guarded_master::contents()
{
    std::vector<std::string> found;
    for (const char* const each : {key, members, guard, fence, order, alive})
    {
        found.push_back(server_.command({"DUMP", each}).text);
    }
    return found;
}

} // namespace redlock::test
