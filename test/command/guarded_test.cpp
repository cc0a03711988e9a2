// SPDX-License-Identifier: BSL-1.0
// The command in guarded mode: the fencing token of redlock run, and the standing of masters in redlock doctor.
#include "command/diagnosed.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace redlock::test
{

namespace
{

/// Three masters of a group with a max_ttl of a minute.
struct provisioned_masters
{
    provisioned_masters()
    {
        const command_run made{{"provision", "--fresh", "--max-ttl", "60s"}, environment()};
        REQUIRE(made.wait() == process_end{.exit_code = 0});
    }

    strings environment() const
    {
        strings urls;
        for (const server& each : servers)
        {
            urls.push_back(each.url());
        }
        return {fmt::format("REDLOCK_MASTERS={}", fmt::join(urls, ","))};
    }

    std::vector<server> servers = start_servers(3, server_options::plain());
};

/// Runs a script under a lock.
strings run(const strings& options, const std::string& script)
{
    strings words{"run", "--max-hold", "1h"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"stock", "--", "sh", "-c", script});
    return words;
}

} // namespace

TEST_CASE("guarded: the command gets the fencing token, and each lock a larger one", "[guarded]")
{
    const provisioned_masters masters;
    std::uint64_t last = 0;
    for (int time = 0; time < 3; ++time)
    {
        const command_run one{run({"--guarded"}, "echo $REDLOCK_FENCING_TOKEN"), masters.environment()};
        CHECK(one.wait() == process_end{.exit_code = 0});
        CHECK(one.errors().empty());
        const std::uint64_t token = std::stoull(one.output());
        CHECK(token > last);
        last = token;
    }
}

TEST_CASE("guarded: without --guarded, the token of another lock isn't passed on", "[guarded]")
{
    const provisioned_masters masters;
    strings environment = masters.environment();
    environment.emplace_back("REDLOCK_FENCING_TOKEN=7");
    const command_run one{run({}, "echo token ${REDLOCK_FENCING_TOKEN-none}"), environment};
    CHECK(one.wait() == process_end{.exit_code = 0});
    CHECK(one.output() == "token none\n");
}

TEST_CASE("guarded: a ttl above that of the group is a usage error", "[guarded]")
{
    const provisioned_masters masters;
    const command_run one{run({"--guarded", "--ttl", "61s"}, "echo run"), masters.environment()};
    CHECK(one.wait() == process_end{.exit_code = 64});
    CHECK(one.output().empty());
    CHECK(one.errors().find("60000 ms at most") != std::string::npos);
}

TEST_CASE("guarded: masters that weren't provisioned give no lock", "[guarded]")
{
    const std::vector<server> servers = start_servers(3, server_options::plain());
    strings environment{
        fmt::format("REDLOCK_MASTERS={},{},{}", servers[0].url(), servers[1].url(), servers[2].url())};
    const command_run one{run({"--guarded", "--wait", "300ms"}, "echo run"), environment};
    CHECK(one.wait() == process_end{.exit_code = 69});
    CHECK(one.output().empty());
    CHECK(one.errors().find("it belongs to no group of guarded mode") != std::string::npos);
    const command_run examined{{"doctor", "--guarded", "--no-probe"}, environment};
    CHECK(examined.wait() == process_end{.exit_code = 69});
    CHECK(examined.output().find("failure: it belongs to no group of guarded mode") != std::string::npos);
}

TEST_CASE("guarded: the doctor tells which masters vote", "[guarded][doctor]")
{
    provisioned_masters masters;
    const auto verdict = [&masters]
    {
        const command_run one{{"doctor", "--guarded", "--json"}, masters.environment()};
        one.wait();
        return read_json(one.output());
    };
    const auto before = verdict();
    for (const auto& [name, each] : before.get_child("masters"))
    {
        CHECK(each.get<bool>("guarded.armed"));
        CHECK(each.get<int>("guarded.max_ttl_ms") == 60'000);
    }
    masters.servers[1].command({"FLUSHALL"});
    const auto after = verdict();
    CHECK(after.get<int>("usable") == 2);
    const auto& emptied = *std::next(after.get_child("masters").begin());
    CHECK(!emptied.second.get<bool>("guarded.armed"));
    CHECK(emptied.second.get<std::string>("verdict") == "unusable");
}

TEST_CASE("guarded: the doctor finds a master whose ACL forbids what a vote needs", "[guarded][doctor]")
{
    const std::string command = GENERATE("hset", "hmget", "info");
    CAPTURE(command);
    provisioned_masters masters;
    masters.servers[1].command({"ACL", "SETUSER", "default", "-" + command});
    const command_run one{{"doctor", "--guarded", "--json"}, masters.environment()};
    one.wait();
    const auto all = read_json(one.output());
    CHECK(all.get<int>("usable") == 2);
    const tree& refusing = master_at(all, 1);
    CHECK(!refusing.get<bool>("guarded.armed"));
    CHECK_THAT(what_of(refusing, "no_permission"), Catch::Matchers::ContainsSubstring("its ACL forbids"));
    // What it says about a master is what a lock sees.
    masters.servers[0].kill();
    const command_run lock{run({"--guarded", "--wait", "0s"}, "true"), masters.environment()};
    CHECK(lock.wait() == process_end{.exit_code = 69});
}

} // namespace redlock::test
