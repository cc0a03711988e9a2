// SPDX-License-Identifier: BSL-1.0
// redlock run at a terminal: the command reads from it, and its keys stop and end it.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>

#include <csignal>

namespace redlock::test
{

namespace
{

constexpr std::string_view control_c = "\x03";
constexpr std::string_view control_z = "\x1a";

/// Waits until a group has the terminal.
bool has_terminal(five_masters& masters, const pseudo_terminal& screen, pid_t group)
{
    return comes_true(masters.any(), [&] { return screen.foreground() == group; });
}

} // namespace

TEST_CASE("A command that redlock runs can read from the terminal")
{
    five_masters masters;
    pseudo_terminal screen;
    const command held{
        run_shell("echo ready; read line; echo got $line; exit 8"), masters.environment(), screen.path()};
    screen.wait_for("ready");
    CHECK(screen.foreground() != held.pid());
    screen.type("hello\n");
    screen.wait_for("got hello");
    CHECK(held.wait() == process_end{.exit_code = 8});
}

TEST_CASE("Ctrl-Z stops both and gives the terminal back, and going on hands it to the command again")
{
    five_masters masters;
    pseudo_terminal screen;
    const command held{
        run_shell("echo I am $$.; read line; echo got $line; exit 8", {"--ttl", "60s"}),
        masters.environment(), screen.path()};
    screen.wait_for("I am ");
    screen.wait_for(".");
    const pid_t child = screen.foreground();
    CHECK(child != held.pid());
    for (int time = 0; time < 2; ++time)
    {
        screen.type(control_z);
        held.wait_for_stop();
        CHECK(screen.foreground() == held.pid());
        CHECK(state_of(child) == "T");
        held.signal(SIGCONT);
        held.wait_for_continue();
        REQUIRE(has_terminal(masters, screen, child));
    }
    screen.type("hello\n");
    screen.wait_for("got hello");
    CHECK(held.wait() == process_end{.exit_code = 8});
}

TEST_CASE("Ctrl-C at the terminal ends the command, and redlock gives the lock back")
{
    five_masters masters;
    pseudo_terminal screen;
    const command held{run_shell("echo ready; exec sleep 1000"), masters.environment(), screen.path()};
    screen.wait_for("ready");
    // A shell that is about to start something may swallow it.
    REQUIRE(comes_true(masters.any(), [&] { return name_of(screen.foreground()) == "sleep"; }));
    screen.type(control_c);
    CHECK(held.wait() == process_end{.exit_code = 128 + SIGINT});
    CHECK(masters.keys() == 0);
}

TEST_CASE("A command that is stopped by whatever while it has the terminal stops redlock, too")
{
    five_masters masters;
    pseudo_terminal screen;
    const command held{
        run_shell("kill -STOP $$; exit 8", {"--ttl", "60s"}), masters.environment(), screen.path()};
    held.wait_for_stop();
    CHECK(screen.foreground() == held.pid());
    held.signal(SIGCONT);
    CHECK(held.wait() == process_end{.exit_code = 8});
}

} // namespace redlock::test
