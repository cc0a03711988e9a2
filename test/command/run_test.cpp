// SPDX-License-Identifier: BSL-1.0
// redlock run: what the command inherits, and how its end is reported.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;

TEST_CASE("run: ends with the exit code of the command, and leaves no key")
{
    five_masters masters;
    const command_run seven{run_shell("exit 7"), masters.environment()};
    CHECK(seven.wait() == process_end{.exit_code = 7});
    CHECK(seven.errors().empty());
    CHECK(masters.keys() == 0);

    const command_run killed{run_shell("kill -USR1 $$"), masters.environment()};
    CHECK(killed.wait() == process_end{.exit_code = 128 + SIGUSR1});
    CHECK(masters.keys() == 0);

    const command_run fine{run_shell("echo out; echo err >&2; cat"), masters.environment()};
    CHECK(fine.wait() == process_end{.exit_code = 0});
    CHECK(fine.output() == "out\n");
    CHECK(fine.errors() == "err\n");
}

TEST_CASE("run: passes the resource and the owner id to the command, and excludes other clients")
{
    five_masters masters;
    named_pipe from;
    named_pipe to;
    const command_run held{
        run_shell(fmt::format(
            "echo $REDLOCK_RESOURCE $REDLOCK_OWNER_ID >{}; read line <{}", from.path(), to.path())),
        {"REDLOCK_MASTERS=" + masters.urls(), "REDLOCK_OWNER_ID=of another client"}};
    const std::string told = from.line();
    REQUIRE(told.starts_with("job "));
    const std::string owner = told.substr(4);
    CHECK(owner.size() >= 32);
    const auto has_it = [&](server& each) { return each.command({"GET", "lock:job"}) == owner; };
    CHECK(std::count_if(masters.servers.begin(), masters.servers.end(), has_it) >= 3);

    const command_run other{run_shell("exit 0", {"--try"}), masters.environment()};
    CHECK(other.wait() == process_end{.exit_code = 75});
    CHECK(other.errors().starts_with("redlock: can't lock 'job': "));
    CHECK(other.errors().find("\n  " + masters.any().url() + ": ") != std::string::npos);

    to.write("end");
    CHECK(held.wait() == process_end{.exit_code = 0});
    CHECK(masters.keys() == 0);
}

TEST_CASE("run: the command gets three descriptors, a separate process group and no ignored signals")
{
    five_masters masters;
    named_pipe from;
    const command_run held{
        run_shell(fmt::format("echo $$ >{}; exec sleep 1000", from.path())), masters.environment()};
    const pid_t child = std::stoi(from.line());
    REQUIRE(
        comes_true(masters.any(), [&] { return text_of(fmt::format("/proc/{}/comm", child)) == "sleep\n"; }));

    // The process has its name before its libraries are loaded, each of which uses a descriptor for a moment.
    std::set<std::string> descriptors;
    const auto only_three = [&]
    {
        descriptors.clear();
        for (const auto& entry : std::filesystem::directory_iterator{fmt::format("/proc/{}/fd", child)})
        {
            descriptors.insert(entry.path().filename());
        }
        return descriptors == std::set<std::string>{"0", "1", "2"};
    };
    comes_true(masters.any(), only_three);
    CHECK(descriptors == std::set<std::string>{"0", "1", "2"});
    CHECK(::getpgid(child) == child);
    const std::string about = text_of(fmt::format("/proc/{}/status", child));
    CHECK(about.find("SigBlk:\t0000000000000000") != std::string::npos);
    CHECK(about.find("SigIgn:\t0000000000000000") != std::string::npos);

    held.signal(SIGTERM);
    CHECK(held.wait() == process_end{.exit_code = -1, .signal = SIGTERM});
}

TEST_CASE("run: a signal that was ignored at the start stays ignored, as nohup requires")
{
    five_masters masters;
    named_pipe from;
    const command_run held{
        {"run", "--max-hold", "1h", "job", "--", "sh", "-c",
         fmt::format(
             "trap '' HUP; exec {} run --max-hold 1h inner -- sh -c 'echo $$ >{}; exec sleep 1000'",
             REDLOCK_COMMAND, from.path())},
        masters.environment()};
    const pid_t child = std::stoi(from.line());
    REQUIRE(
        comes_true(masters.any(), [&] { return text_of(fmt::format("/proc/{}/comm", child)) == "sleep\n"; }));
    const std::string about = text_of(fmt::format("/proc/{}/status", child));
    CHECK(about.find("SigIgn:\t0000000000000001") != std::string::npos);
    held.signal(SIGHUP);
    held.signal(SIGTERM);
    CHECK(held.wait() == process_end{.exit_code = -1, .signal = SIGTERM});
    CHECK(masters.all_free("inner"));
}

TEST_CASE("run: a SIGPIPE that was ignored at the start stays ignored for the command")
{
    five_masters masters;
    const command_run held{
        {"run", "--max-hold", "1h", "job", "--", "sh", "-c",
         fmt::format(
             "trap '' PIPE; exec {} run --max-hold 1h inner -- grep SigIgn /proc/self/status",
             REDLOCK_COMMAND)},
        masters.environment()};
    CHECK(held.wait() == process_end{.exit_code = 0});
    CHECK(held.output() == "SigIgn:\t0000000000001000\n");
}

TEST_CASE("run: a signal that was ignored at the start doesn't end the wait for the lock")
{
    five_masters masters;
    client other{unhurried(masters.servers)};
    other.wait_for_masters();
    redlock::lease theirs = other.win("job");
    const std::string nohup = fmt::format(
        "trap '' HUP; exec {} run -v --wait unlimited --max-hold 1h job -- sh -c 'exit 8'", REDLOCK_COMMAND);
    const command_run waits{
        {"run", "--max-hold", "1h", "outer", "--", "sh", "-c", nohup}, masters.environment()};
    waits.wait_for_error_line(masters.any(), "acquire: held by another");
    waits.signal(SIGHUP);
    CHECK_FALSE(release(theirs).error);
    CHECK(waits.wait() == process_end{.exit_code = 8});
}

TEST_CASE(
    "run: ends with 127 for a missing command and with 126 for one that can't be run, and leaves no key")
{
    five_masters masters;
    const auto run = [&](const std::string& program) {
        return command_run{{"run", "--max-hold", "1h", "job", "--", program}, masters.environment()};
    };

    const command_run unknown = run("redlock-has-no-such-command");
    CHECK(unknown.wait() == process_end{.exit_code = 127});
    CHECK(unknown.errors() == "redlock: redlock-has-no-such-command: command not found\n");
    CHECK(masters.keys() == 0);

    const command_run missing = run("/nowhere/at/all");
    CHECK(missing.wait() == process_end{.exit_code = 127});
    CHECK(missing.errors() == "redlock: /nowhere/at/all: No such file or directory\n");
    CHECK(masters.keys() == 0);

    const command_run directory = run("/usr");
    CHECK(directory.wait() == process_end{.exit_code = 126});
    CHECK(directory.errors() == "redlock: /usr: Permission denied\n");
    CHECK(masters.keys() == 0);
}

TEST_CASE("run: reports how often it tried to acquire a lock that another client holds", "[run]")
{
    server master;
    master.command({"SET", "lock:job", "of another"});
    const strings environment{"REDLOCK_MASTERS=" + master.url()};
    const command_run once{run_shell("echo ran", {"--try"}), environment};
    CHECK(once.wait() == process_end{.exit_code = 75});
    CHECK(
        once.errors() == fmt::format(
                             "redlock: can't lock 'job': other clients hold the resource on too many masters "
                             "(tried once)\n  {}: held by another client\n",
                             master.url()));
    const command_run repeated{run_shell("echo ran", {"--wait", "unlimited", "-v"}), environment};
    repeated.wait_for_error_line(master, "acquire: held by another");
    master.command({"DEL", "lock:job"});
    CHECK(repeated.wait() == process_end{.exit_code = 0});
    CHECK(repeated.output() == "ran\n");
}

TEST_CASE("run: doesn't run the command without a quorum, and reports the answer of each master")
{
    five_masters masters;
    for (std::size_t index = 2; index < 5; ++index)
    {
        masters.servers[index].kill();
    }
    const command_run refused{run_shell("echo ran", {"--wait", "100ms"}), masters.environment()};
    CHECK(refused.wait() == process_end{.exit_code = 69});
    CHECK(refused.output().empty());
    CHECK(refused.errors().starts_with(
        "redlock: can't lock 'job': fewer than a quorum of the masters answered"));
    for (std::size_t index = 2; index < 5; ++index)
    {
        const std::string line = "\n  " + masters.servers[index].url() + ": ";
        CHECK(refused.errors().find(line) != std::string::npos);
    }
    // The other two masters are up. Three that refuse may decide the round before they answer.
    CHECK(refused.errors().find("no answer") == std::string::npos);
    CHECK(masters.keys() == 0);
}

TEST_CASE("run: a signal ends the wait for the lock and leaves no key")
{
    five_masters masters;
    client other{unhurried(masters.servers)};
    other.wait_for_masters();
    redlock::lease theirs = other.win("job");
    // All signals that end a program, including rare ones.
    for (const int number :
         {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
          SIGXCPU, SIGXFSZ, SIGABRT, SIGSTKFLT, SIGRTMIN, SIGRTMAX})
    {
        const command_run waits{run_shell("echo ran", {"--wait", "unlimited", "-v"}), masters.environment()};
        waits.wait_for_error_line(masters.any(), "acquire: held by another");
        waits.signal(number);
        CHECK(waits.wait() == process_end{.exit_code = -1, .signal = number});
        CHECK(waits.output().empty());
    }
    const auto is_theirs = [&](server& each) {
        return each.command({"GET", "lock:job"}) == theirs.owner_id();
    };
    CHECK(std::all_of(masters.servers.begin(), masters.servers.end(), is_theirs));
}

TEST_CASE("run: passes REDLOCK_MASTERS to the command, except with --no-inherit-masters")
{
    five_masters masters;
    const command_run nested{
        run_shell(fmt::format("exec {} run --max-hold 1h inner -- sh -c 'exit 8'", REDLOCK_COMMAND)),
        masters.environment()};
    CHECK(nested.wait() == process_end{.exit_code = 8});

    const command_run without{
        run_shell("echo \"<$REDLOCK_MASTERS>\"", {"--no-inherit-masters"}), masters.environment()};
    CHECK(without.wait() == process_end{.exit_code = 0});
    CHECK(without.output() == "<>\n");
}

TEST_CASE("run: overwrites passwords on its command line")
{
    five_masters masters;
    named_pipe from;
    const command_run held{run_shell(
        fmt::format("tr '\\0' ' ' </proc/$PPID/cmdline >{0}; echo >{0}; : secret@word", from.path()),
        {"--master", masters.servers[0].url(), "--master", masters.servers[1].url(),
         "--master=redis://me:secret@127.0.0.1:1/3"})};
    const std::string words = from.line();
    CHECK(words.find("redis://me:******@127.0.0.1:1/3") != std::string::npos);
    CHECK(words.find("secret@word") != std::string::npos);
    CHECK(held.wait() == process_end{.exit_code = 0});
}

TEST_CASE("run: warns of two addresses of one server, even if the lock is acquired")
{
    five_masters masters;
    const std::string urls = fmt::format(
        "{0},redis://localhost:{1},{2}", masters.any().url(), masters.any().port(), masters.servers[1].url());
    const command_run held{run_shell("exit 8"), {"REDLOCK_MASTERS=" + urls}};
    CHECK(held.wait() == process_end{.exit_code = 8});
    CHECK(held.errors().find("redlock: warning: redis://") != std::string::npos);
    CHECK(held.errors().find("it is the same server as another master") != std::string::npos);
    CHECK(held.errors().find("give each server once") != std::string::npos);
}

TEST_CASE("run, status: prefer --master to REDLOCK_MASTERS, and never show a password", "[scenario-52]")
{
    server_options with_password;
    with_password.password = "very/secret@word";
    const std::vector<server> servers = start_servers(3, with_password);
    strings options{"-v"};
    for (const server& each : servers)
    {
        options.insert(options.end(), {"--master", each.url()});
    }
    const command_run fine{run_shell("exit 3", options), {"REDLOCK_MASTERS=redis://127.0.0.1:1"}};
    CHECK(fine.wait() == process_end{.exit_code = 3});
    CHECK(fine.errors().find("secret") == std::string::npos);

    const command_run spaced{
        run_shell("exit 4"),
        {fmt::format("REDLOCK_MASTERS= {} , {},{}\n", servers[0].url(), servers[1].url(), servers[2].url())}};
    CHECK(spaced.wait() == process_end{.exit_code = 4});

    for (const strings& arguments :
         {strings{"run", "--max-hold", "1h", "job", "redis://:secret@127.0.0.1", "--", "true"},
          strings{"run", "--max-hold", "1h", "--mastre=redis://:secret@127.0.0.1", "job", "--", "true"},
          strings{"status", "job", "redis://:secret@127.0.0.1"},
          strings{"status", "--json=redis://:secret@127.0.0.1", "job"}})
    {
        const command_run refused{arguments};
        CHECK(refused.wait() == process_end{.exit_code = 64});
        CHECK(refused.errors().find("secret") == std::string::npos);
        CHECK(refused.output().empty());
    }
    const command_run bad{{"status", "--master", "redis://:secret@[::1", "job"}};
    CHECK(bad.wait() == process_end{.exit_code = 78});
    CHECK(bad.errors().find("secret") == std::string::npos);
}

} // namespace redlock::test
