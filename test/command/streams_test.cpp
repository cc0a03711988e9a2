// SPDX-License-Identifier: BSL-1.0
// The standard descriptors and the environment: pipes without a reader, closed descriptors, a full disk, cron.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>

#include <csignal>
#include <iterator>
#include <set>
#include <sstream>

#include <fmt/format.h>

namespace redlock::test
{

namespace
{

/// Returns a script that runs "$@" with a pipe as this descriptor, once its reader has closed it. The exit code is
/// written to `from`.
std::string without_reader(int descriptor, const named_pipe& from, const named_pipe& gone)
{
    return fmt::format(
        "{{ read line <{2}; \"$@\" {0}>&9; echo ended with $? >{1}; }} 9>&1 | sh -c 'exec <&-; echo gone "
        ">{2}'",
        descriptor, from.path(), gone.path());
}

std::set<std::string> words_in(const std::string& text)
{
    std::istringstream words{text};
    return {std::istream_iterator<std::string>{words}, {}};
}

} // namespace

TEST_CASE("streams: a stderr without a reader changes neither the exit code nor the release")
{
    five_masters masters;
    named_pipe from;
    named_pipe gone;
    const command_run run{
        run_shell("exit 7", {"-v", "--ttl", "60s"}),
        masters.environment(),
        {},
        without_reader(2, from, gone)};
    CHECK(from.line() == "ended with 7");
    CHECK(masters.keys() == 0);
}

TEST_CASE("streams: a command dies of SIGPIPE as it would without redlock, and the lock is released")
{
    five_masters masters;
    named_pipe from;
    named_pipe gone;
    const command_run run{
        run_shell("exec yes", {"--ttl", "60s"}), masters.environment(), {}, without_reader(1, from, gone)};
    CHECK(from.line() == fmt::format("ended with {}", 128 + SIGPIPE));
    CHECK(masters.keys() == 0);
}

TEST_CASE("streams: status, doctor: end with 71 and a message if stdout has no reader")
{
    five_masters masters;
    for (const strings& words : {strings{"status", "job"}, strings{"doctor", "--no-probe"}})
    {
        CAPTURE(words);
        named_pipe from;
        named_pipe gone;
        const command_run unread{words, masters.environment(), {}, without_reader(1, from, gone)};
        CHECK(from.line() == "ended with 71");
        CHECK(unread.errors() == "redlock: can't write to stdout\n");
    }
}

TEST_CASE("streams: status: ends with 71 and a message if stdout is full")
{
    five_masters masters;
    for (const strings& words : {strings{"status", "job"}, strings{"status", "--json", "job"}})
    {
        const command_run full{words, masters.environment(), {}, "exec \"$@\" >/dev/full"};
        CHECK(full.wait() == process_end{.exit_code = 71});
        CHECK(full.errors() == "redlock: can't write to stdout\n");
    }
}

TEST_CASE("streams: the command gets closed descriptors as closed, and nothing of redlock in their place")
{
    five_masters masters;
    struct closed_streams
    {
        std::string how;
        std::set<std::string> open;
    };
    for (const auto& [how, open] :
         {closed_streams{"<&-", {"1", "2"}}, closed_streams{">&-", {"0", "2"}},
          closed_streams{"2>&-", {"0", "1"}}, closed_streams{"<&- >&- 2>&-", {}}})
    {
        CAPTURE(how);
        named_pipe from;
        const command_run run{
            run_shell(
                fmt::format("sh -c 'ls /proc/$PPID/fd >{0}; echo end >{0}'; exit 7", from.path()),
                {"-v", "--ttl", "60s"}),
            masters.environment(),
            {},
            "exec \"$@\" " + how};
        std::set<std::string> found;
        for (std::string line = from.line(); line != "end"; line = from.line())
        {
            found.insert(line);
        }
        CHECK(found == open);
        CHECK(run.wait() == process_end{.exit_code = 7});
        CHECK(run.output().empty());
        CHECK(masters.keys() == 0);
    }
}

TEST_CASE("streams: redlock leaves stdin to its command, and the rest to the next program")
{
    five_masters masters;
    const command_run run{
        run_shell("read line; echo got $line"),
        masters.environment(),
        {},
        "printf 'one\\ntwo\\n' | { \"$@\"; echo ended with $?; cat; }"};
    CHECK(run.wait() == process_end{.exit_code = 0});
    CHECK(run.output() == "got one\nended with 0\ntwo\n");
}

TEST_CASE(
    "streams: an empty environment, as in cron, gets two variables, and programs are found without PATH")
{
    five_masters masters;
    strings words{"run", "--max-hold", "1h"};
    for (const server& each : masters.servers)
    {
        words.insert(words.end(), {"--master", each.url()});
    }
    words.insert(words.end(), {"job", "--", "env"});
    const command_run run{words, {}, {}, "exec env -i \"$@\" </dev/null"};
    CHECK(run.wait() == process_end{.exit_code = 0});
    CHECK(run.errors().empty());
    std::set<std::string> names;
    for (const std::string& each : words_in(run.output()))
    {
        names.insert(each.substr(0, each.find('=')));
    }
    CHECK(names == std::set<std::string>{"REDLOCK_OWNER_ID", "REDLOCK_RESOURCE"});
    CHECK(masters.keys() == 0);
}

} // namespace redlock::test
