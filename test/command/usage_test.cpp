// SPDX-License-Identifier: BSL-1.0
// What can't be asked for: exit code 64 or 78, one clear line, and no master is touched.
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
    std::string says; // A part of the message.
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
    const command refused{asked.arguments, one_master};
    CHECK(refused.wait() == process_end{.exit_code = 64});
    const std::string errors = refused.errors();
    CHECK(errors.starts_with("redlock: "));
    CHECK(std::count(errors.begin(), errors.end(), '\n') == 1);
    CHECK(errors.find(asked.says) != std::string::npos);
    CHECK(refused.output().empty());
}

} // namespace

TEST_CASE("A command line that can't be understood is refused with what is allowed")
{
    const std::vector<refused_line> lines{
        {run_true({}), "--max-hold is required"},
        {run_true({"--max-hold", "10"}), "it has no unit; give 10s for seconds"},
        {run_true({"--max-hold", "0s"}), "it must be 1ms or more"},
        {run_true({"--max-hold", "-1s"}), "give a whole number with a unit"},
        {run_true({"--max-hold", "1h", "--wait", "1.5s"}), "give a whole number with one of the units"},
        {run_true({"--max-hold", "1h", "--wait", "10S"}), "give a whole number with one of the units"},
        {run_true({"--max-hold", "36501d"}), "the longest is 36500d"},
        {run_true({"--max-hold", "99999999999999999999d"}), "the longest is 36500d"},
        {run_true({"--max-hold", "1h", "--ttl", "soon"}), "--ttl: 'soon' is no duration"},
        {run_true({"--max-hold", "1h", "--try", "--wait", "1s"}), "excludes"},
        {run_true({"--max-hold", "1h", "--grace", "9s"}), "it must be 5.03 s at most"},
        {run_true({"--max-hold", "1h", "--ttl", "500ms"}), "give a longer ttl, or a shorter --grace"},
        {run_true({"--max-hold", "1h", "--ttl", "100ms"}),
         "is too short to be kept: it must be 386 ms or more"},
        {run_true({"--max-hold", "1h", "--no-such"}), "there is no option '--no-such'"},
        {{"run", "--max-hold", "1h", "job"}, "there is no command"},
        {{"run", "--max-hold", "1h", "job", "--"}, "there is no command"},
        {{"run", "--max-hold", "1h", "--", "true"}, "RESOURCE"},
        {{"run", "--max-hold", "1h", "", "--", "true"}, "RESOURCE"},
        {{"run", "--max-hold", "1h", "job", "true"}, "RESOURCE"},
        {{"run", "--max-hold", "1h", std::string(1025, 'x'), "--", "true"}, "1024"},
        {run_true({"--max-hold", "1h", "--prefix", std::string(1025, 'x')}), "--prefix: it has 1025 bytes"},
        {{"status", "job", "--prefix", std::string(1025, 'x')}, "--prefix: it has 1025 bytes"},
        {{"doctor", "--prefix", std::string(1025, 'x')}, "--prefix: it has 1025 bytes"},
        {{"run", "--max-hold", "1h", "--", "-foo", "true"}, "-- is missing between RESOURCE and COMMAND"},
        {{"status"}, "RESOURCE"},
        {{"status", "job", "--wait", "1s"}, "there is no option '--wait'"},
        {{"doctor", "job"}, "a master is given by --master"},
        {{"doctor", "--ttl", "1s"}, "there is no option '--ttl'"},
        {{"doctor", "--certificate-file", "/some.pem"}, "give both, or neither"},
        {{"status", "job", "--private-key-file", "/some.pem"}, "give both, or neither"},
        {run_true({"--max-hold", "1h", "--wait="}), "--wait: '' is no duration"},
        {run_true({"--max-hold="}), "--max-hold is required"},
        {{"walk"}, "there is no such command: 'walk'; there are run, status and doctor"},
        {{"walk", "--max-hold", "1h"}, "there is no such command: 'walk'"},
        {{"--walk"}, "give a command: run, status or doctor"},
        {{"redis://:secret@127.0.0.1"}, "there is no such command; there are run, status and doctor"},
        {{}, "give a command: run, status or doctor; see redlock --help"},
    };
    for (const refused_line& each : lines)
    {
        check_refused(each);
    }
}

TEST_CASE("Of an option that is given twice the last one counts, and one can be empty")
{
    five_masters masters;
    const command last{
        run_shell(
            "echo $REDLOCK_RESOURCE", {"--ttl", "never", "--ttl", "10s", "--prefix", "x:", "--prefix="}),
        masters.environment()};
    CHECK(last.wait() == process_end{.exit_code = 0});
    CHECK(last.output() == "job\n");

    masters.any().command({"SET", "foo", "of a stranger"});
    const command shown{{"status", "--prefix=", "foo"}, masters.environment()};
    CHECK(shown.wait() == process_end{.exit_code = 1});
    CHECK(shown.output().find("held by of a stranger") != std::string::npos);
}

TEST_CASE("A resource that begins with a dash stands after --")
{
    five_masters masters;
    const command run{
        {"run", "--max-hold", "1h", "--", "--job", "--", "sh", "-c", "echo $REDLOCK_RESOURCE \"$@\"", "sh",
         "--", "x"},
        masters.environment()};
    CHECK(run.wait() == process_end{.exit_code = 0});
    CHECK(run.output() == "--job -- x\n");
    const command shown{{"status", "--", "--job"}, masters.environment()};
    CHECK(shown.wait() == process_end{.exit_code = 1});
    CHECK(shown.output().find("'--job' isn't held") != std::string::npos);
}

TEST_CASE("No masters, or some that can't be used, are told apart")
{
    const command none{run_true({"--max-hold", "1h"}), {"REDLOCK_MASTERS= , "}};
    CHECK(none.wait() == process_end{.exit_code = 64});
    CHECK(none.errors().find("there are no masters") != std::string::npos);

    const command wrong{run_true({"--max-hold", "1h"}), {"REDLOCK_MASTERS=http://127.0.0.1"}};
    CHECK(wrong.wait() == process_end{.exit_code = 78});
    CHECK(wrong.errors().find("must begin with redis://") != std::string::npos);

    const command twice{
        run_true({"--max-hold", "1h", "--master", "redis://127.0.0.1:1", "--master", "redis://127.0.0.1:1"})};
    CHECK(twice.wait() == process_end{.exit_code = 78});
    CHECK(twice.errors().find("are the same server") != std::string::npos);
}

TEST_CASE("Files for TLS are refused where no master is spoken to over it, and those that can't be read")
{
    const std::vector<strings> asked{
        {"status", "job"}, {"doctor"}, {"run", "--max-hold", "1h", "job", "--", "true"}};
    for (strings words : asked)
    {
        INFO(words.front());
        // In front of the command's own "--".
        words.insert(words.begin() + 1, {"--ca-file", "/nowhere.pem"});
        const command without_tls{words, one_master};
        CHECK(without_tls.wait() == process_end{.exit_code = 78});
        CHECK(without_tls.errors().find("give rediss:// instead of redis://") != std::string::npos);

        const command unreadable{words, {"REDLOCK_MASTERS=rediss://127.0.0.1:1"}};
        CHECK(unreadable.wait() == process_end{.exit_code = 78});
        CHECK(unreadable.errors().find("'/nowhere.pem' can't be used") != std::string::npos);
    }
}

TEST_CASE("The longest grace that redlock allows is the longest that the library allows")
{
    five_masters masters;
    const command longest{run_shell("exit 5", {"--grace", "5030ms"}), masters.environment()};
    CHECK(longest.wait() == process_end{.exit_code = 5});
    const command refused{run_shell("exit 5", {"--grace", "5031ms"}), masters.environment()};
    CHECK(refused.wait() == process_end{.exit_code = 64});
    CHECK(refused.errors().find("must be 5.03 s at most") != std::string::npos);

    // The same by the library itself: redlock asks it for a stop_margin of the grace and 200 ms.
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

TEST_CASE("The shortest ttl that redlock allows can be kept")
{
    five_masters masters;
    const command refused{run_shell("exit 5", {"--ttl", "385ms", "--grace", "0s"}), masters.environment()};
    CHECK(refused.wait() == process_end{.exit_code = 64});
    // Whether a busy machine keeps so short a lease is another matter: it isn't refused.
    const command shortest{run_shell("exit 5", {"--ttl", "386ms", "--grace", "0s"}), masters.environment()};
    CHECK(shortest.wait() != process_end{.exit_code = 64});
    CHECK(shortest.errors().find("must be") == std::string::npos);
}

} // namespace redlock::test
