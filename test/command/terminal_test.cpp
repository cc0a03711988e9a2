// SPDX-License-Identifier: BSL-1.0
// redlock at a terminal, in scripts and in an interactive shell: reading, Ctrl-C, Ctrl-Z and fg, and no prompt of its own.
#include "command/command.hpp"

#include "support/certificates.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

constexpr std::string_view control_c = "\x03";
constexpr std::string_view control_z = "\x1a";

strings script(const std::string& text)
{
    return {"bash", "--norc", "-c", text};
}

/// An interactive shell with job control, whose prompt is "Q> ".
class interactive_shell
{
  public:
    explicit interactive_shell(five_masters& masters)
        : shell_{
              {"bash", "--norc", "--noediting", "-i"},
              {"REDLOCK_MASTERS=" + masters.urls(), "PS1=Q> "},
              screen}
    {
    }

    pseudo_terminal screen;

    void line(const std::string& text)
    {
        screen.wait_for("Q> ");
        screen.type(text + "\n");
    }
    /// Waits until the shell reports a stopped job, which it does with a prompt, and continues it in the foreground.
    void continue_stopped(five_masters& masters)
    {
        std::string shown;
        REQUIRE(comes_true(
            masters.any(),
            [&]
            {
                screen.type("\n");
                shown += screen.rest();
                return shown.find("Stopped") != std::string::npos;
            }));
        screen.type("fg\n");
    }
    process_end wait() const { return shell_.wait(); }

  private:
    program_at_terminal shell_;
};

} // namespace

TEST_CASE("terminal: Ctrl-C ends the script that runs redlock before its next step, and leaves no key")
{
    five_masters masters;
    pseudo_terminal screen;
    const program_at_terminal run{
        script("\"$REDLOCK\" run --max-hold 1h job -- sh -c 'echo ready; exec sleep 1000'; echo next step"),
        masters.environment(), screen};
    screen.wait_for("ready\r\n");
    screen.type(control_c);
    CHECK(run.wait() == process_end{.exit_code = -1, .signal = SIGINT});
    CHECK(screen.rest().find("next step") == std::string::npos);
    CHECK(masters.keys() == 0);
}

TEST_CASE("terminal: Ctrl-C ends a command that has left the foreground group, as timeout and setsid do")
{
    five_masters masters;
    for (const std::string& leaves : {std::string{"timeout 1000"}, std::string{"setsid"}})
    {
        INFO(leaves);
        pseudo_terminal screen;
        named_pipe from;
        // A timeout(1) that gets a signal before it knows its child exits alone. It sleeps once it knows it.
        const program_at_terminal run{
            script(fmt::format(
                "\"$REDLOCK\" run --max-hold 1h job -- {} sh -c 'until grep -q \"^State:.S\" "
                "/proc/$PPID/status; do :; done; echo $$ >{}; exec sleep 1000'; echo next step",
                leaves, from.path())),
            masters.environment(), screen};
        const pid_t worker = std::stoi(from.line());
        screen.type(control_c);
        CHECK(run.wait() == process_end{.exit_code = -1, .signal = SIGINT});
        CHECK(has_ended(worker));
        CHECK(screen.rest().find("next step") == std::string::npos);
        CHECK(masters.keys() == 0);
    }
}

TEST_CASE("terminal: Ctrl-C during the wait for the lock ends the script")
{
    five_masters masters;
    client other{unhurried(masters.servers)};
    other.wait_for_masters();
    redlock::lease theirs = other.win("job");
    pseudo_terminal screen;
    const program_at_terminal run{
        script("\"$REDLOCK\" run --wait unlimited --max-hold 1h job -- true; echo next step"),
        masters.environment(), screen};
    screen.wait_for("waiting for 'job'");
    screen.type(control_c);
    CHECK(run.wait() == process_end{.exit_code = -1, .signal = SIGINT});
    CHECK(screen.rest().find("next step") == std::string::npos);
    CHECK(theirs.valid());
}

TEST_CASE("terminal: a command that handles Ctrl-C determines how the script continues")
{
    five_masters masters;
    pseudo_terminal screen;
    const program_at_terminal run{
        script("\"$REDLOCK\" run --max-hold 1h job -- "
               "sh -c 'trap \"exit 5\" INT; echo ready; while :; do sleep 0.05; done'; echo ended with $?"),
        masters.environment(), screen};
    screen.wait_for("ready\r\n");
    screen.type(control_c);
    screen.wait_for("ended with 5");
    CHECK(run.wait() == process_end{.exit_code = 0});
    CHECK(masters.keys() == 0);
}

TEST_CASE("terminal: the command reads from the terminal under any redirection")
{
    five_masters masters;
    const std::string redlock = "\"$REDLOCK\" run --max-hold 1h job -- ";
    const std::string question = "bash -c 'read -p \"deploy? \" a; echo got $a'";
    for (const std::string& text :
         {redlock + question, redlock + question + " | cat", redlock + question + " 2>&1 | cat | cat",
          "x=$(" + redlock + question + "); echo $x",
          redlock +
              "bash -c 'echo \"deploy? \" >/dev/tty; read a </dev/tty; echo got $a' </dev/null 2>&1 | cat"})
    {
        INFO(text);
        pseudo_terminal screen;
        const program_at_terminal run{script(text), masters.environment(), screen};
        screen.wait_for("deploy? ");
        screen.type("yes\n");
        screen.wait_for("got yes");
        CHECK(run.wait() == process_end{.exit_code = 0});
        CHECK(masters.keys() == 0);
    }
}

TEST_CASE("terminal: Ctrl-Z stops the command and redlock and reports for how long, and fg continues both")
{
    five_masters masters;
    interactive_shell shell{masters};
    shell.line("\"$REDLOCK\" run -v --ttl 60s --max-hold 1h job -- sh -c 'echo ready; read a; echo got $a'");
    shell.screen.wait_for("ready\r\n");
    for (int time = 0; time < 2; ++time)
    {
        shell.screen.type(control_z);
        shell.screen.wait_for("redlock: 'job': stopped together with the command; in ");
        shell.screen.wait_for("Stopped");
        shell.line("fg; echo ended with $?");
        shell.screen.wait_for("] continued");
    }
    shell.screen.type("hello\n");
    shell.screen.wait_for("got hello");
    shell.screen.wait_for("ended with 0");
    shell.line("exit 3");
    CHECK(shell.wait() == process_end{.exit_code = 3});
    CHECK(masters.keys() == 0);
}

TEST_CASE("terminal: Ctrl-Z has no effect if redlock is the first program of the terminal")
{
    five_masters masters;
    client other{unhurried(masters.servers)};
    other.wait_for_masters();
    redlock::lease theirs = other.win("job");
    // As with ssh -t host redlock run, xterm -e, and script -c.
    for (const strings& words :
         {strings{REDLOCK_COMMAND}, strings{"sh", "-c", "\"$@\"; exit $?", "sh", REDLOCK_COMMAND}})
    {
        strings all = words;
        all.insert(
            all.end(), {"run", "-v", "--wait", "unlimited", "--max-hold", "1h", "job", "--", "sh", "-c",
                        "echo has it; read a; echo got $a"});
        if (!theirs)
        {
            theirs = other.win("job");
        }
        pseudo_terminal screen;
        const program_at_terminal run{all, masters.environment(), screen};
        screen.wait_for("redlock: waiting for 'job'");
        screen.type(control_z);
        screen.wait_for("is ignored: no shell");
        CHECK_FALSE(release(theirs).error);
        theirs = {};
        screen.wait_for("has it\r\n");
        screen.type(control_z);
        screen.wait_for("is ignored: no shell");
        screen.type("hello\n");
        screen.wait_for("got hello");
        CHECK(run.wait() == process_end{.exit_code = 0});
    }
}

TEST_CASE(
    "terminal: a command stopped for longer than its lease is killed while it is stopped", "[scenario-105]")
{
    five_masters masters;
    named_pipe from;
    interactive_shell shell{masters};
    shell.screen.wait_for("Q> ");
    pid_t child = 0;
    bool is_stopped = false;
    // On a slow machine the lock is lost before the stop, unless the ttl is longer.
    for (std::chrono::seconds ttl = 2s; !is_stopped && ttl < patience; ttl *= 2)
    {
        // If fg continued it, it would work while redlock still checks the lease.
        shell.screen.type(fmt::format(
            "\"$REDLOCK\" run --ttl {}s --max-hold 1h job -- sh -c 'echo $$ >{}; read a; echo worked'\n",
            ttl.count(), from.path()));
        child = std::stoi(from.line());
        shell.screen.type(control_z);
        is_stopped = shell.screen.wait_for("Q> ").find("Stopped") != std::string::npos;
    }
    REQUIRE(is_stopped);
    CHECK(comes_true(masters.any(), [&] { return state_of(child) == "Z"; }));
    CHECK(masters.all_free());
    shell.screen.type("fg; echo ended with $?\n");
    shell.screen.wait_for("the lock was lost while redlock was stopped: SIGKILL to the command");
    shell.screen.wait_for("ended with 76");
    shell.line("exit 3");
    CHECK(shell.wait() == process_end{.exit_code = 3});
}

TEST_CASE("terminal: a background command that reads from the terminal is stopped with a message, and fg "
          "lets it read")
{
    five_masters masters;
    interactive_shell shell{masters};
    shell.line("\"$REDLOCK\" run -v --ttl 60s --max-hold 1h job -- sh -c 'read a; echo got $a' &");
    shell.screen.wait_for("which reads from the terminal in the background");
    shell.continue_stopped(masters);
    shell.screen.wait_for("] continued");
    shell.screen.type("hello\n");
    shell.screen.wait_for("got hello");
    shell.line("exit 3");
    CHECK(shell.wait() == process_end{.exit_code = 3});
}

TEST_CASE(
    "terminal: a background command that changes the terminal is stopped with a message, and fg lets it")
{
    five_masters masters;
    interactive_shell shell{masters};
    shell.line(
        "\"$REDLOCK\" run -v --ttl 60s --max-hold 1h job -- sh -c 'stty -echo; stty echo; echo chan''ged' &");
    shell.screen.wait_for("which uses the terminal in the background");
    shell.continue_stopped(masters);
    shell.screen.wait_for("changed");
    shell.line("exit 3");
    CHECK(shell.wait() == process_end{.exit_code = 3});
}

TEST_CASE("terminal: the settings are restored after a killed command has left raw mode")
{
    five_masters masters;
    pseudo_terminal screen;
    const program_at_terminal run{
        script("\"$REDLOCK\" run --max-hold 1s --grace 100ms job -- "
               "sh -c 'trap \"\" TERM; stty raw -echo; echo ready; sleep 1000; sleep 1000'; exit $?"),
        masters.environment(), screen};
    screen.wait_for("ready");
    CHECK_FALSE(screen.is_cooked());
    CHECK(run.wait() == process_end{.exit_code = 77});
    CHECK(screen.is_cooked());
}

TEST_CASE(
    "terminal: the settings that a killed command has left are restored, unless stdout may lead to a pager")
{
    five_masters masters;
    const bool piped = GENERATE(false, true);
    CAPTURE(piped);
    pseudo_terminal screen;
    const program_at_terminal run{
        script(
            std::string{"\"$REDLOCK\" run --max-hold 1h job -- sh -c 'stty raw -echo; kill -KILL $$'"} +
            (piped ? " | cat; exit 5" : "; exit $?")),
        masters.environment(), screen};
    CHECK(run.wait() == process_end{.exit_code = piped ? 5 : 128 + SIGKILL});
    CHECK(screen.is_cooked() != piped);
}

TEST_CASE("terminal: a signal sent to redlock also ends what the command has started")
{
    five_masters masters;
    pseudo_terminal screen;
    named_pipe from;
    const program_at_terminal run{
        {REDLOCK_COMMAND, "run", "--max-hold", "1h", "job", "--", "sh", "-c",
         fmt::format("sleep 1000 & echo $! >{}; wait", from.path())},
        masters.environment(),
        screen};
    const pid_t grandchild = std::stoi(from.line());
    run.signal(SIGTERM);
    CHECK(run.wait() == process_end{.exit_code = -1, .signal = SIGTERM});
    CHECK(has_ended(grandchild));
    CHECK(masters.keys() == 0);
}

TEST_CASE("terminal: reports the resource that is waited for, and its owner")
{
    five_masters masters;
    client other{unhurried(masters.servers)};
    other.wait_for_masters();
    redlock::lease theirs = other.win("job");
    pseudo_terminal screen;
    const program_at_terminal run{
        script("\"$REDLOCK\" run --wait 1h --max-hold 1h job -- echo has it; exit $?"), masters.environment(),
        screen};
    screen.wait_for("redlock: waiting for 'job', at most 1 h");
    screen.wait_for(fmt::format(", first in the queue: held by {}", theirs.owner_id()));
    screen.wait_for("of 5 masters, for another ");
    CHECK_FALSE(release(theirs).error);
    screen.wait_for("has it");
    CHECK(run.wait() == process_end{.exit_code = 0});
}

TEST_CASE("terminal: a new position in the queue is reported")
{
    five_masters masters;
    client other{unhurried(masters.servers)};
    other.wait_for_masters();
    const redlock::lease theirs = other.win("job");
    const auto waits = [&]
    {
        return std::any_of(
            masters.servers.begin(), masters.servers.end(),
            [](server& each) {
                return each.command({"EXISTS", "redlock-queue:order:lock:job"}) == 1;
            });
    };
    const command_run first{run_shell("true", {"--wait", "unlimited"}), masters.environment()};
    REQUIRE(comes_true(masters.any(), waits));
    pseudo_terminal screen;
    const program_at_terminal run{
        script("\"$REDLOCK\" run --wait unlimited --max-hold 1h job -- true; exit $?"), masters.environment(),
        screen};
    screen.wait_for(", 1 client ahead in the queue: ");
    // It leaves the queue.
    first.signal(SIGTERM);
    CHECK(first.wait() == process_end{.signal = SIGTERM});
    screen.wait_for(", first in the queue: ");
    screen.type(control_c);
    CHECK(run.wait() == process_end{.exit_code = -1, .signal = SIGINT});
    CHECK(comes_true(masters.any(), [&] { return !waits(); }));
}

TEST_CASE("terminal: an encrypted private key is refused, and nobody is asked for its password", "[tls]")
{
    temporary_directory directory;
    certificate_authority authority{directory.path(), "authority"};
    const certificate_files own = authority.issue("client");
    encrypt_key(own.key, "some password");
    pseudo_terminal screen;
    const program_at_terminal run{
        {"bash", "-c",
         fmt::format(
             "\"$REDLOCK\" status job --certificate-file {} --private-key-file {}; echo ended with $?",
             own.certificate, own.key)},
        {"REDLOCK_MASTERS=rediss://127.0.0.1:1"},
        screen};
    const std::string said = screen.wait_for("ended with ");
    CHECK(screen.wait_for("\r\n") == "78");
    CHECK(said.find(own.key) != std::string::npos);
    CHECK(run.wait() == process_end{.exit_code = 0});
}

} // namespace redlock::test
