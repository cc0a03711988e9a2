// SPDX-License-Identifier: BSL-1.0
// redlock run: the lease is lost, and the command ends before another client can acquire the lock.
#include "command/command.hpp"
#include "support/proxy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <csignal>
#include <deque>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

namespace redlock::test
{

using Catch::Matchers::ContainsSubstring;

using namespace std::chrono_literals;

namespace
{

/// Returns a script that ignores SIGTERM, as its children do, and writes its process id to the pipe.
std::string stubborn(const named_pipe& from)
{
    return fmt::format("trap '' TERM; echo $$ >{}; sleep 1000; sleep 1000", from.path());
}

/// Returns a script that reports through one pipe that it runs, and ends when a line comes through the other.
std::string ready_until_told(const named_pipe& from, const named_pipe& to)
{
    return fmt::format("echo ready >{}; read line <{}; exit 4", from.path(), to.path());
}

/// Returns how long before the end of the validity the command ended, according to -v.
double margin_of(const command_run& ended)
{
    const std::string errors = ended.errors();
    const std::string before = "the command has ended with ";
    const std::size_t line = errors.find(before);
    const std::size_t comma = errors.find(", ", line);
    if (line == std::string::npos || comma == std::string::npos)
    {
        throw std::runtime_error{"no margin in:\n" + errors};
    }
    return std::stod(errors.substr(comma + 2));
}

void overwrite(server& on)
{
    on.command({"SET", "lock:job", "of a stranger", "PX", "600000"});
}

} // namespace

TEST_CASE(
    "loss: if three of five masters hang, a command that ignores SIGTERM is killed before the validity ends",
    "[scenario-30]")
{
    five_masters masters;
    named_pipe from;
    const command_run held{run_shell(stubborn(from), {"--ttl", "3s", "-v"}), masters.environment()};
    const pid_t child = std::stoi(from.line());
    for (std::size_t index = 0; index < 3; ++index)
    {
        masters.servers[index].stop();
    }
    CHECK(held.wait() == process_end{.exit_code = 76});
    CHECK(has_ended(child, 0ms));
    CHECK(held.errors().find("SIGTERM to the command") != std::string::npos);
    CHECK(held.errors().find("SIGKILL to the command") != std::string::npos);
    CHECK(
        held.errors().find("redlock: warning: no quorum confirmed the release of 'job'") !=
        std::string::npos);
    CHECK(
        held.errors().find("'job': the lock is lost, since no quorum of the masters extended it in time: "
                           "SIGTERM to the command, SIGKILL follows in ") != std::string::npos);
    CHECK(held.errors().find("only 2 of 5 masters answer now (quorum 3):\n  ") != std::string::npos);
    CHECK(margin_of(held) > 0.0);
    for (std::size_t index = 0; index < 3; ++index)
    {
        masters.servers[index].resume();
    }
}

TEST_CASE(
    "loss: another client acquires the lock only after the command's whole process group has ended",
    "[scenario-58]")
{
    five_masters masters;
    std::deque<proxy> proxies;
    std::string urls;
    for (const server& each : masters.servers)
    {
        proxies.emplace_back(each.port());
        urls += (urls.empty() ? "" : ",") + proxies.back().url();
    }
    named_pipe from;
    // The first process ends at SIGTERM. The second, in the same group, ignores it.
    const std::string script = fmt::format(
        "(trap '' TERM; echo $(exec sh -c 'echo $PPID') >{}; sleep 1000; sleep 1000) & echo $$ >{}; wait",
        from.path(), from.path());
    const command_run held{run_shell(script, {"--ttl", "4s", "-v"}), {"REDLOCK_MASTERS=" + urls}};
    const pid_t first = std::stoi(from.line());
    const pid_t second = std::stoi(from.line());
    REQUIRE(first != second);

    client other{unhurried(masters.servers)};
    other.wait_for_masters();
    auto theirs = start_acquire(other.locks(), "job", {.ttl = long_ttl, .wait = no_limit});
    for (proxy& each : proxies)
    {
        each.drop_to_server(true);
    }
    const acquired won = take(std::move(theirs), "the other acquire");
    CHECK(has_ended(first, 0ms));
    CHECK(has_ended(second, 0ms));
    CHECK_FALSE(won.error);
    CHECK(held.wait() == process_end{.exit_code = 76});
    CHECK(won.lease.valid());
}

TEST_CASE("loss: if a quorum reports another owner, the command is killed at once")
{
    five_masters masters;
    named_pipe from;
    named_pipe told;
    const std::string script = fmt::format(
        "trap 'echo told >{}' TERM; echo $$ >{}; while :; do sleep 1000; done", told.path(), from.path());
    const command_run held{run_shell(script, {"--ttl", "3s"}), masters.environment()};
    const pid_t child = std::stoi(from.line());
    std::for_each(masters.servers.begin(), masters.servers.end(), overwrite);
    CHECK(held.wait() == process_end{.exit_code = 76});
    CHECK(has_ended(child, 0ms));
    CHECK(held.errors().find("SIGTERM") == std::string::npos);
    CHECK(
        held.errors().find(
            "'job': the lock is lost, since too many masters no longer have its key: SIGKILL to the "
            "command at once") != std::string::npos);
    CHECK(held.errors().find("of 5 masters 5 have the key of another owner") != std::string::npos);
    CHECK(
        held.errors().find(masters.any().url() + ": held by of a stranger, for another ") !=
        std::string::npos);
    const auto untouched = [](server& each) { return each.command({"GET", "lock:job"}) == "of a stranger"; };
    CHECK(std::all_of(masters.servers.begin(), masters.servers.end(), untouched));
}

TEST_CASE("loss: keys that are missing, or are not locks, on a quorum of the masters are reported")
{
    const bool is_missing = GENERATE(true, false);
    five_masters masters;
    named_pipe from;
    const command_run held{
        run_shell(fmt::format("echo $$ >{}; exec sleep 1000", from.path()), {"--ttl", "3s"}),
        masters.environment()};
    from.line();
    for (server& each : masters.servers)
    {
        each.command({"DEL", "lock:job"});
        if (!is_missing)
        {
            each.command({"HSET", "lock:job", "field", "1"});
        }
    }
    CHECK(held.wait() == process_end{.exit_code = 76});
    CHECK_THAT(held.errors(), ContainsSubstring("SIGKILL to the command at once"));
    CHECK_THAT(
        held.errors(), ContainsSubstring(
                           is_missing ? "of 5 masters 0 have the key of another owner, and 5 have no key:"
                                      : "of 5 masters 5 have the key of another owner, and 0 have no key:"));
    CHECK_THAT(
        held.errors(),
        ContainsSubstring(
            masters.any().url() +
            (is_missing ? ": the key is gone\n" : ": has a key that is not a lock (\"WRONGTYPE")));
}

TEST_CASE("loss: an ACL that forbids extensions is reported")
{
    std::vector<server> servers = start_servers(5, server_options::plain());
    strings options{"--ttl", "3s"};
    for (const server& each : servers)
    {
        options.insert(options.end(), {"--master", each.url()});
    }
    named_pipe from;
    const command_run held{run_shell(fmt::format("echo $$ >{}; exec sleep 1000", from.path()), options)};
    from.line();
    for (std::size_t index = 0; index < 3; ++index)
    {
        servers[index].command({"ACL", "SETUSER", "default", "-eval", "-evalsha"});
    }
    CHECK(held.wait() == process_end{.exit_code = 76});
    CHECK(held.errors().find("SIGTERM to the command") != std::string::npos);
    CHECK(
        held.errors().find(
            servers[0].url() + ": its ACL forbids a command or a key that locking needs (\"NOPERM") !=
        std::string::npos);
}

TEST_CASE(
    "loss: all descendants of the command are ended, also in other groups and sessions", "[scenario-107]")
{
    five_masters masters;
    named_pipe from;
    // A daemon: a process of another session that ignores SIGTERM.
    const std::string script = fmt::format(
        "setsid sh -c 'trap \"\" TERM; sleep 1000 & echo $$ $! >{}; wait; sleep 1000' & echo $$ >{}; "
        "trap 'exit 0' TERM; while :; do sleep 0.05; done",
        from.path(), from.path());
    const command_run held{
        run_shell(script, {"--max-hold", "1s", "--ttl", "2s", "--grace", "200ms"}), masters.environment()};
    std::vector<pid_t> all;
    for (int lines = 0; lines < 2; ++lines)
    {
        std::istringstream words{from.line()};
        for (pid_t each = 0; words >> each;)
        {
            all.push_back(each);
        }
    }
    REQUIRE(all.size() == 3);
    CHECK(held.wait() == process_end{.exit_code = 77});
    for (const pid_t each : all)
    {
        CHECK(has_ended(each, 0ms));
    }
    CHECK(masters.keys() == 0);
}

TEST_CASE("loss: at --max-hold the command is sent SIGTERM, and has its grace to end", "[scenario-39]")
{
    five_masters masters;
    const command_run polite{
        run_shell("trap 'echo tidied up; exit 0' TERM; while :; do sleep 0.1; done", {"--max-hold", "2s"}),
        masters.environment()};
    CHECK(polite.wait() == process_end{.exit_code = 77});
    CHECK(polite.output() == "tidied up\n");
    CHECK(
        polite.errors().find("'job': --max-hold was reached: SIGTERM to the command, SIGKILL follows") !=
        std::string::npos);
    CHECK(masters.keys() == 0);

    named_pipe from;
    const command_run rude{
        run_shell(stubborn(from), {"--max-hold", "2s", "--ttl", "2s", "--grace", "100ms"}),
        masters.environment()};
    const pid_t child = std::stoi(from.line());
    CHECK(rude.wait() == process_end{.exit_code = 77});
    CHECK(has_ended(child, 0ms));
    CHECK(masters.keys() == 0);
}

TEST_CASE(
    "run: a command that runs for longer than --ttl keeps the lock, while each master in turn restarts empty",
    "[scenario-27]")
{
    five_masters masters;
    named_pipe from;
    named_pipe to;
    const command_run held{
        run_shell(ready_until_told(from, to), {"--ttl", "2s", "-v"}), masters.environment()};
    CHECK(from.line() == "ready");
    for (server& each : masters.servers)
    {
        each.restart();
        REQUIRE(comes_true(each, [&] { return each.command({"EXISTS", "lock:job"}) == 1; }));
    }
    to.write("end");
    CHECK(held.wait() == process_end{.exit_code = 4});
    CHECK(held.errors().find("extended, valid for") != std::string::npos);
    CHECK(masters.keys() == 0);
}

TEST_CASE("run: -v reports that extensions succeed again after one that failed")
{
    five_masters masters;
    named_pipe from;
    named_pipe to;
    const command_run held{
        run_shell(ready_until_told(from, to), {"--ttl", "6s", "-v"}), masters.environment()};
    CHECK(from.line() == "ready");
    held.wait_for_error_line(masters.any(), "extended, valid for ");
    const auto reports = [&](std::string_view what, std::string_view permission)
    {
        const std::size_t before = held.errors().size();
        for (server& each : masters.servers)
        {
            REQUIRE(each.command({"ACL", "SETUSER", "default", permission}) == "OK");
        }
        return comes_true(
            masters.any(), [&] { return held.errors().find(what, before) != std::string::npos; });
    };
    CHECK(reports("'evalsha'", "-evalsha"));
    CHECK(reports("extended, valid for ", "+evalsha"));
    to.write("end");
    CHECK(held.wait() == process_end{.exit_code = 4});
}

TEST_CASE("run: a blocked stderr doesn't prevent extensions")
{
    five_masters masters;
    named_pipe from;
    named_pipe to;
    named_pipe unread;
    // A full pipe, to which every write blocks.
    const std::string script = fmt::format(
        "dd if=/dev/zero of={0} oflag=nonblock bs=4096 2>/dev/null; "
        "exec {1} run -v --ttl 6s --max-hold 1h inner -- sh -c 'echo $$ >{2}; read line <{3}; exit 6' 2>{0}",
        unread.path(), REDLOCK_COMMAND, from.path(), to.path());
    const command_run held{run_shell(script), masters.environment()};
    CHECK(std::stoi(from.line()) > 0);
    server& any = masters.any();
    // Extended three times: the remaining ttl falls and rises again.
    const auto owner = any.command({"GET", "lock:inner"}).text;
    for (int extended = 0; extended < 3; ++extended)
    {
        const auto left = [&] { return any.command({"PTTL", "lock:inner"}).integer; };
        REQUIRE(comes_true(any, [&] { return left() < 4500; }));
        REQUIRE(comes_true(any, [&] { return left() > 4500; }));
    }
    to.write("end");
    CHECK(held.wait() == process_end{.exit_code = 6});
}

} // namespace redlock::test
