// SPDX-License-Identifier: BSL-1.0
// Invalid command lines: exit code 64 or 78, one line on stderr, and no connection to a master.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <future>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

struct refused_line
{
    strings arguments;
    std::string says; // Part of the message.
};

const strings one_master{"REDLOCK_MASTERS=redis://127.0.0.1:1"};

strings run_true(strings options)
{
    strings words{"run"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"job", "--", "true"});
    return words;
}

void check_refused(const refused_line& asked)
{
    INFO(asked.says);
    const command_run refused{asked.arguments, one_master};
    CHECK(refused.wait() == process_end{.exit_code = 64});
    const std::string errors = refused.errors();
    CHECK(errors.starts_with("redlock: "));
    CHECK(std::count(errors.begin(), errors.end(), '\n') == 1);
    CHECK(errors.find(asked.says) != std::string::npos);
    CHECK(refused.output().empty());
}

} // namespace

TEST_CASE("usage: an invalid command line is refused with what is allowed")
{
    const std::vector<refused_line> lines{
        {run_true({}), "--max-hold is required"},
        {{"status", std::string(1025, 'r')}, "it must have 1 to 1024 bytes"},
        {run_true({"--max-hold", "10"}), "it has no unit; give 10s for seconds"},
        {run_true({"--max-hold", "0s"}), "give 1ms or more"},
        {run_true({"--max-hold", "-1s"}), "give a whole number with a unit"},
        {run_true({"--max-hold", "1h", "--wait", "1.5s"}), "give a whole number with one of the units"},
        {run_true({"--max-hold", "1h", "--wait", "10S"}), "give a whole number with one of the units"},
        {run_true({"--max-hold", "36501d"}), "the longest is 36500d"},
        {run_true({"--max-hold", "99999999999999999999d"}), "the longest is 36500d"},
        {run_true({"--max-hold", "1h", "--ttl", "soon"}), "--ttl: 'soon' is not a duration"},
        {run_true({"--max-hold", "1h", "--try", "--wait", "1s"}), "excludes"},
        {run_true({"--max-hold", "1h", "--grace", "9s"}), "give at most 5.03 s"},
        {run_true({"--max-hold", "1h", "--ttl", "500ms"}), "or a longer --ttl"},
        {run_true({"--max-hold", "1h", "--ttl", "100ms"}), "is too short: give at least 386 ms"},
        {run_true({"--max-hold", "1h", "--no-such"}), "unknown option '--no-such'"},
        {run_true({"-v", "--max-hold", "1h", "--vebose"}), "unknown option '--vebose'"},
        {run_true({"--max-hold", "1h", "--ttl", "5s", "--ttl-max=1s"}), "unknown option '--ttl-max'"},
        {{"run", "--max-hold", "1h", "job"}, "the command is missing"},
        {{"run", "--max-hold", "1h", "job", "--"}, "the command is missing"},
        {{"run", "--max-hold", "1h", "--", "true"}, "RESOURCE"},
        {{"run", "--max-hold", "1h", "", "--", "true"}, "RESOURCE"},
        {{"run", "--max-hold", "1h", "job", "true"}, "RESOURCE"},
        {{"run", "--max-hold", "1h", std::string(1025, 'x'), "--", "true"}, "1024"},
        {run_true({"--max-hold", "1h", "--prefix", std::string(1025, 'x')}), "--prefix has 1025 bytes"},
        {{"status", "job", "--prefix", std::string(1025, 'x')}, "--prefix has 1025 bytes"},
        {{"doctor", "--prefix", std::string(1025, 'x')}, "--prefix has 1025 bytes"},
        {run_true({"--max-hold", "1h", "--prefix", "redlock-queue:x"}),
         "--prefix 'redlock-queue:x' can't be used"},
        {{"status", "job", "--prefix", "a:redlock-guard"}, "or contain :redlock-guard"},
        {{"provision", "--max-ttl", "1s", "--prefix", "a:redlock-members:"},
         "--prefix 'a:redlock-members:' can't be used"},
        {{"run", "--max-hold", "1h", "--", "-foo", "true"}, "-- is missing between RESOURCE and COMMAND"},
        {{"status"}, "RESOURCE"},
        {{"status", "job", "--wait", "1s"}, "unknown option '--wait'"},
        {{"doctor", "job"}, "give masters by --master"},
        {{"doctor", "--ttl", "1s"}, "unknown option '--ttl'"},
        {{"doctor", "--certificate-file", "/some.pem"}, "give both, or neither"},
        {{"status", "job", "--private-key-file", "/some.pem"}, "give both, or neither"},
        {run_true({"--max-hold", "1h", "--wait="}), "--wait: '' is not a duration"},
        {run_true({"--max-hold="}), "--max-hold is required"},
        {{"walk"}, "unknown subcommand 'walk': give run, status, doctor or provision"},
        {{"walk", "--max-hold", "1h"}, "unknown subcommand 'walk'"},
        {{"--walk"}, "the subcommand is missing: give run, status, doctor or provision"},
        {{"redis://:secret@127.0.0.1"}, "unknown subcommand: give run, status, doctor or provision"},
        {{}, "the subcommand is missing: give run, status, doctor or provision; see redlock --help"},
    };
    for (const refused_line& each : lines)
    {
        check_refused(each);
    }
}

TEST_CASE("usage: the last of repeated options counts, and a value can be empty")
{
    five_masters masters;
    const command_run last{
        run_shell(
            "echo $REDLOCK_RESOURCE", {"--ttl", "never", "--ttl", "10s", "--prefix", "x:", "--prefix="}),
        masters.environment()};
    CHECK(last.wait() == process_end{.exit_code = 0});
    CHECK(last.output() == "job\n");

    masters.any().command({"SET", "foo", "of a stranger"});
    const command_run shown{{"status", "--prefix=", "foo"}, masters.environment()};
    CHECK(shown.wait() == process_end{.exit_code = 1});
    CHECK(shown.output().find("held by of a stranger") != std::string::npos);
}

TEST_CASE("usage: a resource that begins with a dash is given after --")
{
    five_masters masters;
    const command_run run{
        {"run", "--max-hold", "1h", "--", "--job", "--", "sh", "-c", "echo $REDLOCK_RESOURCE \"$@\"", "sh",
         "--", "x"},
        masters.environment()};
    CHECK(run.wait() == process_end{.exit_code = 0});
    CHECK(run.output() == "--job -- x\n");
    const command_run shown{{"status", "--", "--job"}, masters.environment()};
    CHECK(shown.wait() == process_end{.exit_code = 1});
    CHECK(shown.output().find("'--job' isn't held") != std::string::npos);
}

TEST_CASE("usage: ends with 64 without masters, and with 78 for invalid ones")
{
    const command_run none{run_true({"--max-hold", "1h"}), {"REDLOCK_MASTERS= \n"}};
    CHECK(none.wait() == process_end{.exit_code = 64});
    CHECK(none.errors().find("no masters are given") != std::string::npos);

    const command_run gap{
        run_true({"--max-hold", "1h"}), {"REDLOCK_MASTERS=redis://127.0.0.1:1,,redis://127.0.0.1:2"}};
    CHECK(gap.wait() == process_end{.exit_code = 78});
    CHECK(
        gap.errors() ==
        "redlock: REDLOCK_MASTERS: entry 2 of 3 is empty, perhaps a variable that isn't set: give "
        "the URL of a master, or omit its comma\n");

    const command_run wrong{run_true({"--max-hold", "1h"}), {"REDLOCK_MASTERS=http://127.0.0.1"}};
    CHECK(wrong.wait() == process_end{.exit_code = 78});
    CHECK(wrong.errors().find("must begin with redis://") != std::string::npos);

    const command_run twice{
        run_true({"--max-hold", "1h", "--master", "redis://127.0.0.1:1", "--master", "redis://127.0.0.1:1"})};
    CHECK(twice.wait() == process_end{.exit_code = 78});
    CHECK(twice.errors().find("are the same server") != std::string::npos);
}

TEST_CASE("usage: files for TLS are refused if no master uses TLS, or if they can't be read")
{
    const std::vector<strings> asked{
        {"status", "job"},
        {"doctor"},
        {"run", "--max-hold", "1h", "job", "--", "true"},
        {"provision", "--max-ttl", "1s"}};
    for (strings words : asked)
    {
        INFO(words.front());
        // In front of the "--" before the command.
        words.insert(words.begin() + 1, {"--ca-file", "/nowhere.pem"});
        const command_run without_tls{words, one_master};
        CHECK(without_tls.wait() == process_end{.exit_code = 78});
        CHECK(without_tls.errors().find("give rediss:// instead of redis://") != std::string::npos);

        const command_run unreadable{words, {"REDLOCK_MASTERS=rediss://127.0.0.1:1"}};
        CHECK(unreadable.wait() == process_end{.exit_code = 78});
        CHECK(unreadable.errors().find("the --ca-file '/nowhere.pem' can't be used") != std::string::npos);
    }
}

TEST_CASE("usage: the longest --grace is the longest that the library allows")
{
    five_masters masters;
    const command_run longest{run_shell("exit 5", {"--grace", "5030ms"}), masters.environment()};
    CHECK(longest.wait() == process_end{.exit_code = 5});
    const command_run refused{run_shell("exit 5", {"--grace", "5031ms"}), masters.environment()};
    CHECK(refused.wait() == process_end{.exit_code = 64});
    CHECK(refused.errors().find("give at most 5.03 s") != std::string::npos);

    // The same in the library: redlock uses a stop_margin of the grace plus 200 ms.
    config options;
    options.masters = addresses_of(masters.servers);
    options.node_timeout = 500ms;
    client direct{std::move(options)};
    keep_options too_long{.ttl = 10s, .max_hold = no_limit};
    too_long.stop_margin = 5231ms;
    std::promise<error_code> ended;
    direct.locks().async_acquire_kept(
        "job", too_long, [&ended](error_code error, redlock::lease) { ended.set_value(error); });
    CHECK(take(ended.get_future(), "a schedule that is refused") == errc::invalid_schedule);
}

TEST_CASE("usage: the shortest --ttl is accepted")
{
    five_masters masters;
    const command_run refused{
        run_shell("exit 5", {"--ttl", "385ms", "--grace", "0s"}), masters.environment()};
    CHECK(refused.wait() == process_end{.exit_code = 64});
    // A busy machine may lose so short a lease, but it isn't refused.
    const command_run shortest{
        run_shell("exit 5", {"--ttl", "386ms", "--grace", "0s"}), masters.environment()};
    CHECK(shortest.wait() != process_end{.exit_code = 64});
    CHECK(shortest.errors().find("too short") == std::string::npos);
}

} // namespace redlock::test
