// SPDX-License-Identifier: BSL-1.0
// redlock status, and the output of -v.
#include "command/diagnosed.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

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

/// The key of a resource on one master.
struct key_state
{
    std::string owner;          ///< Empty if there is no key.
    std::int64_t lasts_for = 0; ///< In milliseconds; 0 for a key that never expires.
};

/// Returns the remaining time of the key by the master's own clock, negative if there is none.
std::int64_t remaining(server& master)
{
    return master.command({"PTTL", "lock:job"}).integer;
}

/// What status says of the remaining time on one master, or of all, and the master that knows it.
struct shown_time
{
    std::string in_json; ///< "null" for none.
    std::string in_text; ///< "for another 12.3 s" without its first words, or "without expiry".
    std::optional<std::size_t> master;
};

/// Five masters with these keys, and what status says of them.
struct status_of_keys
{
    explicit status_of_keys(const std::vector<key_state>& keys)
    {
        for (std::size_t index = 0; index < keys.size(); ++index)
        {
            const auto& [owner, lasts_for] = keys[index];
            if (owner.empty())
            {
                continue;
            }
            masters.servers[index].command({"SET", "lock:job", owner});
            if (lasts_for > 0)
            {
                masters.servers[index].command({"PEXPIRE", "lock:job", std::to_string(lasts_for)});
            }
        }
    }

    void look()
    {
        const auto note = [this](std::vector<std::int64_t>& into)
        {
            into.clear();
            for (server& each : masters.servers)
            {
                into.push_back(each.running() ? remaining(each) : -2);
            }
        };
        note(before);
        const command_run in_text{{"status", "job"}, masters.environment()};
        end = in_text.wait();
        const command_run in_json{{"status", "--json", "job"}, masters.environment()};
        CHECK(in_json.wait() == end);
        note(after);
        text = in_text.output();
        json = read_json(in_json.output());
    }

    /// Checks a remaining time against the one that the master had before and after.
    void check(const shown_time& shown) const
    {
        CAPTURE(shown.in_json, shown.in_text);
        if (!shown.master || before.at(*shown.master) < 0)
        {
            CHECK(shown.in_json == "null");
            CHECK(shown.in_text == "without expiry");
            return;
        }
        const std::int64_t longest = before.at(*shown.master);
        const std::int64_t shortest = after.at(*shown.master);
        REQUIRE(matches(shown.in_json, "^[0-9]+$"));
        CHECK(std::stoll(shown.in_json) <= longest);
        CHECK(std::stoll(shown.in_json) >= shortest);
        REQUIRE(matches(shown.in_text, "^[0-9]+\\.[0-9] s$"));
        // To a tenth of a second, never more than is left.
        const auto tenths = std::llround(std::stod(shown.in_text) * 10);
        CHECK(tenths <= longest / 100);
        CHECK(tenths >= shortest / 100);
    }

    /// Checks the lines of the masters, and the entries of the same masters in the JSON.
    void check_masters(const std::vector<key_state>& keys) const
    {
        for (std::size_t index = 0; index < keys.size(); ++index)
        {
            CAPTURE(index);
            const std::string url = masters.servers[index].url();
            const tree& one = master_at(json, index);
            CHECK(one.get<std::string>("master") == url);
            if (before[index] == -2)
            {
                const bool answers = masters.servers[index].running();
                CHECK(one.get<bool>("answered") == answers);
                CHECK_FALSE(one.get<bool>("has_key"));
                CHECK(one.get<std::string>("expires_in_ms") == "null");
                CHECK(matches(text, url + (answers ? "  free\n" : "  no answer: .+\n")));
                continue;
            }
            CHECK(one.get<bool>("has_key"));
            CHECK(one.get<std::string>("owner_id") == keys[index].owner);
            std::smatch found;
            const std::regex line{url + "  held by (\\w+), (?:for another )?(.*)\n"};
            REQUIRE(std::regex_search(text, found, line));
            CHECK(found[1] == keys[index].owner);
            check({one.get<std::string>("expires_in_ms"), found[2], index});
        }
    }

    /// Checks that the owner "me" holds the resource on so many masters, for as long as this one says.
    void check_held(std::size_t on, std::size_t lasting) const
    {
        CHECK(end == process_end{.exit_code = 0});
        CHECK(json.get<bool>("held"));
        CHECK(json.get<std::string>("owner_id") == "me");
        CHECK(json.get<std::size_t>("held_on") == on);
        std::smatch found;
        const std::regex last{"\n'job' is held by me on ([0-9]) of 5 masters \\(quorum 3\\), (?:for at least "
                              "another )?(.*)\n$"};
        REQUIRE(std::regex_search(text, found, last));
        CHECK(found[1] == std::to_string(on));
        check({json.get<std::string>("held_for_ms"), found[2], lasting});
    }

    /// Checks that no owner holds it, and the words after "'job' isn't held".
    void check_not_held(std::string_view words) const
    {
        CHECK(end == process_end{.exit_code = 1});
        CHECK_FALSE(json.get<bool>("held"));
        CHECK(json.get<std::string>("owner_id") == "null");
        CHECK(json.get<int>("held_on") == 0);
        CHECK(json.get<std::string>("held_for_ms") == "null");
        CHECK(text.ends_with(fmt::format("\n'job' isn't held{}\n", words)));
    }

    five_masters masters;
    std::vector<std::int64_t> before; // The answers to PTTL: -1 without expiry, -2 without a key.
    std::vector<std::int64_t> after;
    process_end end;
    std::string text;
    tree json;
};

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

TEST_CASE("status: every figure is that of the masters' own answers", "[status]")
{
    constexpr std::int64_t unit = 100'054'900; // Each digit of its multiples differs from the next.
    SECTION("held on a quorum for as long as the quorum-th longest key, whoever else has one")
    {
        const std::vector<key_state> keys{{"you", 9 * unit}, {"me", 3 * unit}, {"me"}, {"me", 2 * unit}, {}};
        status_of_keys all{keys};
        all.look();
        all.check_masters(keys);
        all.check_held(3, 3);
        CHECK(all.json.get<int>("answered") == 5);
        CHECK(all.json.get<int>("quorum") == 3);
    }
    SECTION("held on more than a quorum, with a dead master")
    {
        const std::vector<key_state> keys{
            {"me", unit}, {"me", 4 * unit}, {"me", 3 * unit}, {"me", 2 * unit}, {}};
        status_of_keys all{keys};
        all.masters.servers[4].kill();
        all.look();
        all.check_masters(keys);
        all.check_held(4, 3);
        CHECK(all.json.get<int>("answered") == 4);
    }
    SECTION("held permanently")
    {
        const std::vector<key_state> keys{{"me"}, {"me", unit}, {"me"}, {}, {"me"}};
        status_of_keys all{keys};
        all.look();
        all.check_masters(keys);
        all.check_held(4, 0);
    }
    SECTION("not held, and free on a quorum if the dead master is counted")
    {
        const std::vector<key_state> keys{{"you", unit}, {"me", 3 * unit}, {}, {}, {}};
        status_of_keys all{keys};
        all.masters.servers[4].kill();
        all.look();
        all.check_masters(keys);
        all.check_not_held(": no owner has it on a quorum (3 of 5 masters); 4 answered");
    }
    SECTION("not held, and not to be had")
    {
        const std::vector<key_state> keys{{"you", unit}, {"me", 3 * unit}, {"me"}, {"them"}, {}};
        status_of_keys all{keys};
        all.look();
        all.check_masters(keys);
        all.check_not_held(
            ", and can't be locked while 4 masters have a key for it: no owner has it on a quorum "
            "(3 of 5 masters); 5 answered");
    }
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
    for (const std::size_t dead : {2U, 3U, 4U})
    {
        masters.servers[dead].kill();
    }
    const command_run waits{run_shell("exit 8", {"-v", "--wait", "unlimited"}), masters.environment()};
    waits.wait_for_error_line(masters.any(), "acquire: no quorum");
    server& any = masters.any();
    for (int rounds = 0; rounds < 3; ++rounds)
    {
        any.command({"CONFIG", "RESETSTAT"});
        // Counts those in scripts as well.
        REQUIRE(comes_true(
            any,
            [&] {
                return any.command({"INFO", "commandstats"}).text.find("cmdstat_set:") != std::string::npos;
            }));
    }
    waits.signal(SIGTERM);
    CHECK(waits.wait() == process_end{.signal = SIGTERM});
    const std::string errors = waits.errors();
    const std::size_t first = errors.find("acquire: no quorum");
    CHECK(errors.find("acquire: no quorum", first + 1) == std::string::npos);
}

TEST_CASE("run: -v reports a round again if only the reason of a master differs", "[verbose]")
{
    five_masters masters;
    for (const std::size_t hung : {2U, 3U, 4U})
    {
        masters.servers[hung].stop();
    }
    const command_run waits{run_shell("exit 8", {"-v", "--wait", "unlimited"}), masters.environment()};
    waits.wait_for_error_line(masters.any(), "acquire: no quorum");
    const auto says_refused = [&]
    { return matches(waits.errors(), "\n  " + masters.servers[2].url() + ": Connection refused"); };
    CHECK_FALSE(says_refused());
    masters.servers[2].kill();
    CHECK(comes_true(masters.any(), says_refused));
    waits.signal(SIGTERM);
    CHECK(waits.wait() == process_end{.signal = SIGTERM});
}

} // namespace redlock::test
