// SPDX-License-Identifier: BSL-1.0
// redlock run ends in time: however slow the masters are, whatever they refuse, and whatever the system refuses.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

/// One that answers an error to each release, and to all other scripts.
server_options without_scripts()
{
    server_options options = server_options::plain();
    options.settings = {"--rename-command", "EVALSHA", "", "--rename-command", "EVAL", ""};
    return options;
}

} // namespace

TEST_CASE("A master that refuses releases doesn't delay the end once a quorum has released", "[scenario-106]")
{
    std::vector<server> servers = start_servers(4, server_options::plain());
    servers.emplace_back(without_scripts());
    strings options{"-v"};
    for (const server& each : servers)
    {
        options.insert(options.end(), {"--master", each.url()});
    }
    const command run{run_shell("exit 8", options)};
    CHECK(run.wait() == process_end{.exit_code = 8});
    CHECK(run.errors().find("] released\n") != std::string::npos);
    // It doesn't wait for the fifth's answer, which is refused again each second.
    CHECK(run.errors().find("] not waiting for the other masters any longer\n") != std::string::npos);
}

TEST_CASE(
    "--wait is a bound, also when masters never confirm what they are asked to release", "[scenario-106]")
{
    std::vector<server> servers = start_servers(5, without_scripts());
    strings options{"-v", "--wait", "500ms"};
    for (std::size_t index = 0; index < servers.size(); ++index)
    {
        options.insert(options.end(), {"--master", servers[index].url()});
        if (index < 3)
        {
            servers[index].command({"SET", "lock:job", "of a stranger"});
        }
    }
    const auto start = std::chrono::steady_clock::now();
    const command run{run_shell("echo ran", options)};
    CHECK(run.wait() == process_end{.exit_code = 75});
    CHECK(run.errors().find("] not waiting for the other masters any longer\n") != std::string::npos);
    // A quarter of the ten seconds for which a shutdown would wait, and much more than this needs.
    CHECK(std::chrono::steady_clock::now() - start < 500ms + 500ms + 200ms + 5s);
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

TEST_CASE("--try ends at once where fewer than a quorum of the masters can be reached")
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

TEST_CASE("A refusal by the system is told from masters that don't answer, and isn't waited out")
{
    five_masters masters;
    // Enough for what redlock opens itself, and for none or some of five connections.
    for (const int descriptors : {9, 10, 11, 12})
    {
        const command refused{
            run_shell(fmt::format(
                "ulimit -n {}; exec {} run --wait unlimited --max-hold 1h inner -- true", descriptors,
                REDLOCK_COMMAND)),
            masters.environment()};
        CHECK(refused.wait() == process_end{.exit_code = 71});
        CHECK(refused.errors().find("Too many open files") != std::string::npos);
    }
    const command shown{
        run_shell(fmt::format("ulimit -n 9; exec {} status inner", REDLOCK_COMMAND)), masters.environment()};
    CHECK(shown.wait() == process_end{.exit_code = 71});
    CHECK(shown.output().find("no answer: Too many open files") != std::string::npos);
}

} // namespace redlock::test
