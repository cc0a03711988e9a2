// SPDX-License-Identifier: BSL-1.0
// redlock provision: what it announces, reports and ends with.
#include "command/diagnosed.hpp"
#include "support/proxy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace redlock::test
{

namespace
{

constexpr const char* guard = "lock::redlock-guard";

/// Three masters without keys.
struct three_masters
{
    three_masters()
    {
        for (server& each : servers)
        {
            change_user(each, {"+hvals"});
        }
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
    std::string group() { return servers[0].command({"GET", guard}).text.substr(10, 16); }
    /// Returns whether the markers of all of them contain a word.
    bool all_are(std::string_view state)
    {
        return std::all_of(
            servers.begin(), servers.end(),
            [state](server& each) {
                return each.command({"GET", guard}).text.find(fmt::format(" {} ", state)) !=
                       std::string::npos;
            });
    }

    std::vector<server> servers = start_servers(3, server_options::plain());
};

strings provision(const strings& options)
{
    strings words{"provision"};
    words.insert(words.end(), options.begin(), options.end());
    return words;
}

} // namespace

TEST_CASE("provision: announces what it does, and reports each master and the group", "[guarded]")
{
    three_masters masters;
    const command_run made{provision({"--max-ttl", "100ms"}), masters.environment()};
    CHECK(made.wait() == process_end{.exit_code = 0});
    CHECK(
        made.errors() == "redlock: makes 3 masters a guarded group with a max_ttl of 100 ms: puts them into "
                         "quarantine, waits 103 ms, and arms them\n");
    CHECK(masters.all_are("armed"));
    const auto each_is = [&masters](std::string_view what)
    {
        std::string lines;
        for (const server& each : masters.servers)
        {
            lines += fmt::format("{}  {}\n", each.url(), what);
        }
        return lines;
    };
    CHECK(
        made.output() ==
        each_is("is armed") + fmt::format("group {}: 3 masters are armed now\n", masters.group()));
    const command_run again{provision({"--max-ttl", "100ms"}), masters.environment()};
    CHECK(again.wait() == process_end{.exit_code = 0});
    CHECK(
        again.output() ==
        each_is("is armed") + fmt::format("group {}: 3 masters were armed already\n", masters.group()));
}

TEST_CASE("provision: --json is one object", "[guarded]")
{
    three_masters masters;
    const command_run made{
        provision({"--max-ttl", "1h", "--fresh", "--policy", "operator", "--json"}), masters.environment()};
    CHECK(made.wait() == process_end{.exit_code = 0});
    CHECK(
        made.errors() == "redlock: makes 3 masters a guarded group with a max_ttl of 1 h: puts them into "
                         "quarantine, without a wait if all of them are empty, and arms them\n");
    const std::string text = made.output();
    CHECK(text.starts_with(fmt::format(
        R"({{"outcome":"provisioned","group":"{}","floor":1,"advice":null,"masters":[{{"master":"{}","found":"armed","error":null,"detail":null}},)",
        masters.group(), masters.servers[0].url())));
    CHECK(std::count(text.begin(), text.end(), '\n') == 1);
    CHECK(master_at(read_json(text), 2).get<std::string>("master") == masters.servers[2].url());
    CHECK(masters.all_are("operator"));
    masters.servers[1].command({"SET", guard, "of the future"});
    const command_run refused{provision({"--max-ttl", "1h", "--json"}), masters.environment()};
    CHECK(refused.wait() == process_end{.exit_code = 1});
    const tree found = read_json(refused.output());
    CHECK(found.get<std::string>("outcome") == "unchanged");
    CHECK(master_at(found, 1).get<std::string>("found") == "unreadable");
    CHECK(master_at(found, 1).get<std::string>("detail") == "its marker is \"of the future\"");
}

TEST_CASE("provision: refuses masters that can't be members, says why, and changes nothing", "[guarded]")
{
    three_masters masters;
    strings options{"--max-ttl", "100ms"};
    int code = 1;
    std::string line;
    SECTION("a replica")
    {
        masters.servers[1].command({"REPLICAOF", "127.0.0.1", "1"});
        line = "is a replica: give the address of its master";
    }
    SECTION("one that evicts keys")
    {
        masters.servers[1].command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
        line = "may evict keys: set maxmemory-policy noeviction (maxmemory-policy is allkeys-lru)";
    }
    SECTION("one with keys, without the wait")
    {
        masters.servers[1].command({"SET", "lock:job", "owner"});
        options.emplace_back("--fresh");
        line = "has keys, so the wait can't be skipped: omit --fresh";
    }
    SECTION("one that isn't running")
    {
        masters.servers[1].kill();
        code = 69;
        line = "can't be used: Connection refused";
    }
    SECTION("one without memory")
    {
        masters.servers[1].command({"CONFIG", "SET", "maxmemory", "1"});
        code = 69;
        line =
            "can't be used: it refuses writes because its memory is full (OOM command not allowed when used "
            "memory > 'maxmemory'. (HSET))";
    }
    const command_run refused{provision(options), masters.environment()};
    CHECK(refused.wait() == process_end{.exit_code = code});
    CHECK(
        refused.output() == fmt::format(
                                "{}  has no group\n{}  {}\n{}  has no group\nno master was changed\n",
                                masters.servers[0].url(), masters.servers[1].url(), line,
                                masters.servers[2].url()));
    CHECK(masters.servers[0].command({"DBSIZE"}) == 0);
}

TEST_CASE("provision: is ended by a signal, and continued by the next run", "[guarded]")
{
    three_masters masters;
    const int number = GENERATE(SIGINT, SIGTERM, SIGHUP);
    {
        const command_run stopped{provision({"--max-ttl", "1d"}), masters.environment()};
        REQUIRE(comes_true(masters.servers[0], [&] { return masters.all_are("quarantine"); }));
        stopped.signal(number);
        CHECK(stopped.wait() == process_end{.exit_code = -1, .signal = number});
        CHECK(stopped.output().ends_with(fmt::format(
            "\ninterrupted: group {} is unfinished: run the same command again, which continues\n",
            masters.group())));
        // A run changes the first master, by name, before the others, whose replies may not have been read yet.
        const std::string first =
            std::min({masters.servers[0].url(), masters.servers[1].url(), masters.servers[2].url()});
        CHECK(stopped.output().find(first + "  is in quarantine\n") != std::string::npos);
    }
    const std::string group = masters.group();
    const command_run other{provision({"--max-ttl", "2d"}), masters.environment()};
    CHECK(other.wait() == process_end{.exit_code = 1});
    CHECK(
        other.output().find(
            "belongs to an unfinished run with other masters or options (its marker is \"redlock 1 " +
            group) != std::string::npos);
    const command_run next{provision({"--max-ttl", "1d", "--fresh"}), masters.environment()};
    CHECK(next.wait() == process_end{.exit_code = 0});
    CHECK(next.output().ends_with(fmt::format("\ngroup {}: 3 masters are armed now\n", group)));
}

TEST_CASE("provision: shows the time that is left at a terminal, and Ctrl-C ends it", "[guarded]")
{
    three_masters masters;
    pseudo_terminal screen;
    const program_at_terminal run{
        {REDLOCK_COMMAND, "provision", "--max-ttl", "30s"}, masters.environment(), screen};
    screen.wait_for("waits 30.302 s, and arms them\r\n");
    screen.wait_for("redlock: waits for another ");
    screen.type("\x03");
    screen.wait_for("interrupted: group ");
    CHECK(run.wait() == process_end{.exit_code = -1, .signal = SIGINT});
    CHECK(masters.all_are("quarantine"));
}

TEST_CASE("provision: connects to a master that is far away, within --connect-timeout", "[guarded]")
{
    server far{server_options::plain()};
    change_user(far, {"+hvals"});
    proxy way{far.port()};
    way.set_delay(std::chrono::milliseconds{180}); // Three round trips take more than a second.
    const auto code_with = [&way](const strings& options)
    {
        strings words = provision({"--max-ttl", "100ms", "--master", way.url()});
        words.insert(words.end(), options.begin(), options.end());
        return command_run{words}.wait().exit_code;
    };
    CHECK(code_with({"--connect-timeout", "100ms"}) == 69);
    CHECK(code_with({}) == 0);
}

TEST_CASE("provision: an invalid command line is refused", "[guarded][usage]")
{
    const auto refused = [](const strings& options)
    {
        const command_run one{provision(options), {"REDLOCK_MASTERS=redis://127.0.0.1:1"}};
        const int code = one.wait().exit_code;
        return fmt::format("{} {}", code, one.errors());
    };
    CHECK(
        refused({}) ==
        "64 redlock: --max-ttl is required: give the longest ttl of a lock, as in --max-ttl 60s\n");
    CHECK(refused({"--max-ttl", "0s"}) == "64 redlock: --max-ttl: give 1ms or more\n");
    CHECK(
        refused({"--max-ttl", "5s", "--connect-timeout", "0s"}) ==
        "64 redlock: --connect-timeout: give 1ms to 1h\n");
    CHECK(refused({"--max-ttl", "5s", "--connect-timeout", "61m"}).starts_with("64 redlock: --connect"));
    CHECK(refused({"--max-ttl", "5"}).starts_with("64 redlock: --max-ttl: '5' is not a duration: "));
    CHECK(
        refused({"--max-ttl", "5s", "--policy", "hope"}) ==
        "64 redlock: --policy: 'hope' is not a policy: give clocks or operator\n");
    CHECK(
        refused({"--max-ttl", "5s", "redis://127.0.0.1"}) ==
        "64 redlock: provision takes no arguments besides options: give masters by --master; see redlock "
        "--help\n");
    CHECK(refused({"--max-ttl", "5s", "--master", "http://a"}).starts_with("78 redlock: "));
    CHECK(refused({"--arm", "--fresh"}) == "64 redlock: --fresh excludes --arm; see redlock --help\n");
    CHECK(refused({"--arm", "--max-ttl", "5s"}).starts_with("64 redlock: --"));
    CHECK(refused({"--again", "0123456789abcdef", "--arm"}).starts_with("64 redlock: --"));
    CHECK(
        refused({"--again", "of mine"}) ==
        "64 redlock: --again: 'of mine' is not the name of a group: give its 16 digits, as redlock doctor "
        "--guarded shows them\n");
    CHECK(refused({"--again="}).starts_with("64 redlock: --again: '' is not the name of a group"));
    CHECK(refused({"--retire", "redis://a", "--master", "redis://b"}).starts_with("64 redlock: --"));
    CHECK(refused({"--retire", "http://a"}).starts_with("78 redlock: "));
    CHECK(refused({"--change"}).starts_with("64 redlock: --max-ttl is required"));
    CHECK(refused({"--change", "--max-ttl", "5s", "--fresh"}).starts_with("64 redlock: --"));
    CHECK(refused({"--change", "--arm"}).starts_with("64 redlock: --"));
    CHECK(refused({"--change", "--max-ttl", "5s", "--from", "http://a"}).starts_with("78 redlock: "));
    CHECK(
        refused({"--max-ttl", "5s", "--from", "redis://a"}) ==
        "64 redlock: --from needs --change: masters leave only a group that is replaced\n");
    CHECK(
        refused({"--max-ttl", "5s", "--stopped", "redis://a"}) ==
        "64 redlock: --stopped needs --change: masters leave only a group that is replaced\n");
}

TEST_CASE("provision: --change replaces the group, and says what isn't moved", "[guarded]")
{
    three_masters masters;
    REQUIRE(
        command_run{provision({"--max-ttl", "100ms", "--fresh"}), masters.environment()}.wait() ==
        process_end{.exit_code = 0});
    const std::string old_group = masters.group();
    server other{server_options::plain()};
    const auto url = [&masters](std::size_t master) { return masters.servers[master].url(); };
    // The old masters may all be given: those that stay are in the new list, too.
    const strings options{"--change", "--max-ttl", "50ms",   "--master", url(1),   "--master", url(2),
                          "--master", other.url(), "--from", url(0),     "--from", url(1)};
    masters.servers[0].kill();
    const command_run early{provision(options), {}};
    CHECK(early.wait() == process_end{.exit_code = 69});
    CHECK(
        early.errors() == "redlock: changes the group to 3 masters with a max_ttl of 50 ms and the policy "
                          "clocks: no lock can be acquired for 53 ms, or longer if the old max_ttl is\n");
    const std::string group = masters.servers[1].command({"GET", guard}).text.substr(10, 16);
    CHECK(group != old_group);
    const auto armed = fmt::format("{}  is armed\n{}  is armed\n{}  is armed\n", url(1), url(2), other.url());
    CHECK(
        early.output() ==
        fmt::format(
            "{}{}  can't be used: Connection refused\ngroup {}: 3 masters are armed, but the change isn't "
            "finished: run the same command again when {} can be used, or with --stopped if it never comes "
            "back\n",
            armed, url(0), group, url(0)));
    masters.servers[0].restart();
    const command_run late{provision(options), {}};
    CHECK(late.wait() == process_end{.exit_code = 0});
    CHECK(
        late.output() ==
        fmt::format(
            "{}{}  has left its group\ngroup {}: 3 masters are armed now, and the change is finished\n",
            armed, url(0), group));
    const command_run again{provision(options), {}};
    CHECK(again.wait() == process_end{.exit_code = 0});
    CHECK(again.output().ends_with(fmt::format("group {}: 3 masters were armed already\n", group)));
    strings without = options;
    without.resize(9);
    const command_run unnamed{provision(without), {}};
    CHECK(unnamed.wait() == process_end{.exit_code = 1});
    CHECK(unnamed.output().ends_with(fmt::format(
        "\nno master was changed: group {} has {}, too: name each with --from, or with --stopped if it never "
        "comes back\n",
        old_group, url(0))));
    masters.servers[0].kill();
    strings stopped = options;
    stopped.resize(9);
    stopped.insert(stopped.end(), {"--stopped", url(0), "--json"});
    const command_run last{provision(stopped), {}};
    CHECK(last.wait() == process_end{.exit_code = 0});
    const tree report = read_json(last.output());
    CHECK(report.get<std::string>("outcome") == "complete");
    CHECK(master_at(report, 3).get<std::string>("found") == "stopped");
    CHECK(master_at(report, 3).get<std::string>("error") == "null");
}

TEST_CASE("provision: a killed change is continued, and another one needs --takeover", "[guarded]")
{
    three_masters masters;
    REQUIRE(
        command_run{provision({"--max-ttl", "4s", "--fresh"}), masters.environment()}.wait() ==
        process_end{.exit_code = 0});
    const std::string old_group = masters.group();
    const strings options{"--change", "--max-ttl", "50ms"};
    {
        const command_run killed{provision(options), masters.environment()};
        REQUIRE(comes_true(masters.servers[0], [&] { return masters.all_are("quarantine"); }));
        killed.signal(GENERATE(SIGKILL, SIGINT));
        killed.wait();
    }
    const std::string group = masters.group();
    const command_run other{provision({"--change", "--max-ttl", "60ms"}), masters.environment()};
    CHECK(other.wait() == process_end{.exit_code = 1});
    CHECK(
        other.output().find(
            "belongs to an unfinished run with other masters or options (its marker is \"redlock 1 " +
            group) != std::string::npos);
    CHECK(
        other.output().find(fmt::format(
            "\nno master was changed: group {} is that of an unfinished run: repeat redlock provision "
            "--change "
            "--max-ttl 50ms --master redis://",
            group)) != std::string::npos);
    CHECK(other.output().ends_with("; if that run is given up, add --takeover to this one\n"));
    const command_run again{provision({"--again", old_group}), masters.environment()};
    CHECK(again.wait() == process_end{.exit_code = 1});
    CHECK(again.output().find("repeat redlock provision --change --max-ttl 50ms") != std::string::npos);
    CHECK(again.output().find("takeover") == std::string::npos);
    const bool takes_over = GENERATE(false, true);
    const command_run next{
        provision(takes_over ? strings{"--change", "--takeover", "--max-ttl", "60ms"} : options),
        masters.environment()};
    CHECK(next.wait() == process_end{.exit_code = 0});
    CHECK((masters.group() == group) == !takes_over);
    CHECK(masters.all_are("armed"));
}

TEST_CASE("provision: --arm arms masters that were restarted with their data", "[guarded]")
{
    three_masters masters;
    REQUIRE(
        command_run{provision({"--max-ttl", "100ms", "--policy", "operator"}), masters.environment()}
            .wait() == process_end{.exit_code = 0});
    const std::string group = masters.group();
    const command_run early{provision({"--arm"}), masters.environment()};
    CHECK(early.wait() == process_end{.exit_code = 0});
    CHECK(early.output().ends_with(fmt::format("group {}: 3 masters were armed already\n", group)));
    for (server& each : masters.servers)
    {
        expect_ok(each.command({"SAVE"}));
        each.restart();
    }
    const bool has_lost_one = GENERATE(false, true);
    if (has_lost_one)
    {
        masters.servers[2].command({"FLUSHALL"});
    }
    const command_run refused{
        provision({"--max-ttl", "100ms", "--policy", "operator"}), masters.environment()};
    CHECK(refused.wait() == process_end{.exit_code = 1});
    CHECK(refused.output().ends_with("\nno master was changed: redlock provision --arm arms them\n"));
    const command_run made{provision({"--arm"}), masters.environment()};
    CHECK(made.wait() == process_end{.exit_code = 0});
    CHECK(
        made.errors() == "redlock: arms a group of 3 masters: puts those that were restarted into "
                         "quarantine, waits for its max_ttl, and arms them\n");
    if (has_lost_one)
    {
        CHECK(made.output().ends_with(fmt::format(
            "{}  has lost its data\ngroup {}: 2 of 3 masters are armed now; clients arm each that isn't "
            "armed: "
            "leave one running\n",
            masters.servers[2].url(), group)));
        return;
    }
    CHECK(made.output().ends_with(fmt::format("group {}: 3 masters are armed now\n", group)));
    CHECK(masters.all_are("armed"));
}

TEST_CASE("provision: --again needs the group's name, and arms masters without data", "[guarded]")
{
    three_masters masters;
    REQUIRE(
        command_run{provision({"--max-ttl", "100ms"}), masters.environment()}.wait() ==
        process_end{.exit_code = 0});
    const std::string group = masters.group();
    masters.servers[1].command({"FLUSHALL"});
    masters.servers[2].command({"FLUSHALL"});
    const command_run refused{provision({"--arm"}), masters.environment()};
    CHECK(refused.wait() == process_end{.exit_code = 1});
    CHECK(
        refused.output() ==
        fmt::format(
            "{}  is armed\n{}  has lost its data\n{}  has lost its data\nno master was changed: too few "
            "masters "
            "were restarted with their data (0 of 3; 2 are needed): if these are the masters of the group, "
            "redlock provision --again {} arms them\n",
            masters.servers[0].url(), masters.servers[1].url(), masters.servers[2].url(), group));
    const command_run misnamed{provision({"--again", "00000000000000aa"}), masters.environment()};
    CHECK(misnamed.wait() == process_end{.exit_code = 1});
    CHECK(misnamed.output().ends_with(fmt::format(
        "\nno master was changed: no master shows group 00000000000000aa, but group {}: check the name and "
        "the "
        "addresses\n",
        group)));
    const command_run made{provision({"--again", group, "--json"}), masters.environment()};
    CHECK(made.wait() == process_end{.exit_code = 0});
    CHECK(made.errors().starts_with(fmt::format("redlock: arms group {} of 3 masters again: ", group)));
    const tree report = read_json(made.output());
    CHECK(report.get<std::string>("outcome") == "provisioned");
    CHECK(report.get<std::string>("group") == group);
    CHECK(report.get<std::uint64_t>("floor") > 1'000'000'000'000'000);
    CHECK(masters.all_are("armed"));
    CHECK(masters.group() == group);
    masters.servers[2].kill();
    const command_run repeated{provision({"--again", group}), masters.environment()};
    CHECK(repeated.wait() == process_end{.exit_code = 0});
    CHECK(repeated.output().ends_with(fmt::format(
        "\ngroup {}: 2 of 3 masters were armed already; clients arm each that isn't armed: leave one "
        "running\n",
        group)));
}

TEST_CASE("provision: --retire deletes the marker of the servers that it names, and of no other", "[guarded]")
{
    three_masters masters;
    REQUIRE(
        command_run{provision({"--max-ttl", "100ms", "--fresh"}), masters.environment()}.wait() ==
        process_end{.exit_code = 0});
    const std::string url = masters.servers[1].url();
    const command_run made{provision({"--retire", url}), masters.environment()};
    CHECK(made.wait() == process_end{.exit_code = 0});
    CHECK(made.errors() == "redlock: deletes the marker of 1 master\n");
    CHECK(made.output() == url + "  has no group\nthe markers are deleted\n");
    CHECK(masters.servers[1].command({"EXISTS", guard}) == 0);
    CHECK(masters.servers[0].command({"EXISTS", guard}) == 1);
    const command_run again{provision({"--retire", url}), masters.environment()};
    CHECK(again.wait() == process_end{.exit_code = 0});
    CHECK(again.output() == url + "  has no group\nthere was no marker\n");
}

} // namespace redlock::test
