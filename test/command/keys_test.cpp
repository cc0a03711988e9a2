// SPDX-License-Identifier: BSL-1.0
// redlock run at a terminal: keys in every order, a stop during the grace, and a terminal that is closed.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <csignal>
#include <optional>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

/// A key of the terminal, and its signal.
struct terminal_key
{
    char typed;
    int number;
};

constexpr std::array terminal_keys{
    terminal_key{'\x03', SIGINT}, terminal_key{'\x1c', SIGQUIT}, terminal_key{'\x1a', SIGTSTP}};

} // namespace

TEST_CASE("terminal: Ctrl-C and Ctrl-\\ end the command and redlock by their signal, also around Ctrl-Z")
{
    five_masters masters;
    for (const terminal_key& first : terminal_keys)
    {
        for (const terminal_key& second : terminal_keys)
        {
            CAPTURE(first.number, second.number);
            pseudo_terminal screen;
            named_pipe from;
            named_pipe never;
            const command_run run{
                run_shell(
                    fmt::format("echo $$ >{}; exec cat {}", from.path(), never.path()), {"--ttl", "60s"}),
                masters.environment(), screen.path()};
            const pid_t child = std::stoi(from.line());
            screen.type(std::string{first.typed, second.typed});
            // No shell could continue it, so Ctrl-Z has no effect.
            const bool stops_only = first.number == SIGTSTP && second.number == SIGTSTP;
            if (stops_only)
            {
                run.signal(SIGINT);
            }
            const process_end end = run.wait();
            const auto is_by = [&](int number)
            { return number != SIGTSTP && end == process_end{.exit_code = -1, .signal = number}; };
            CHECK((is_by(first.number) || is_by(second.number) || (stops_only && is_by(SIGINT))));
            CHECK(has_ended(child, 0ms));
            CHECK(masters.keys() == 0);
        }
    }
}

TEST_CASE("terminal: a key that is pressed just before the command starts reaches the command")
{
    five_masters masters;
    for (const terminal_key& key : {terminal_keys[0], terminal_keys[1]})
    {
        CAPTURE(key.number);
        pseudo_terminal screen;
        named_pipe tells;
        named_pipe waits;
        named_pipe never;
        strings environment = masters.environment();
        environment.insert(
            environment.end(), {"LD_PRELOAD=" LATE_FORK_PRELOAD, "LATE_FORK_TELLS=" + tells.path(),
                                "LATE_FORK_WAITS=" + waits.path()});
        const command_run run{
            run_shell(fmt::format("exec cat {}", never.path()), {"--ttl", "60s"}), environment,
            screen.path()};
        REQUIRE(tells.line() == "forks");
        screen.type(std::string{key.typed});
        // It is echoed after its signal is sent.
        screen.wait_for(fmt::format("^{}", static_cast<char>(key.typed + '@')));
        waits.write("go");
        CHECK(run.wait() == process_end{.exit_code = -1, .signal = key.number});
        CHECK(masters.keys() == 0);
    }
}

TEST_CASE("terminal: a signal that ends the command is sent to its descendants as well")
{
    five_masters masters;
    pseudo_terminal screen;
    named_pipe from;
    // The end of redlock, the session's leader, sends it a hangup.
    const std::string descendant = fmt::format(
        "trap \"\" HUP; trap \"echo TERM >{0}; exit\" TERM; echo ready >{0}; while :; do sleep 0.05; done",
        from.path());
    const command_run held{
        run_shell(fmt::format("sh -c '{}' & wait", descendant), {"--ttl", "60s"}), masters.environment(),
        screen.path()};
    REQUIRE(from.line() == "ready");
    held.signal(SIGTERM);
    CHECK(from.line() == "TERM");
    CHECK(held.wait() == process_end{.exit_code = -1, .signal = SIGTERM});
    CHECK(masters.keys() == 0);
}

TEST_CASE("terminal: Ctrl-Z during the grace stops neither redlock nor the command")
{
    five_masters masters;
    pseudo_terminal screen;
    const program_at_terminal shell{
        {"bash", "--norc", "--noediting", "-i"}, {"REDLOCK_MASTERS=" + masters.urls(), "PS1=Q> "}, screen};
    screen.wait_for("Q> ");
    named_pipe never;
    screen.type(fmt::format(
        "\"$REDLOCK\" run --ttl 4s --grace 1s --max-hold 500ms job -- sh -c '(trap \"\" TERM; exec cat {}) & "
        "trap \"echo told\" TERM; while :; do wait; done'; echo ended with $?\n",
        never.path()));
    screen.wait_for("told\r\n");
    screen.type("\x1a");
    // A job that is stopped would end the command line with 148.
    screen.wait_for("\nended with ");
    CHECK(screen.wait_for("\r\n") == "77");
    CHECK(masters.keys() == 0);
    screen.wait_for("Q> ");
    screen.type("exit 3\n");
    CHECK(shell.wait() == process_end{.exit_code = 3});
}

TEST_CASE("terminal: a terminal that is closed ends the command and redlock, and leaves no key")
{
    five_masters masters;
    // As the leader of the session, and in a script that is its leader.
    for (const std::string around : {"exec \"$@\"", "\"$@\"; exit $?"})
    {
        CAPTURE(around);
        std::optional<pseudo_terminal> screen{std::in_place};
        named_pipe from;
        named_pipe never;
        const command_run run{
            run_shell(
                fmt::format("echo $$ $PPID >{}; exec cat {}", from.path(), never.path()),
                {"-v", "--ttl", "60s"}),
            masters.environment(), screen->path(), around};
        const std::string ids = from.line();
        screen.reset();
        if (run.handles_another_signal(masters.any(), SIGCONT))
        {
            REQUIRE(run.errors().find(fmt::format("signal {} is forwarded", SIGHUP)) != std::string::npos);
        }
        CHECK(run.wait() == process_end{.exit_code = -1, .signal = SIGHUP});
        CHECK(has_ended(std::stoi(ids)));
        CHECK(has_ended(std::stoi(ids.substr(ids.find(' ')))));
        CHECK(masters.all_free());
    }
}

TEST_CASE("terminal: a command that ignores the hangup keeps the lock until its end")
{
    five_masters masters;
    std::optional<pseudo_terminal> screen{std::in_place};
    named_pipe from;
    named_pipe to;
    const command_run run{
        run_shell(
            fmt::format("trap '' HUP; echo ready >{}; read line <{}; exit 7", from.path(), to.path()),
            {"-v", "--ttl", "60s"}),
        masters.environment(), screen->path()};
    CHECK(from.line() == "ready");
    screen.reset();
    run.wait_for_error_line(masters.any(), fmt::format("signal {} is forwarded", SIGHUP));
    CHECK(masters.keys() >= 3);
    to.write("end");
    CHECK(run.wait() == process_end{.exit_code = 7});
    CHECK(masters.keys() == 0);
}

} // namespace redlock::test
