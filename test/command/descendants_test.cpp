// SPDX-License-Identifier: BSL-1.0
// redlock run: children that end together, and processes that outlive the command.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

constexpr int several = 5;

/// Starts several processes in the background by a script, which writes their ids to a pipe. They last until they are
/// killed, at most as long as the object.
class sleepers
{
  public:
    /// Returns a script that starts them as children of its shell.
    std::string children() const
    {
        return fmt::format(
            "for i in $(seq {}); do cat {} & echo $! >{}; done; ", several, never_.path(), from_.path());
    }
    /// Returns a script that starts them in shells that end, so that redlock becomes their parent.
    std::string orphans() const
    {
        return fmt::format(
            "for i in $(seq {}); do (cat {} & echo $! >{}); done; ", several, never_.path(), from_.path());
    }
    /// Waits until they have been started.
    void wait()
    {
        while (ids_.size() < several)
        {
            ids_.push_back(std::stoi(from_.line()));
        }
    }
    void kill() const
    {
        for (const pid_t each : ids_)
        {
            ::kill(each, SIGKILL);
        }
        for (const pid_t each : ids_)
        {
            REQUIRE(has_ended(each));
        }
    }
    /// Returns true if each is in one of these states; "" if it was reaped.
    bool all_are(std::initializer_list<std::string_view> states) const
    {
        const auto is_one = [&](pid_t id)
        { return std::find(states.begin(), states.end(), state_of(id)) != states.end(); };
        return std::all_of(ids_.begin(), ids_.end(), is_one);
    }

  private:
    named_pipe from_;
    named_pipe never_;
    std::vector<pid_t> ids_;
};

/// Returns the number of processes of a session that haven't ended.
std::size_t members_of_session(pid_t session)
{
    std::size_t found = 0;
    for (const auto& each : std::filesystem::directory_iterator{"/proc"})
    {
        std::ifstream stat{each.path() / "stat"};
        std::string line;
        std::getline(stat, line);
        // The name, in brackets, may contain anything. Behind it: state, parent, group, session.
        std::istringstream fields{line.substr(std::min(line.rfind(')') + 1, line.size()))};
        char state = 0;
        pid_t parent = 0;
        pid_t group = 0;
        pid_t its_session = 0;
        fields >> state >> parent >> group >> its_session;
        found += its_session == session && state != 'Z' && state != 'X' ? 1U : 0U;
    }
    return found;
}

/// Stops redlock, so that what ends meanwhile is reported by one SIGCHLD.
void pause(const command_run& run)
{
    run.signal(SIGSTOP);
    run.wait_for_stop();
}

} // namespace

TEST_CASE("descendants: a command that ends in one SIGCHLD with orphans and inherited children is seen")
{
    five_masters masters;
    for (const bool command_first : {true, false})
    {
        CAPTURE(command_first);
        named_pipe from;
        named_pipe to;
        sleepers inherited;
        sleepers orphans;
        const std::string script =
            fmt::format("{}echo $$ >{}; read line <{}; exit 7", orphans.orphans(), from.path(), to.path());
        const command_run run{
            run_shell(script, {"-v", "--ttl", "60s"}),
            masters.environment(),
            {},
            inherited.children() + "exec \"$@\""};
        inherited.wait();
        orphans.wait();
        const pid_t child = std::stoi(from.line());
        pause(run);
        if (!command_first)
        {
            inherited.kill();
            orphans.kill();
        }
        to.write("end");
        REQUIRE(has_ended(child));
        if (command_first)
        {
            inherited.kill();
            orphans.kill();
        }
        run.signal(SIGCONT);
        CHECK(run.wait_after(child, masters.any()) == process_end{.exit_code = 7});
        CHECK(masters.keys() == 0);
    }
}

TEST_CASE("descendants: orphans that end in one SIGCHLD are all reaped, and the command runs on")
{
    five_masters masters;
    named_pipe from;
    named_pipe to;
    sleepers orphans;
    const std::string script =
        fmt::format("{}echo $$ >{}; read line <{}; exit 7", orphans.orphans(), from.path(), to.path());
    const command_run run{run_shell(script, {"-v", "--ttl", "60s"}), masters.environment()};
    orphans.wait();
    const pid_t child = std::stoi(from.line());
    pause(run);
    orphans.kill();
    CHECK(orphans.all_are({"Z"}));
    run.signal(SIGCONT);
    // SIGCHLD is read before SIGWINCH, so a zombie after several of the latter stays.
    for (int handled = 0; handled < several && !orphans.all_are({""}); ++handled)
    {
        REQUIRE(run.handles_another_signal(masters.any()));
    }
    CHECK(orphans.all_are({""}));
    CHECK_FALSE(has_ended(child, 0ms));
    to.write("end");
    CHECK(run.wait_after(child, masters.any()) == process_end{.exit_code = 7});
    CHECK(masters.keys() == 0);
}

TEST_CASE("descendants: an orphan that keeps stdout open delays neither the end nor the release, and runs on")
{
    five_masters masters;
    named_pipe from;
    named_pipe to_orphan;
    const std::string orphan =
        fmt::format("echo $$ >{0}; read line <{1}; echo late; echo done >{0}", from.path(), to_orphan.path());
    named_pipe from_child;
    const command_run run{
        run_shell(
            fmt::format("(sh -c '{}' &); echo $$ >{}; exit 7", orphan, from_child.path()),
            {"-v", "--ttl", "60s"}),
        masters.environment()};
    const pid_t child = std::stoi(from_child.line());
    const pid_t outlives = std::stoi(from.line());
    CHECK(run.wait_after(child, masters.any()) == process_end{.exit_code = 7});
    CHECK(masters.keys() == 0);
    CHECK_FALSE(has_ended(outlives, 0ms));
    to_orphan.write("work");
    CHECK(from.line() == "done");
    CHECK(run.output() == "late\n");
}

TEST_CASE(
    "descendants: a loss ends the command with all orphans at once, but not what redlock was started with")
{
    five_masters masters;
    named_pipe from;
    sleepers inherited;
    sleepers orphans;
    // They die of SIGTERM, so the long grace isn't used.
    const command_run run{
        run_shell(
            fmt::format("{}echo $$ >{}; exec sleep 1000", orphans.orphans(), from.path()),
            {"-v", "--ttl", "60s", "--grace", "15s", "--max-hold", "2s"}),
        masters.environment(),
        {},
        inherited.children() + "exec \"$@\""};
    inherited.wait();
    orphans.wait();
    const pid_t child = std::stoi(from.line());
    CHECK(run.wait_unless(masters.any(), "it hasn't ended within --grace") == process_end{.exit_code = 77});
    CHECK(has_ended(child, 0ms));
    CHECK(orphans.all_are({"Z", ""}));
    CHECK_FALSE(inherited.all_are({"Z", ""}));
    CHECK(masters.keys() == 0);
    inherited.kill();
}

TEST_CASE(
    "descendants: a process whose main thread has ended is killed at a loss, before the release",
    "[scenario-107]")
{
    five_masters masters;
    named_pipe from;
    const command_run run{
        run_shell(
            fmt::format("setsid {} {} & exec sleep 1000", WITHOUT_MAIN_THREAD, from.path()),
            {"-v", "--ttl", "2s", "--grace", "200ms", "--max-hold", "2s"}),
        masters.environment()};
    const pid_t process = std::stoi(from.line());
    CHECK(run.wait() == process_end{.exit_code = 77});
    CHECK(has_ended(process, 0ms));
    CHECK(run.errors().find("SIGKILL to the command: it hasn't ended within --grace") != std::string::npos);
    CHECK(masters.keys() == 0);
}

TEST_CASE(
    "descendants: with few descriptors, a loss ends all of them, or the command isn't started",
    "[scenario-107]")
{
    five_masters masters;
    const temporary_directory directory;
    int ended = 0;
    int refused = 0;
    for (int most = 12; most <= 26; ++most)
    {
        CAPTURE(most);
        const std::string file = directory.path() + "/" + std::to_string(most);
        // Outside of the group, and deaf to SIGTERM.
        const std::string script = fmt::format(
            "setsid sh -c 'trap \"\" TERM; echo $$ >{}; while :; do sleep 0.1; done' & wait", file);
        const command_run run{
            run_shell(script, {"--ttl", "2s", "--grace", "200ms", "--max-hold", "2s"}),
            masters.environment(),
            {},
            fmt::format("ulimit -n {}; exec \"$@\"", most)};
        const process_end end = run.wait();
        const bool was_started = std::filesystem::exists(file);
        ended += was_started ? 1 : 0;
        refused += was_started ? 0 : 1;
        CHECK(end == process_end{.exit_code = was_started ? 77 : 71});
        CHECK((!was_started || has_ended(std::stoi(text_of(file)), 0ms)));
        CHECK(masters.all_free());
    }
    CHECK(ended > 0);
    CHECK(refused > 0);
}

TEST_CASE("descendants: without /proc, a loss at a terminal ends the command", "[.without-proc]")
{
    five_masters masters;
    pseudo_terminal terminal;
    named_pipe from;
    const command_run run{
        run_shell(
            fmt::format("echo $$ >{}; exec sleep 1000", from.path()),
            {"--ttl", "2s", "--grace", "200ms", "--max-hold", "2s"}),
        masters.environment(), terminal.path(),
        "exec unshare --mount --propagation unchanged sh -c "
        "'mount --make-private /proc && mount -t tmpfs none /proc && exec \"$@\"' sh \"$@\""};
    const pid_t child = std::stoi(from.line());
    CHECK(run.wait() == process_end{.exit_code = 77});
    CHECK(has_ended(child, 0ms));
    CHECK(
        run.errors().find(
            "there is no /proc, so a loss ends only the command itself, and none of its descendants") !=
        std::string::npos);
    CHECK(masters.all_free());
}

TEST_CASE("descendants: a process that forks while it is killed leaves nobody behind", "[scenario-107]")
{
    // How many are forked between a look and a signal differs.
    [[maybe_unused]] const int time = GENERATE(range(0, 2));
    five_masters masters;
    named_pipe from;
    // Outside of the command's group it and six others fork from its SIGTERM on, until they are killed.
    const std::string forks = fmt::format(
        "trap \"told=1\" TERM; echo $$ >{}; while [ -z \"$told\" ]; do sleep 0.01; done; "
        "for each in 1 2 3 4 5 6; do "
        "(n=0; while [ $n -lt 500 ]; do sleep 1000 & n=$((n+1)); done; while :; do wait; done) & done; "
        "while :; do wait; done",
        from.path());
    const command_run run{
        run_shell(
            fmt::format("setsid sh -c '{}' & exec sleep 1000", forks),
            {"-v", "--ttl", "60s", "--grace", "200ms", "--max-hold", "2s"}),
        masters.environment()};
    const pid_t session = std::stoi(from.line());
    CHECK(run.wait() == process_end{.exit_code = 77});
    CHECK(members_of_session(session) == 0);
    CHECK(masters.keys() == 0);
}

} // namespace redlock::test
