// SPDX-License-Identifier: BSL-1.0
// redlock status, and the output of -v.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <regex>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

bool matches(const std::string& text, const std::string& pattern)
{
    return std::regex_search(text, std::regex{pattern});
}

} // namespace

TEST_CASE("status: shows the owner, the remaining time, and whether a quorum holds the resource")
{
    five_masters masters;
    const command_run free{{"status", "job"}, masters.environment()};
    CHECK(free.wait() == process_end{.exit_code = 1});
    CHECK(free.output().starts_with(masters.any().url() + "  free\n"));
    CHECK(matches(free.output(), "\n'job' isn't held: .*; 5 answered\n$"));

    client holder{unhurried(masters.servers)};
    holder.wait_for_masters();
    redlock::lease held = holder.win("job");
    for (server& each : masters.servers)
    {
        REQUIRE(becomes(each, "lock:job", held.owner_id()));
    }
    masters.servers[4].kill();
    const command_run shown{{"status", "job"}, masters.environment()};
    CHECK(shown.wait() == process_end{.exit_code = 0});
    const std::string owner{held.owner_id()};
    CHECK(matches(
        shown.output(), fmt::format("^{}  held by {}, for another [0-9.]+ s\n", masters.any().url(), owner)));
    CHECK(matches(shown.output(), fmt::format("\n{}  no answer: .+\n", masters.servers[4].url())));
    CHECK(matches(
        shown.output(),
        fmt::format(
            "\n'job' is held by {} on 4 of 5 masters \\(quorum 3\\), for at least another [0-9.]+ s\n$",
            owner)));

    masters.servers[3].kill();
    masters.servers[2].kill();
    const command_run unknown{{"status", "job"}, masters.environment()};
    CHECK(unknown.wait() == process_end{.exit_code = 69});
    CHECK(
        matches(unknown.output(), "\n'job': unknown, since only 2 of 5 masters answered \\(quorum 3\\)\n$"));
}

TEST_CASE("status: --json is one valid object for any resource and owner", "[scenario-51]")
{
    five_masters masters;
    masters.any().command({"SET", "x:a\"b\\c\n\xff\xc3\xa9", "stranger\"\\"});
    const command_run shown{
        {"status", "--json", "--prefix", "x:", "a\"b\\c\n\xff\xc3\xa9"}, masters.environment()};
    CHECK(shown.wait() == process_end{.exit_code = 1});
    const std::string text = shown.output();
    CHECK(text.starts_with(
        "{\"resource\":\"a\\\"b\\\\c\\n\xef\xbf\xbd\xc3\xa9\",\"held\":false,\"owner_id\":null,\"held_on\":0,"
        "\"held_for_ms\":null,\"answered\":5,\"quorum\":3,\"masters\":[{\"master\":\"" +
        masters.any().url() +
        "\",\"answered\":true,\"has_key\":true,\"owner_id\":\"stranger\\\"\\\\\",\"expires_in_ms\":null,"
        "\"error\":null,"
        "\"detail\":null},"));
    CHECK(text.ends_with("]}\n"));
    CHECK(std::count(text.begin(), text.end(), '\n') == 1);

    for (server& each : masters.servers)
    {
        each.command({"SET", "lock:job", "me", "PX", "600000"});
    }
    masters.servers[4].kill();
    const command_run held{{"status", "--json", "job"}, masters.environment()};
    CHECK(held.wait() == process_end{.exit_code = 0});
    CHECK(matches(
        held.output(), "^\\{\"resource\":\"job\",\"held\":true,\"owner_id\":\"me\",\"held_on\":4,"
                       "\"held_for_ms\":[0-9]+,\"answered\":4,\"quorum\":3,"));
    CHECK(matches(
        held.output(), fmt::format(
                           "\\{{\"master\":\"{}\",\"answered\":false,\"has_key\":false,\"owner_id\":null,"
                           "\"expires_in_ms\":null,"
                           "\"error\":\".+\",\"detail\":null\\}}\\]\\}}\n$",
                           masters.servers[4].url())));
}

TEST_CASE("status: a resource is held for as long as a quorum keeps its key")
{
    five_masters masters;
    for (const std::size_t each : {0U, 1U, 2U, 3U})
    {
        // Of 100, 200, 300 and 400 million milliseconds, three masters keep it for 200.
        masters.servers[each].command({"SET", "lock:job", "me", "PX", std::to_string(each + 1) + "00000000"});
    }
    const command_run shown{{"status", "--json", "job"}, masters.environment()};
    CHECK(shown.wait() == process_end{.exit_code = 0});
    CHECK(matches(shown.output(), "\"held_for_ms\":(1[0-9]{8}|200000000),"));
}

TEST_CASE("status: shows keys that are not locks, and that they prevent locking", "[status][scenario-92]")
{
    five_masters masters;
    for (server& each : masters.servers)
    {
        each.command({"HSET", "lock:job", "field", "1"});
    }
    masters.any().command({"DEL", "lock:job"});
    masters.any().command({"SET", "lock:job", ""});
    const command_run shown{{"status", "job"}, masters.environment()};
    CHECK(shown.wait() == process_end{.exit_code = 1});
    CHECK(shown.output().starts_with(
        masters.any().url() + "  has an empty key, which is not a lock, without expiry\n"));
    CHECK(matches(
        shown.output(), masters.servers[1].url() +
                            "  has a key that is not a lock \\(\"WRONGTYPE .*\"\\), without expiry\n"));
    CHECK(matches(
        shown.output(),
        "\n'job' isn't held, and can't be locked while 5 masters have a key for it: .*; 5 answered\n$"));
}

TEST_CASE("run: -v reports each event with the time since the start")
{
    five_masters masters;
    masters.servers[4].kill();
    named_pipe from;
    named_pipe to;
    const command_run held{
        run_shell(fmt::format("echo $$ >{}; read line <{}", from.path(), to.path()), {"-v", "--ttl", "2s"}),
        masters.environment()};
    const std::string child = from.line();
    held.wait_for_error_line(masters.any(), "extended, valid for ");
    to.write("end");
    CHECK(held.wait() == process_end{.exit_code = 0});
    const std::string errors = held.errors();
    const std::string time = "redlock: \\[ +[0-9]+\\.[0-9]{3} s\\] ";
    CHECK(matches(errors, time + masters.any().url() + " is up\n"));
    CHECK(matches(errors, time + masters.servers[4].url() + " is down: .+\n"));
    CHECK(matches(errors, time + "acquire: success: [345] granted, .+\n"));
    CHECK(matches(errors, time + "the command runs as process " + child + "\n"));
    CHECK(matches(errors, time + "extended, valid for [0-9.]+ s\n"));
    CHECK(matches(errors, time + "the command has ended with 0\n"));
    CHECK(matches(errors, time + "released\n"));
}

TEST_CASE("run: -v reports a round only if its outcome differs from the previous one")
{
    five_masters masters;
    client other{unhurried(masters.servers)};
    other.wait_for_masters();
    redlock::lease theirs = other.win("job");
    const command_run waits{run_shell("exit 8", {"-v", "--wait", "unlimited"}), masters.environment()};
    waits.wait_for_error_line(masters.any(), "acquire: held by another");
    server& any = masters.any();
    for (int rounds = 0; rounds < 3; ++rounds)
    {
        any.command({"CONFIG", "RESETSTAT"});
        REQUIRE(comes_true(
            any,
            [&] {
                return any.command({"INFO", "commandstats"}).text.find("cmdstat_set:") != std::string::npos;
            }));
    }
    CHECK_FALSE(release(theirs).error);
    CHECK(waits.wait() == process_end{.exit_code = 8});
    const std::string errors = waits.errors();
    const std::size_t first = errors.find("acquire: held by another");
    CHECK(errors.find("acquire: held by another", first + 1) == std::string::npos);
    CHECK(errors.find("acquire: success") != std::string::npos);
}

} // namespace redlock::test
