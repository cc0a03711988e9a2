// SPDX-License-Identifier: BSL-1.0
// redlock doctor, on real servers of every kind.
#include "command/diagnosed.hpp"

#include "support/fake_server.hpp"
#include "support/loopback.hpp"
#include "support/proxy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace
{

server_options durable_with(const std::string& password)
{
    server_options options = durable();
    options.password = password;
    return options;
}

server_options durable_over(server_tls tls)
{
    server_options options = durable();
    options.tls = std::move(tls);
    return options;
}

/// Returns true for the question whose a key is. A client's trial of the commands has no key.
bool asks_for_owner(const command& words)
{
    return words.front() == "EVAL" && words.size() == 4 && words[2] == "1";
}

} // namespace

TEST_CASE("doctor: five good masters have no findings")
{
    const std::vector<server> masters = start_servers(5, durable());
    const diagnosed found = diagnose(urls_of(masters));
    CHECK(found.end == process_end{.exit_code = 0});
    CHECK(found.errors.empty());
    CHECK_THAT(
        found.text, ContainsSubstring("\ngood: 5 of 5 masters can be used (quorum 3): 2 of them may fail\n"));
    for (const server& each : masters)
    {
        CHECK_THAT(found.text, ContainsSubstring("\n" + each.url() + "  redis "));
        CHECK_THAT(found.text, !ContainsSubstring(each.url() + ":"));
    }
}

TEST_CASE("doctor: reports a replica, an eviction policy, and a server that is given twice")
{
    const server good{durable()};
    const temporary_directory sockets;
    const std::string socket = sockets.path() + "/socket";
    const server twice{durable({"--unixsocket", socket})};
    const server evicting{durable({"--maxmemory-policy", "volatile-lru"})};
    const server replica{durable({"--replicaof", "127.0.0.1", std::to_string(good.port())})};

    const strings urls{good.url(), twice.url(), replica.url(), "unix://" + socket, evicting.url()};
    const diagnosed found = diagnose(urls);
    CHECK(found.end == process_end{.exit_code = 1});
    CHECK_THAT(found.text, ContainsSubstring(replica.url() + ": failure: it is a replica"));
    CHECK_THAT(
        found.text, ContainsSubstring(evicting.url() + ": warning: maxmemory-policy is volatile-lru. "));
    // Which of the two addresses is refused is a matter of chance.
    const auto says = [&](const std::string& refused, const std::string& other)
    {
        return found.text.find(fmt::format(
                   "{}: failure: it is the same server as {} (run id ", refused, other)) != std::string::npos;
    };
    CHECK(says(urls[1], urls[3]) != says(urls[3], urls[1]));
    CHECK_THAT(
        found.text,
        ContainsSubstring("\nusable: 3 of 5 masters can be used (quorum 3): none of them may fail\n"));
    CHECK_THAT(found.text, !ContainsSubstring(good.url() + ": failure"));
    CHECK_THAT(found.text, !ContainsSubstring(good.url() + ": warning"));
}

TEST_CASE("doctor: --json has the same keys for every verdict")
{
    std::vector<server> masters;
    masters.emplace_back(durable());
    masters.emplace_back(durable({"--maxmemory-policy", "allkeys-lru"}));
    masters.emplace_back(durable());
    masters[2].kill();
    const diagnosed found = diagnose(urls_of(masters), {"--json"});
    CHECK(found.end == process_end{.exit_code = 1});
    CHECK(std::count(found.text.begin(), found.text.end(), '\n') == 1);
    const tree all = read_json(found.text);
    CHECK(keys_of(all) == std::set<std::string>{"verdict", "usable", "quorum", "may_fail", "masters"});
    CHECK(all.get<std::string>("verdict") == "usable");
    CHECK(all.get<int>("usable") == 2);
    CHECK(all.get<int>("quorum") == 2);
    CHECK(all.get<int>("may_fail") == 0);
    REQUIRE(all.get_child("masters").size() == 3);
    const std::set<std::string> keys{"master",
                                     "verdict",
                                     "server",
                                     "run_id",
                                     "fastest_round_trip_us",
                                     "median_round_trip_us",
                                     "acquire_us",
                                     "extend_us",
                                     "release_us",
                                     "appendonly",
                                     "appendfsync",
                                     "save",
                                     "guarded",
                                     "findings"};
    for (std::size_t index = 0; index < 3; ++index)
    {
        CHECK(keys_of(master_at(all, index)) == keys);
        CHECK(master_at(all, index).get<std::string>("master") == masters[index].url());
    }
    const tree& good = master_at(all, 0);
    CHECK(good.get<std::string>("verdict") == "good");
    CHECK(good.get<std::string>("server").starts_with("redis "));
    CHECK(good.get<std::string>("run_id").size() == 40);
    CHECK(good.get<double>("fastest_round_trip_us") > 0.0);
    CHECK(good.get<double>("median_round_trip_us") >= good.get<double>("fastest_round_trip_us"));
    for (const char* key : {"acquire_us", "extend_us", "release_us"})
    {
        CHECK(good.get<double>(key) > 0.0);
    }
    CHECK(good.get<std::string>("appendonly") == "yes");
    CHECK(good.get<std::string>("appendfsync") == "always");
    CHECK(good.get<std::string>("save").empty());
    CHECK(findings_of(good).empty());

    const tree& evicting = master_at(all, 1);
    CHECK(evicting.get<std::string>("verdict") == "usable");
    CHECK(findings_of(evicting) == "warning eviction");
    const tree& finding = evicting.get_child("findings").front().second;
    CHECK(keys_of(finding) == std::set<std::string>{"level", "kind", "what", "meaning", "advice"});
    CHECK(finding.get<std::string>("what") == "maxmemory-policy is allkeys-lru");

    const tree& dead = master_at(all, 2);
    CHECK(dead.get<std::string>("verdict") == "unusable");
    CHECK(dead.get<std::string>("server") == "null");
    CHECK(dead.get<std::string>("median_round_trip_us") == "null");
    CHECK(dead.get<std::string>("acquire_us") == "null");
    CHECK(findings_of(dead) == "failure unreachable");
}

TEST_CASE("doctor: reports weak persistence as a note, which doesn't change the exit code")
{
    const server forgets{};
    const server forgets_newest{{.settings = {"--appendonly", "yes", "--appendfsync", "everysec"}}};
    const server snapshots{{.settings = {"--save", "3600 1"}}};
    const server forgets_unwritten{{.settings = {"--appendonly", "yes", "--appendfsync", "no"}}};
    const diagnosed found =
        diagnose({forgets.url(), forgets_newest.url(), snapshots.url(), forgets_unwritten.url()});
    CHECK(found.end == process_end{.exit_code = 0});
    CHECK_THAT(
        found.text, ContainsSubstring(forgets.url() + ": note: appendonly no. A restart loses every lock, "));
    CHECK_THAT(
        found.text,
        ContainsSubstring("keep it out of reach after a restart until the longest ttl has passed"));
    CHECK_THAT(
        found.text,
        ContainsSubstring(
            forgets_newest.url() + ": note: appendfsync everysec. A crash of its machine loses up to two "
                                   "seconds of locks"));
    CHECK_THAT(
        found.text, ContainsSubstring(
                        snapshots.url() + ": note: appendonly no. A restart loses every lock since its last "
                                          "snapshot"));
    CHECK_THAT(
        found.text,
        ContainsSubstring(
            forgets_unwritten.url() +
            ": note: appendfsync no. A crash of its machine loses the locks that the system hasn't written"));
    CHECK_THAT(found.text, ContainsSubstring("\ngood: 4 of 4 masters can be used"));
}

TEST_CASE("doctor: reports what its ACL keeps it from checking", "[scenario-51]")
{
    server master{durable()};
    const auto forbids = [&master](std::string_view rule)
    {
        master.command({"ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all", rule});
        return alone(master.url());
    };
    CHECK(forbids("-config") == "good: note persistence_unknown");
    CHECK(forbids("-time") == "usable: warning limited_queue, warning unanswered");
    CHECK(forbids("-info") == "usable: warning no_identity");
    CHECK(forbids("-client|kill") == "usable: warning cannot_kill_stale_connections");
    CHECK(forbids("+@all") == "good: ");
}

TEST_CASE("doctor: reports slow round trips")
{
    const server master{durable()};
    proxy way{master.port()};
    way.set_delay(60ms);
    CHECK(alone(way.url(), {}, slow_part::network) == "usable: warning slow");
}

TEST_CASE("doctor: connects to a master that is far away, given a longer --connect-timeout")
{
    const server master{durable()};
    proxy way{master.port()};
    way.set_delay(180ms); // Three round trips take more than a second.
    CHECK(alone(way.url(), {"--connect-timeout", "100ms"}) == "unusable: failure unreachable");
    CHECK(alone(way.url(), {"--connect-timeout", "1h"}, slow_part::network) == "usable: warning slow");
}

TEST_CASE("doctor: reports a node of a cluster")
{
    const strings clustered{"--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())};
    const server node{durable(clustered)};
    CHECK(alone(node.url()) == "unusable: failure cluster_node");
}

TEST_CASE("doctor: ends with 69 if fewer than a quorum can be used")
{
    std::vector<server> masters = start_servers(3, durable());
    masters[0].kill();
    masters[1].stop();
    const diagnosed found = diagnose(urls_of(masters));
    CHECK(found.end == process_end{.exit_code = 69});
    CHECK_THAT(
        found.text, ContainsSubstring(masters[0].url() + ": failure: Connection refused. It has no vote."));
    CHECK_THAT(found.text, ContainsSubstring(masters[1].url() + ": failure: no connection to it in time. "));
    CHECK_THAT(
        found.text,
        ContainsSubstring("\nunusable: 1 of 3 masters can be used (quorum 2): no lock can be acquired\n"));
}

TEST_CASE("doctor: reports a refused password, and never shows one", "[scenario-52]")
{
    const server right{durable_with("open-sesame")};
    const server wrong{durable_with("shut-sesame")};
    const strings urls{right.url(), fmt::format("redis://:guessed-sesame@127.0.0.1:{}", wrong.port())};
    for (const strings& options : {strings{}, strings{"--json"}})
    {
        const diagnosed found = diagnose(urls, options);
        CHECK(found.end == process_end{.exit_code = 69});
        CHECK(found.text.find("sesame") == std::string::npos);
        CHECK(found.errors.empty());
    }
    CHECK(alone(urls[0]) == "good: ");
    CHECK(alone(urls[1]) == "unusable: failure authentication");
}

TEST_CASE("doctor, status, run: trust the authority in --ca-file", "[scenario-53]")
{
    const temporary_directory files;
    certificate_authority trusted{files.path(), "trusted"};
    const certificate_authority unknown{files.path(), "unknown"};
    const server master{durable_over(server_tls{trusted.issue("server"), trusted.file()})};
    CHECK(alone(master.url(), {"--ca-file", trusted.file()}) == "good: ");
    CHECK(alone(master.url(), {"--ca-file", unknown.file()}) == "unusable: failure tls");
    CHECK(alone(master.url()) == "unusable: failure tls");
    CHECK_THAT(
        diagnose({master.url()}).text,
        ContainsSubstring("Give the authority that signed it with --ca-file, or check which server answers"));

    // Each side without the other.
    const server plain{durable()};
    CHECK(
        alone(fmt::format("rediss://127.0.0.1:{}", plain.port()), {"--connect-timeout", "2s"}) ==
        "unusable: failure tls");
    CHECK_THAT(
        diagnose({fmt::format("redis://127.0.0.1:{}", master.port())}).text,
        ContainsSubstring("if it speaks TLS, give rediss:// instead of redis://"));

    const strings environment{"REDLOCK_MASTERS=" + master.url()};
    const command_run shown{{"status", "--ca-file", trusted.file(), "job"}, environment};
    CHECK(shown.wait() == process_end{.exit_code = 1});
    const command_run run{run_shell("exit 5", {"--ca-file", trusted.file()}), environment};
    CHECK(run.wait() == process_end{.exit_code = 5});
    const command_run refused{run_shell("exit 5", {"--try", "--ca-file", unknown.file()}), environment};
    CHECK(refused.wait() == process_end{.exit_code = 69});
    CHECK_THAT(refused.errors(), ContainsSubstring("certificate"));
}

TEST_CASE(
    "doctor: judges each of its masters by itself, over TLS or not, with a password or without", "[doctor]")
{
    const temporary_directory files;
    certificate_authority trusted{files.path(), "trusted"};
    certificate_authority unknown{files.path(), "unknown"};
    const server_tls certified{trusted.issue("server"), trusted.file()};
    const auto evicting = [](server_options options)
    {
        options.settings.insert(options.settings.end(), {"--maxmemory-policy", "allkeys-lru"});
        return options;
    };
    const auto over_tcp = [](server_options options)
    {
        options.over = transport::tcp;
        options.as = user::default_user;
        return options;
    };
    const auto with_password = [](server_options options)
    {
        options.password = "open-sesame";
        return options;
    };
    const server plain{over_tcp(durable())};
    const server over_tls{durable_over(certified)};
    const server evicts{evicting(with_password(over_tcp(durable())))};
    const server evicts_over_tls{evicting(with_password(durable_over(certified)))};
    server open_over_tls{durable_over(certified)};
    open_over_tls.command({"ACL", "SETUSER", "locker", "on", ">open-sesame", "~*", "&*", "+@all"});
    const server untrusted{durable_over(server_tls{unknown.issue("server"), unknown.file()})};

    struct judged
    {
        std::string url;
        std::string verdict;
        std::string findings;
    };
    const std::vector<judged> expected{
        {plain.url(), "good", "note no_password"},
        {over_tls.url(), "good", "note no_password"},
        {evicts.url(), "usable", "warning eviction"},
        {evicts_over_tls.url(), "usable", "warning eviction"},
        {fmt::format("rediss://locker:open-sesame@127.0.0.1:{}", open_over_tls.port()), "good",
         "note no_password"},
        {untrusted.url(), "unusable", "failure tls"}};
    // In the other order as well, so that none of them is judged as the first or the last is.
    for (const bool reversed : {false, true})
    {
        CAPTURE(reversed);
        std::vector<judged> given = expected;
        if (reversed)
        {
            std::reverse(given.begin(), given.end());
        }
        strings in_order;
        for (const judged& each : given)
        {
            in_order.push_back(each.url);
        }
        const diagnosed found = diagnose(in_order, {"--json", "--ca-file", trusted.file()});
        CHECK(found.end == process_end{.exit_code = 1});
        CHECK(found.errors.empty());
        const tree all = read_json(found.text);
        CHECK(all.get<int>("usable") == 5);
        CHECK(all.get<int>("may_fail") == 1);
        for (std::size_t index = 0; index < given.size(); ++index)
        {
            CAPTURE(given[index].url);
            const tree& one = master_at(all, index);
            CHECK(one.get<std::string>("verdict") == given[index].verdict);
            CHECK(all_findings_of(one) == given[index].findings);
        }
    }
}

TEST_CASE("doctor: a certificate that can't be accepted is a failure of TLS", "[scenario-53]")
{
    const temporary_directory files;
    certificate_authority trusted{files.path(), "trusted"};
    const certificate_options expired{.begins = -48h, .ends = -24h};
    const certificate_options wrong_name{.made_out_to = "DNS:elsewhere.example"};
    for (const certificate_options& each : {expired, wrong_name})
    {
        const server master{durable_over(server_tls{trusted.issue("server", each), trusted.file()})};
        CHECK(alone(master.url(), {"--ca-file", trusted.file()}) == "unusable: failure tls");
    }
}

TEST_CASE("doctor: a server that doesn't let us in has the kind of its reason")
{
    constexpr auto always = applies::from_the_start;
    const std::vector<std::pair<behaviour, const char*>> all{
        {speaks_http(), "protocol"},
        {garbage(), "protocol"},
        {says("-LOADING Redis is loading the dataset in memory\r\n", always), "not_ready"},
        {says("-BUSY Redis is busy running a script.\r\n", always), "not_ready"},
        {says("-ERR max number of clients reached\r\n", always), "refused"},
        {says("-DENIED Redis is running in protected mode\r\n", always), "protected_mode"},
        {says("-WRONGPASS invalid username-password pair\r\n", always), "authentication"},
        {closes_instead(), "unreachable"}};
    for (const auto& [how, kind] : all)
    {
        const fake_server master{how};
        CHECK(alone(master.url()) == std::string{"unusable: failure "} + kind);
    }
}

TEST_CASE("doctor: each finding that a server can cause has its kind", "[doctor]")
{
    struct expected
    {
        behaviour how;
        const char* verdict;
        const char* path = "";
        strings options = {};
    };
    const auto answered = [](const std::string& name, const std::string& with)
    {
        return altered(
            [name, with](session&, const command& words, const std::string& honest)
            { return answer{words.front() == name ? with : honest}; },
            applies::from_the_start);
    };
    const std::string old_version =
        "redis_version:5.0.14\r\nrun_id:0123456789012345678901234567890123456789\r\n";
    // A clock that is set an hour ahead once: after the connection's own look, and the first ones of the doctor.
    const auto jumps = altered(
        [looks =
             std::make_shared<std::atomic<int>>(0)](session&, const command& words, const std::string& honest)
        {
            if (words.front() != "TIME" || ++*looks < 5)
            {
                return answer{honest};
            }
            const auto later = std::chrono::system_clock::now().time_since_epoch() + 1h;
            const auto us = std::chrono::duration_cast<std::chrono::microseconds>(later).count();
            const std::string rest = std::to_string(us % 1'000'000);
            return answer{fmt::format("*2\r\n$10\r\n{}\r\n${}\r\n{}\r\n", us / 1'000'000, rest.size(), rest)};
        },
        applies::from_the_start);
    const auto forgets = altered(
        [](session&, const command& words, const std::string& honest)
        { return answer{asks_for_owner(words) ? "*2\r\n$-1\r\n:-2\r\n" : honest}; },
        applies::from_the_start);
    const strings no_probe{"--no-probe"};
    const std::vector<expected> all{
        {honest({.role = "slave"}), "unusable: failure replica"},
        {honest({.mode = "cluster"}), "unusable: failure cluster_node"},
        {honest({.mode = "sentinel"}), "unusable: failure refused"},
        {answered("SELECT", "-NOPERM this user has no permissions\r\n"), "unusable: failure permission",
         "/1"},
        {answered("INFO", fmt::format("={}\r\ntxt:{}\r\n", old_version.size() + 4, old_version)),
         "usable: warning outdated, note persistence_unknown", "", no_probe},
        {jumps, "usable: warning clock, note persistence_unknown", "", no_probe},
        {says("-MISCONF Redis is configured to save RDB snapshots\r\n", applies::to_locks),
         "unusable: failure cannot_save, note persistence_unknown"},
        {says("-NOREPLICAS Not enough good replicas to write.\r\n", applies::to_locks),
         "unusable: failure replicas, note persistence_unknown"},
        {says("-OOM command not allowed when used memory > 'maxmemory'.\r\n", applies::to_locks),
         "unusable: failure memory, note persistence_unknown"},
        // The key is gone as soon as the doctor looks for its owner.
        {forgets, "unusable: failure loses_keys, note persistence_unknown"}};
    for (const expected& each : all)
    {
        CAPTURE(each.verdict);
        const fake_server master{each.how};
        const std::string found = alone(master.url() + each.path, each.options);
        CHECK(found == each.verdict);
    }
}

TEST_CASE("doctor: measures each step of the probe by itself", "[doctor]")
{
    static constexpr std::chrono::milliseconds delay{200};
    for (const std::string slow : {"acquire", "extend", "release"})
    {
        CAPTURE(slow);
        const auto owner = std::make_shared<std::string>();
        const auto slowly = [owner, slow](session&, const command& words, std::string honest)
        {
            const bool by_name = words.front() == "EVALSHA";
            if (words.front() == "SET")
            {
                *owner = words.at(2);
            }
            else if (asks_for_owner(words))
            {
                honest = fmt::format("*2\r\n${}\r\n{}\r\n:4000\r\n", owner->size(), *owner);
            }
            const bool extends = by_name && words.size() == 6 && words[5] == "5000";
            const bool releases = by_name && words.size() == 6 && !extends;
            const bool is_slow = slow == "acquire"  ? words.front() == "SET"
                                 : slow == "extend" ? extends
                                                    : releases;
            return answer{.bytes = std::move(honest), .delay = is_slow ? delay : 0ms};
        };
        const fake_server master{altered(slowly, applies::from_the_start)};
        const tree all = read_json(diagnose({master.url()}, {"--json"}, slow_part::disk).text);
        const tree& one = master_at(all, 0);
        CHECK(one.get<double>(slow + "_us") >= std::chrono::duration<double, std::micro>{delay}.count());
    }
}

TEST_CASE("doctor: an open default user is a note for each address of this machine", "[doctor]")
{
    const temporary_directory sockets;
    const std::string socket = sockets.path() + "/socket";
    server_options options = durable({"--unixsocket", socket});
    options.over = transport::tcp;
    options.as = user::default_user;
    server master{options};
    for (const std::string& url :
         {fmt::format("redis://127.0.0.1:{}", master.port()),
          fmt::format("redis://localhost:{}", master.port()), "unix://" + socket})
    {
        CAPTURE(url);
        const tree all = json_of({url});
        CHECK(all_findings_of(master_at(all, 0)) == "note no_password");
    }
    // Without a user in the URL, the default user is named.
    expect_ok(master.command({"ACL", "SETUSER", "default", "-set"}));
    const tree all = json_of({fmt::format("redis://127.0.0.1:{}", master.port())});
    CHECK(what_of(master_at(all, 0), "permission") == "its ACL forbids the user default: set");
}

TEST_CASE("doctor: judges a master by the fastest of its answers to repeated probes", "[doctor]")
{
    // Of each run of the doctor, the first SET is answered late.
    struct state
    {
        std::string owner;
        int sets = 0;
    };
    const auto late_once =
        [seen = std::make_shared<state>()](session&, const command& words, std::string honest)
    {
        std::chrono::milliseconds delay{0};
        if (words.front() == "INFO")
        {
            seen->sets = 0;
        }
        else if (words.front() == "SET")
        {
            seen->owner = words.at(2);
            delay = ++seen->sets == 1 ? 1000ms : 0ms;
        }
        else if (asks_for_owner(words))
        {
            honest = fmt::format("*2\r\n${}\r\n{}\r\n:4000\r\n", seen->owner.size(), seen->owner);
        }
        return answer{.bytes = std::move(honest), .delay = delay};
    };
    const fake_server master{altered(late_once, applies::from_the_start)};
    const diagnosed found = diagnose({master.url()}, {"--json"});
    CHECK(verdict_in(found) == "good: note persistence_unknown");
}

TEST_CASE("doctor: sends the given client certificate to a master that requires one")
{
    const temporary_directory files;
    certificate_authority trusted{files.path(), "trusted"};
    const certificate_files own = trusted.issue("client");
    const server master{durable_over(server_tls{trusted.issue("server"), trusted.file(), true})};
    CHECK(
        alone(
            master.url(), {"--ca-file", trusted.file(), "--certificate-file", own.certificate,
                           "--private-key-file", own.key}) == "good: ");
    const diagnosed without = diagnose({master.url()}, {"--ca-file", trusted.file()});
    CHECK(without.end == process_end{.exit_code = 69});
    CHECK_THAT(without.text, ContainsSubstring("give --certificate-file and --private-key-file"));
}

} // namespace redlock::test
