// SPDX-License-Identifier: BSL-1.0
// redlock run ends in time, even if the masters are slow or the system refuses connections.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;

TEST_CASE(
    "run: a master that doesn't answer the release doesn't delay the end after a quorum has",
    "[scenario-106]")
{
    five_masters masters;
    server& silent = masters.servers.back();
    const command_run run{
        run_shell(fmt::format("kill -STOP {}; exit 8", silent.pid()), {"-v"}), masters.environment()};
    CHECK(run.wait() == process_end{.exit_code = 8});
    CHECK(run.errors().find("] released\n") != std::string::npos);
    CHECK(run.errors().find("] not waiting for the other masters any longer\n") != std::string::npos);
    silent.resume();
}

TEST_CASE("run: a signal ends the wait for an unanswered release, with a warning")
{
    five_masters masters;
    const command_run run{
        run_shell(masters.stop_of_quorum() + "; exit 8", {"-v", "--ttl", "60s"}), masters.environment()};
    run.wait_for_error_line(masters.servers.back(), "the command has ended with 8");
    run.signal(SIGTERM);
    CHECK(run.wait() == process_end{.exit_code = 8});
    CHECK(
        run.errors().find(
            "redlock: warning: no quorum confirmed the release of 'job'; its --ttl of 1 m frees it\n") !=
        std::string::npos);
    masters.resume_quorum();
}

TEST_CASE("run: hung masters don't delay the end beyond --wait and one round")
{
    five_masters masters;
    client other{unhurried(masters.servers)};
    other.wait_for_masters();
    redlock::lease theirs = other.win("job");
    const command_run waits{run_shell("echo ran", {"--wait", "2s", "-v"}), masters.environment()};
    waits.wait_for_error_line(masters.any(), "acquire: held by another");
    for (server& each : masters.servers)
    {
        each.stop();
    }
    const process_end end = waits.wait();
    // Held by another client before the masters hung, or no quorum since.
    CHECK((end == process_end{.exit_code = 75} || end == process_end{.exit_code = 69}));
    for (server& each : masters.servers)
    {
        each.resume();
    }
}

TEST_CASE("run: --try acquires from masters that forbid the inspection only", "[plain]")
{
    std::vector<server> servers = start_servers(3, server_options::plain());
    strings options{"--try"};
    for (server& each : servers)
    {
        each.command({"ACL", "SETUSER", "default", "-eval"});
        options.insert(options.end(), {"--master", each.url()});
    }
    const command_run tried{run_shell("echo ran", options)};
    CHECK(tried.wait() == process_end{.exit_code = 0});
    CHECK(tried.output() == "ran\n");
}

TEST_CASE("run: --try fails at once if fewer than a quorum of the masters can be reached")
{
    const command_run tried{
        run_shell("echo ran", {"--try"}),
        {"REDLOCK_MASTERS=redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3"}};
    CHECK(tried.wait() == process_end{.exit_code = 69});
    CHECK(tried.output().empty());
    // No round is tried, since the masters are known to refuse.
    CHECK(
        tried.errors() == "redlock: can't lock 'job': fewer than a quorum of the masters answered\n"
                          "  redis://127.0.0.1:1: Connection refused\n"
                          "  redis://127.0.0.1:2: Connection refused\n"
                          "  redis://127.0.0.1:3: Connection refused\n");
}

// UndefinedBehaviorSanitizer opens a pipe to inspect an object, so it fails without descriptors.
#ifndef REDLOCK_SANITIZED
TEST_CASE("run, status, doctor, provision: a refusal by the system ends at once with 71, unlike masters that "
          "don't answer")
{
    five_masters masters;
    // Enough descriptors for redlock's own files, and for none or some of five connections.
    for (const int descriptors : {8, 9, 10, 11, 12})
    {
        const command_run refused{
            run_shell(fmt::format(
                "ulimit -n {}; exec {} run --wait unlimited --max-hold 1h inner -- true", descriptors,
                REDLOCK_COMMAND)),
            masters.environment()};
        CHECK(refused.wait() == process_end{.exit_code = 71});
        CHECK(refused.errors().find("the system refuses") != std::string::npos);
        CHECK(refused.errors().find(": Too many open files\n") != std::string::npos);
    }
    const command_run shown{
        run_shell(fmt::format("ulimit -n 9; exec {} status inner", REDLOCK_COMMAND)), masters.environment()};
    CHECK(shown.wait() == process_end{.exit_code = 71});
    CHECK(shown.output().find("no answer: Too many open files") != std::string::npos);
    const command_run examined{
        run_shell(fmt::format("ulimit -n 7; exec {} doctor", REDLOCK_COMMAND)), masters.environment()};
    CHECK(examined.wait() == process_end{.exit_code = 71});
    CHECK(
        examined.output().find("Too many open files. It has no vote. Raise the limits") != std::string::npos);
    const command_run provisioned{
        run_shell(fmt::format("ulimit -n 8; exec {} provision --max-ttl 1s", REDLOCK_COMMAND)),
        masters.environment()};
    CHECK(provisioned.wait() == process_end{.exit_code = 71});
    CHECK((provisioned.output() + provisioned.errors()).find(": Too many open files\n") != std::string::npos);
    // No thread can have a stack of this size, so none can resolve a name.
    const command_run nameless{
        run_shell(fmt::format(
            "ulimit -s 200000000000; REDLOCK_MASTERS=redis://localhost:1 exec {} run --wait unlimited "
            "--max-hold 1h inner -- true",
            REDLOCK_COMMAND)),
        masters.environment()};
    CHECK(nameless.wait() == process_end{.exit_code = 71});
    CHECK(
        nameless.errors() ==
        "redlock: can't lock 'inner': the system refuses to connect to the masters: "
        "No buffer space available (\"no thread can be started that resolves its name\")\n");
}

TEST_CASE("run: ends with 71 wherever it gets no memory", "[run]")
{
    five_masters masters;
    const std::string inner = "exec " REDLOCK_COMMAND " run --max-hold 1h inner -- true";
    std::string said;
    const auto end_within = [&](int kibibytes)
    {
        const command_run one{
            run_shell(fmt::format("ulimit -c 0; ulimit -v {}; {}", kibibytes, inner)), masters.environment()};
        const process_end end = one.wait();
        said = one.errors();
        return end.exit_code;
    };
    int too_small = 1024;
    int enough = 4 * 1024 * 1024;
    REQUIRE(end_within(enough) == 0);
    constexpr int page = 4;
    while (enough - too_small > page)
    {
        const int middle = (too_small + enough) / 2;
        (end_within(middle) == 0 ? enough : too_small) = middle;
    }
    // Less and less, down to what doesn't suffice to load it.
    constexpr int step = 24;
    int lacking = 0;
    for (int limit = too_small; limit > 0; limit -= step)
    {
        CAPTURE(limit);
        const int code = end_within(limit);
        CAPTURE(said);
        if (code == 127 || said.starts_with("terminate called without an active exception"))
        {
            break;
        }
        CHECK((code == 71 || code == 0));
        lacking += said == "redlock: out of memory\n" ? 1 : 0;
    }
    CHECK(lacking > 0);
}
#endif

} // namespace redlock::test
