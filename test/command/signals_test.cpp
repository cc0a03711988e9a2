// SPDX-License-Identifier: BSL-1.0
// redlock run: forwarded signals, stops, and the death of redlock itself.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>

#include <csignal>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

/// redlock as a job of a shell without a terminal, which could continue it. Ends with redlock's exit code.
class command_in_job
{
  public:
    command_in_job(five_masters& masters, const strings& arguments)
        : masters_{masters},
          shell_{words(arguments), directory_.path() + "/output"},
          pid_{std::stoi(from_.line())}
    {
    }

    void signal(int number) const { ::kill(pid_, number); }
    bool stops()
    {
        return comes_true(masters_.any(), [this] { return state_of(pid_) == "T"; });
    }
    bool goes_on()
    {
        return comes_true(masters_.any(), [this] { return state_of(pid_) != "T"; });
    }
    int exit_code()
    {
        REQUIRE(shell_.wait_for_end(patience));
        return std::stoi(from_.line());
    }
    std::string output() const { return text_of(directory_.path() + "/output"); }
    std::string errors() const { return text_of(directory_.path() + "/errors"); }

  private:
    strings words(const strings& arguments) const
    {
        // The inner shell, in the same job, has no job control, so its wait ends when redlock ends, not when it stops.
        const std::string inner = fmt::format(
            R"(setpriv --pdeathsig KILL "$@" & echo $! >{0}; wait $!; echo $? >{0})", from_.path());
        const std::string script = fmt::format(
            R"(exec 2>>{}; set -m; setpriv --pdeathsig KILL bash --norc -c '{}' job "$@" & wait)",
            directory_.path() + "/errors", inner);
        strings all{"env", "REDLOCK_MASTERS=" + masters_.urls(), "setsid", "bash", "--norc", "-c", script,
                    "job"};
        all.emplace_back(REDLOCK_COMMAND);
        all.insert(all.end(), arguments.begin(), arguments.end());
        return all;
    }

    five_masters& masters_;
    temporary_directory directory_;
    named_pipe from_;
    child_process shell_;
    pid_t pid_;
};

/// Returns how many of the forwarded signals it has logged.
std::size_t forwarded(const command_in_job& held, int number)
{
    const std::string said = fmt::format("signal {} is forwarded", number);
    const std::string errors = held.errors();
    std::size_t count = 0;
    for (std::size_t at = errors.find(said); at != std::string::npos; at = errors.find(said, at + 1))
    {
        ++count;
    }
    return count;
}

} // namespace

TEST_CASE("signals: redlock leaves no core when it ends by the signal of the command")
{
    five_masters masters;
    const temporary_directory directory;
    const command_run run{
        run_shell("ulimit -c 0; kill -QUIT $$"),
        masters.environment(),
        {},
        fmt::format("ulimit -c unlimited; cd {}; exec \"$@\"", directory.path())};
    CHECK(run.wait() == process_end{.signal = SIGQUIT, .dumped = false});
    CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("signals: without a terminal, a command that stops itself by SIGSTOP is named")
{
    five_masters masters;
    const command_run run{run_shell("kill -STOP $$", {"--max-hold", "60s"}), masters.environment()};
    run.wait_for_error_line(masters.any(), "the command is stopped; the lock is still held (kill -CONT ");
    const std::string told = run.errors();
    const std::string_view before = "kill -CONT ";
    ::kill(std::stoi(told.substr(told.find(before) + before.size())), SIGCONT);
    CHECK(run.wait() == process_end{.exit_code = 0});
    CHECK(masters.keys() == 0);
}

TEST_CASE("signals: are forwarded to the command")
{
    five_masters masters;
    named_pipe from;
    const std::string script = fmt::format(
        "for s in INT TERM HUP QUIT USR1 USR2 WINCH; do trap \"echo $s >{0}\" $s; done; "
        "trap 'exit 9' URG; echo $$ >{0}; while :; do sleep 0.05; done",
        from.path());
    const command_run held{run_shell(script), masters.environment()};
    const pid_t child = std::stoi(from.line());
    const std::vector<std::pair<int, std::string>> signals{
        {SIGINT, "INT"},   {SIGTERM, "TERM"}, {SIGHUP, "HUP"},    {SIGQUIT, "QUIT"},
        {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}, {SIGWINCH, "WINCH"}};
    for (const auto& [number, name] : signals)
    {
        held.signal(number);
        CHECK(from.line() == name);
    }
    ::kill(child, SIGURG);
    CHECK(held.wait() == process_end{.exit_code = 9});
    CHECK(masters.keys() == 0);
}

TEST_CASE("signals: without a terminal, the whole group of the command gets a forwarded signal")
{
    five_masters masters;
    named_pipe from;
    named_pipe never;
    const command_run held{
        run_shell(fmt::format("cat {} & echo $! >{}; wait", never.path(), from.path())),
        masters.environment()};
    const pid_t other = std::stoi(from.line());
    held.signal(SIGTERM);
    CHECK(held.wait() == process_end{.exit_code = -1, .signal = SIGTERM});
    CHECK(has_ended(other, 10s));
    CHECK(masters.keys() == 0);
}

TEST_CASE("signals: are forwarded to a command that has left its process group")
{
    five_masters masters;
    named_pipe from;
    const command_run run{
        {"run", "--max-hold", "1h", "job", "--", "perl", "-e",
         fmt::format(
             "setpgrp(0, getpgrp(getppid)); open(F, '>', '{}'); print F \"$$\\n\"; close(F); sleep 1000",
             from.path())},
        masters.environment()};
    const pid_t child = std::stoi(from.line());
    REQUIRE(::getpgid(child) == ::getpgid(run.pid()));
    run.signal(SIGTERM);
    CHECK(run.wait() == process_end{.exit_code = -1, .signal = SIGTERM});
}

TEST_CASE("signals: a rare signal ends the command and then redlock, and leaves no key")
{
    five_masters masters;
    for (const int number : {SIGALRM, SIGVTALRM, SIGIO, SIGPWR, SIGSTKFLT, SIGRTMIN})
    {
        named_pipe from;
        const command_run held{
            run_shell(fmt::format("echo $$ >{}; exec sleep 1000", from.path())), masters.environment()};
        const pid_t child = std::stoi(from.line());
        held.signal(number);
        CHECK(held.wait() == process_end{.exit_code = 128 + number});
        CHECK(has_ended(child, 0ms));
        CHECK(masters.keys() == 0);
    }
}

TEST_CASE(
    "signals: SIGTSTP stops the command and redlock, and SIGCONT continues both while the lease is valid")
{
    five_masters masters;
    named_pipe from;
    named_pipe to;
    command_in_job held{
        masters, run_shell(
                     fmt::format("trap '' USR1; echo $$ >{}; read line <{}; exit 8", from.path(), to.path()),
                     {"-v", "--ttl", "60s"})};
    const pid_t child = std::stoi(from.line());
    for (int time = 0; time < 3; ++time)
    {
        held.signal(SIGTSTP);
        REQUIRE(held.stops());
        CHECK(state_of(child) == "T");
        held.signal(SIGCONT);
        REQUIRE(held.goes_on());
        REQUIRE(comes_true(masters.any(), [&] { return state_of(child) != "T"; }));
    }
    // A later stop of the command alone doesn't stop redlock.
    ::kill(child, SIGSTOP);
    REQUIRE(comes_true(masters.any(), [&] { return state_of(child) == "T"; }));
    for (std::size_t count = 1; count <= 2; ++count)
    {
        // The second one comes after redlock has noticed the stop.
        held.signal(SIGUSR1);
        REQUIRE(comes_true(masters.any(), [&] { return forwarded(held, SIGUSR1) == count; }));
    }
    ::kill(child, SIGCONT);
    to.write("end");
    CHECK(held.exit_code() == 8);
}

TEST_CASE("signals: a SIGCONT that follows the command's stop isn't discarded by redlock's own stop")
{
    five_masters masters;
    named_pipe from;
    named_pipe to;
    command_in_job held{
        masters, run_shell(
                     fmt::format("echo $$ >{}; read line <{}; exit 8", from.path(), to.path()),
                     {"-v", "--ttl", "60s"})};
    const pid_t child = std::stoi(from.line());
    const auto is_stopped = [&] { return state_of(child) == "T"; };
    // redlock finds the command's stop and the SIGCONT at the same moment.
    held.signal(SIGSTOP);
    REQUIRE(held.stops());
    ::kill(child, SIGTSTP);
    REQUIRE(comes_true(masters.any(), is_stopped));
    held.signal(SIGCONT);
    const auto says = [&](std::string_view part) { return held.errors().find(part) != std::string::npos; };
    REQUIRE(comes_true(masters.any(), [&] { return says("] continued") || says("stopped together"); }));
    REQUIRE_FALSE(says("stopped together"));
    to.write("end");
    CHECK(held.exit_code() == 8);
}

TEST_CASE("signals: a stop during the grace stops neither redlock nor the command")
{
    five_masters masters;
    named_pipe from;
    named_pipe never;
    // The shell mustn't start processes meanwhile: between vfork and exec a stop isn't reported.
    const std::string script = fmt::format(
        "(trap '' TERM; exec cat {1}) & trap 'echo told >{0}' TERM; trap 'echo continued' CONT; trap 'exit "
        "3' USR1; "
        "echo $$ >{0}; while :; do wait; done",
        from.path(), never.path());
    command_in_job held{
        masters, run_shell(script, {"-v", "--ttl", "60s", "--grace", "15s", "--max-hold", "2s"})};
    from.line();
    CHECK(from.line() == "told");
    const auto stops = [&] { return held.errors().find("stopped together") != std::string::npos; };
    // The loss has continued the command once.
    for (const std::string_view continued : {"continued\n", "continued\ncontinued\n"})
    {
        const auto is_continued = [&] { return held.output().starts_with(continued); };
        REQUIRE(comes_true(masters.any(), [&] { return is_continued() || stops(); }));
        REQUIRE_FALSE(stops());
        held.signal(SIGTSTP);
    }
    held.signal(SIGUSR1);
    CHECK(held.exit_code() == 77);
    CHECK(masters.keys() == 0);
}

TEST_CASE("signals: a command that stops itself with SIGTSTP stops redlock")
{
    five_masters masters;
    command_in_job held{masters, run_shell("kill -TSTP $$; exit 8", {"--ttl", "60s"})};
    REQUIRE(held.stops());
    held.signal(SIGCONT);
    CHECK(held.exit_code() == 8);
}

TEST_CASE("signals: SIGTSTP is ignored if no shell could continue redlock")
{
    five_masters masters;
    named_pipe to;
    // redlock leads a session, as under cron and systemd.
    const command_run held{
        run_shell(fmt::format("read line <{}; exit 8", to.path()), {"-v"}), masters.environment()};
    held.wait_for_error_line(masters.any(), "the command runs as process");
    held.signal(SIGTSTP);
    held.wait_for_error_line(masters.any(), "is ignored: no shell could continue redlock");
    to.write("end");
    CHECK(held.wait() == process_end{.exit_code = 8});

    client other{unhurried(masters.servers)};
    other.wait_for_masters();
    redlock::lease theirs = other.win("job");
    const command_run waits{run_shell("exit 8", {"--wait", "unlimited", "-v"}), masters.environment()};
    waits.wait_for_error_line(masters.any(), "acquire: held by another");
    waits.signal(SIGTSTP);
    waits.wait_for_error_line(masters.any(), "is ignored: no shell could continue redlock");
    CHECK_FALSE(release(theirs).error);
    CHECK(waits.wait() == process_end{.exit_code = 8});
}

TEST_CASE("signals: a terminal that is resized ends neither the wait for the lock nor that for the release")
{
    five_masters masters;
    {
        client other{unhurried(masters.servers)};
        other.wait_for_masters();
        redlock::lease theirs = other.win("job");
        const command_run waits{run_shell("exit 8", {"--wait", "unlimited", "-v"}), masters.environment()};
        waits.wait_for_error_line(masters.any(), "acquire: held by another");
        waits.signal(SIGWINCH);
        CHECK_FALSE(release(theirs).error);
        CHECK(waits.wait() == process_end{.exit_code = 8});
    }
    const command_run run{
        run_shell(masters.stop_of_quorum() + "; exit 8", {"-v", "--ttl", "60s"}), masters.environment()};
    run.wait_for_error_line(masters.servers.back(), "the command has ended with 8");
    run.signal(SIGWINCH);
    masters.resume_quorum();
    CHECK(run.wait() == process_end{.exit_code = 8});
    CHECK(run.errors().find("not waiting for the masters any longer") == std::string::npos);
}

TEST_CASE("signals: a stopped command keeps the lock if no shell could continue redlock, with a message")
{
    five_masters masters;
    named_pipe from;
    const command_run held{
        run_shell(fmt::format("echo $$ >{}; kill -TSTP $$; exit 8", from.path())), masters.environment()};
    const pid_t child = std::stoi(from.line());
    held.wait_for_error_line(
        masters.any(), fmt::format(
                           "redlock: 'job': the command is stopped; the lock is still held (kill -CONT {} "
                           "continues the command)\n",
                           child));
    CHECK(masters.keys() >= 3);
    ::kill(child, SIGCONT);
    CHECK(held.wait() == process_end{.exit_code = 8});
    CHECK(masters.keys() == 0);
}

TEST_CASE("signals: as the first process of a container, redlock doesn't stop with its command, and reports "
          "the stop")
{
    five_masters masters;
    pseudo_terminal screen;
    named_pipe to;
    const std::string stops =
        fmt::format("sh -c 'read line <{}; kill -CONT $PPID' & kill -STOP $$; wait; exit 8", to.path());
    std::vector<std::string> words{"unshare", "--pid", "--fork", "--kill-child"};
    // Root needs no user namespace, and can't make one in a chroot.
    if (::geteuid() != 0)
    {
        words.emplace_back("--map-root-user");
    }
    for (const char* const each :
         {REDLOCK_COMMAND, "run", "--max-hold", "1h", "job", "--", "sh", "-c", stops.c_str()})
    {
        words.emplace_back(each);
    }
    const program_at_terminal run{std::move(words), masters.environment(), screen};
    screen.wait_for("'job': the command is stopped; the lock is still held");
    to.write("go on");
    CHECK(run.wait() == process_end{.exit_code = 8});
    CHECK(masters.keys() == 0);
}

TEST_CASE(
    "signals: a command stopped for longer than --ttl is killed, and the key of the next owner stays",
    "[scenario-1]")
{
    five_masters masters;
    named_pipe from;
    named_pipe to;
    command_in_job held{
        masters, run_shell(
                     fmt::format("echo $$ >{}; read line <{}; echo worked", from.path(), to.path()),
                     {"--ttl", "2s", "-v"})};
    const pid_t child = std::stoi(from.line());
    held.signal(SIGTSTP);
    REQUIRE(held.stops());
    to.write("work");
    client other{unhurried(masters.servers)};
    other.wait_for_masters();
    const acquired won = other.acquire("job", {.ttl = long_ttl, .wait = no_limit});
    REQUIRE_FALSE(won.error);
    held.signal(SIGCONT);
    CHECK(held.exit_code() == 76);
    CHECK(has_ended(child, 0ms));
    CHECK(held.output().empty());
    CHECK(held.errors().find("stopped together with the command; in ") != std::string::npos);
    CHECK(held.errors().find("continued") == std::string::npos);
    const redlock::lease& theirs = won.lease;
    std::size_t kept = 0;
    for (server& each : masters.servers)
    {
        kept += each.command({"GET", "lock:job"}) == theirs.owner_id() ? 1U : 0U;
    }
    CHECK(kept >= 3);
}

TEST_CASE(
    "signals: ends with 76 if the command ended while redlock was paused for longer than --ttl",
    "[scenario-1]")
{
    five_masters masters;
    named_pipe from;
    named_pipe to;
    const command_run held{
        run_shell(fmt::format("echo $$ >{}; read line <{}; exit 0", from.path(), to.path()), {"--ttl", "2s"}),
        masters.environment()};
    const pid_t child = std::stoi(from.line());
    held.signal(SIGSTOP);
    held.wait_for_stop();
    client other{unhurried(masters.servers)};
    other.wait_for_masters();
    const acquired won = other.acquire("job", {.ttl = long_ttl, .wait = no_limit});
    REQUIRE_FALSE(won.error);
    to.write("end");
    REQUIRE(has_ended(child));
    held.signal(SIGCONT);
    CHECK(held.wait() == process_end{.exit_code = 76});
    CHECK(
        held.errors().find("'job': the lock had expired before redlock saw the end of the command\n") !=
        std::string::npos);
    CHECK(won.lease.valid());
}

TEST_CASE("signals: a command that ended before the validity did keeps its exit code, if redlock was paused")
{
    five_masters masters;
    named_pipe from;
    named_pipe to;
    const command_run held{
        run_shell(
            fmt::format("echo $$ >{}; read line <{}; exit 9", from.path(), to.path()),
            {"--ttl", "60s", "--max-hold", "1s"}),
        masters.environment()};
    const pid_t child = std::stoi(from.line());
    held.signal(SIGSTOP);
    held.wait_for_stop();
    // As on a machine so slow that --max-hold was over before the stop.
    const bool was_told = held.errors().find("--max-hold was reached") != std::string::npos;
    to.write("end");
    REQUIRE(has_ended(child));
    // redlock finds the end of the command and that of --max-hold at the same moment.
    const auto is_over = [end = std::chrono::steady_clock::now() + 1s]
    { return std::chrono::steady_clock::now() > end; };
    REQUIRE(comes_true(masters.any(), is_over));
    held.signal(SIGCONT);
    const process_end found = held.wait();
    if (!was_told)
    {
        CHECK(found == process_end{.exit_code = 9});
        CHECK(held.errors().empty());
    }
}

TEST_CASE("signals: the command is killed if redlock is stopped and then killed")
{
    five_masters masters;
    named_pipe from;
    command_in_job held{masters, run_shell(fmt::format("echo $$ >{}; exec sleep 1000", from.path()))};
    const pid_t child = std::stoi(from.line());
    held.signal(SIGTSTP);
    REQUIRE(held.stops());
    held.signal(SIGKILL);
    CHECK(has_ended(child));
}

TEST_CASE("signals: the command is killed if redlock is killed")
{
    five_masters masters;
    named_pipe from;
    command_run held{
        run_shell(fmt::format("trap '' HUP TERM INT; echo $$ >{}; exec sleep 1000", from.path())),
        masters.environment()};
    const pid_t child = std::stoi(from.line());
    REQUIRE_FALSE(has_ended(child, 0ms));
    held.kill();
    CHECK(has_ended(child));
}

TEST_CASE("signals: a stopped command is continued to end at a loss")
{
    five_masters masters;
    named_pipe from;
    const command_run held{
        run_shell(
            fmt::format(
                "trap 'echo ended; exit 0' TERM; echo $$ >{}; while :; do sleep 0.1; done", from.path()),
            {"--max-hold", "1s"}),
        masters.environment()};
    const pid_t child = std::stoi(from.line());
    // Not stopped by a terminal, so redlock continues without it.
    ::kill(child, SIGSTOP);
    CHECK(held.wait() == process_end{.exit_code = 77});
    CHECK(held.output() == "ended\n");
}

} // namespace redlock::test
