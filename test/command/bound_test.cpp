// SPDX-License-Identifier: BSL-1.0
// redlock run ends in time: however slow the masters are, whatever they refuse, and whatever the system refuses.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;

TEST_CASE(
    "A master that doesn't answer the release doesn't delay the end once a quorum has released",
    "[scenario-106]")
{
    five_masters masters;
    server& silent = masters.servers.back();
    const command run{
        run_shell(fmt::format("kill -STOP {}; exit 8", silent.pid()), {"-v"}), masters.environment()};
    CHECK(run.wait() == process_end{.exit_code = 8});
    CHECK(run.errors().find("] released\n") != std::string::npos);
    CHECK(run.errors().find("] not waiting for the other masters any longer\n") != std::string::npos);
    silent.resume();
}

TEST_CASE("A signal ends the wait for a release that hangs, with a warning that it isn't confirmed")
{
    five_masters masters;
    std::string script;
    for (std::size_t index = 0; index < 3; ++index)
    {
        script += fmt::format("kill -STOP {}; ", masters.servers[index].pid());
    }
    const command run{run_shell(script + "exit 8", {"-v", "--ttl", "60s"}), masters.environment()};
    run.wait_for_error_line(masters.servers.back(), "the command has ended with 8");
    run.signal(SIGTERM);
    CHECK(run.wait() == process_end{.exit_code = 8});
    CHECK(
        run.errors().find("redlock: warning: no quorum confirmed that 'job' was released") !=
        std::string::npos);
    for (std::size_t index = 0; index < 3; ++index)
    {
        // The script stopped it: stop() only takes note of that.
        masters.servers[index].stop();
        masters.servers[index].resume();
    }
}

TEST_CASE("Masters that hang don't keep redlock for longer than --wait and the time that a round has")
{
    five_masters masters;
    client rival{unhurried(masters.servers)};
    rival.wait_for_masters();
    redlock::lease theirs = rival.win("job");
    const command waits{run_shell("echo ran", {"--wait", "2s", "-v"}), masters.environment()};
    waits.wait_for_error_line(masters.any(), "acquire: held by another");
    for (server& each : masters.servers)
    {
        each.stop();
    }
    const process_end end = waits.wait();
    // As the masters said before they hung, or since then.
    CHECK((end == process_end{.exit_code = 75} || end == process_end{.exit_code = 69}));
    for (server& each : masters.servers)
    {
        each.resume();
    }
}

TEST_CASE("run --try ends at once where fewer than a quorum of the masters can be reached")
{
    const command tried{
        run_shell("echo ran", {"--try"}),
        {"REDLOCK_MASTERS=redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3"}};
    CHECK(tried.wait() == process_end{.exit_code = 69});
    CHECK(tried.output().empty());
    // No round is tried: they are known to refuse.
    CHECK(
        tried.errors() == "redlock: can't lock 'job': fewer than a quorum of the masters answered\n"
                          "  redis://127.0.0.1:1: Connection refused\n"
                          "  redis://127.0.0.1:2: Connection refused\n"
                          "  redis://127.0.0.1:3: Connection refused\n");
}

// UndefinedBehaviorSanitizer opens a pipe to look at an object, so it can't go on without descriptors.
#ifndef REDLOCK_SANITIZED
TEST_CASE("A refusal by the system is told from masters that don't answer, and isn't waited out")
{
    five_masters masters;
    // Enough for what redlock opens itself, and for none or some of five connections.
    for (const int descriptors : {8, 9, 10, 11, 12})
    {
        const command refused{
            run_shell(fmt::format(
                "ulimit -n {}; exec {} run --wait unlimited --max-hold 1h inner -- true", descriptors,
                REDLOCK_COMMAND)),
            masters.environment()};
        CHECK(refused.wait() == process_end{.exit_code = 71});
        CHECK(refused.errors().find("the system refuses") != std::string::npos);
        CHECK(refused.errors().find(": Too many open files\n") != std::string::npos);
    }
    const command shown{
        run_shell(fmt::format("ulimit -n 9; exec {} status inner", REDLOCK_COMMAND)), masters.environment()};
    CHECK(shown.wait() == process_end{.exit_code = 71});
    CHECK(shown.output().find("no answer: Too many open files") != std::string::npos);
}
#endif

} // namespace redlock::test
