// SPDX-License-Identifier: BSL-1.0
// redlock run: every signal followed by every other, in each stage of a run. The runs of a stage share the masters and
// take place at the same time.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <csignal>
#include <deque>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

const std::vector<int> in_order{SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGTERM, SIGTSTP, SIGCONT};
/// One of each kind, for stages in which a run takes long.
const std::vector<int> of_each_kind{SIGINT, SIGTERM, SIGUSR1, SIGTSTP, SIGCONT};

bool ends_programs(int number)
{
    return number != SIGTSTP && number != SIGCONT;
}

/// Returns how a run ends whose command was killed by the signal.
process_end end_by(int number)
{
    const bool ends_both = number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
    return ends_both ? process_end{.exit_code = -1, .signal = number}
                     : process_end{.exit_code = 128 + number};
}

process_end by_signal(int number)
{
    return {.exit_code = -1, .signal = number};
}

/// One run, which gets two signals. It leads a session, so no shell could continue it.
class signalled_run
{
  public:
    /// In the script of its command, {0} is a pipe to the test, {1} one from the test.
    signalled_run(
        five_masters& masters, std::pair<int, int> numbers, const std::string& script, const strings& options,
        const std::string& terminal = {})
        : first{numbers.first},
          second{numbers.second},
          resource{fmt::format("{}-{}", numbers.first, numbers.second)},
          run_{words(script, options), masters.environment(), terminal}
    {
    }

    const int first;
    const int second;
    const std::string resource;
    named_pipe from;
    named_pipe to;

    const command_run& run() const { return run_; }
    /// Sends one after the other, to the process or, if it is negative, to the group.
    void signal(pid_t whom) const
    {
        ::kill(whom, first);
        ::kill(whom, second);
    }
    bool ends() const { return ends_programs(first) || ends_programs(second); }
    /// Returns true if one of the two signals that end programs explains the end.
    bool is_explained(const process_end& end, process_end (*by)(int)) const
    {
        return (ends_programs(first) && end == by(first)) || (ends_programs(second) && end == by(second));
    }

  private:
    strings words(const std::string& script, const strings& options) const
    {
        strings all{"run", "-v"};
        all.insert(all.end(), options.begin(), options.end());
        all.insert(
            all.end(),
            {resource, "--", "sh", "-c", fmt::format(fmt::runtime(script), from.path(), to.path())});
        return all;
    }

    command_run run_;
};

std::string about(const signalled_run& one)
{
    return fmt::format("signal {}, then {}; it wrote:\n{}", one.first, one.second, one.run().errors());
}

std::vector<std::pair<int, int>> pairs_of(const std::vector<int>& numbers)
{
    std::vector<std::pair<int, int>> all;
    for (const int first : numbers)
    {
        for (const int second : numbers)
        {
            all.emplace_back(first, second);
        }
    }
    return all;
}

/// Starts a run for each pair.
std::deque<signalled_run> start_all(
    five_masters& masters, const std::string& script, const strings& options,
    const std::vector<int>& numbers = in_order)
{
    std::deque<signalled_run> all;
    for (const auto& pair : pairs_of(numbers))
    {
        all.emplace_back(masters, pair, script, options);
    }
    return all;
}

/// Checks that the run has forwarded a signal, unless it ends already. So a signal that is lost is noticed at once.
void check_forwarded(five_masters& masters, const signalled_run& one)
{
    if (one.run().handles_another_signal(masters.any(), SIGCONT))
    {
        INFO(about(one));
        REQUIRE(one.run().errors().find(" is forwarded\n") != std::string::npos);
    }
}

/// Waits for the ends of runs whose command is a process of its own. A pair that ends no program is followed by SIGALRM.
void check_ends(five_masters& masters, std::deque<signalled_run>& all, const std::vector<pid_t>& children)
{
    for (std::size_t index = 0; index < all.size(); ++index)
    {
        const signalled_run& one = all[index];
        if (!one.ends())
        {
            one.run().signal(SIGALRM);
        }
        check_forwarded(masters, one);
        const process_end end = one.run().wait();
        INFO(about(one));
        CHECK((one.ends() ? one.is_explained(end, end_by) : end == end_by(SIGALRM)));
        CHECK(has_ended(children[index], 0ms));
        CHECK(masters.all_free(one.resource));
    }
}

constexpr const char* sleeps = "echo $$ >{0}; exec cat {1}";

} // namespace

TEST_CASE("signals: while redlock waits for the lock, each pair ends it by one of the two, without a trace")
{
    five_masters masters;
    for (const auto& [first, second] : pairs_of(in_order))
    {
        for (server& each : masters.servers)
        {
            expect_ok(each.command(
                {"SET", fmt::format("lock:{}-{}", first, second), "of another", "PX", "600000"}));
        }
    }
    const auto all = start_all(masters, "echo ran", {"--wait", "unlimited", "--max-hold", "1h"});
    for (const signalled_run& one : all)
    {
        one.run().wait_for_error_line(masters.any(), "acquire: held by another");
        one.signal(one.run().pid());
    }
    for (const signalled_run& one : all)
    {
        INFO(about(one));
        if (!one.ends())
        {
            one.run().signal(SIGALRM);
        }
        const process_end end = one.run().wait();
        CHECK((one.ends() ? one.is_explained(end, by_signal) : end == by_signal(SIGALRM)));
        CHECK(one.run().output().empty());
        const auto is_kept = [&](server& each) {
            return each.command({"GET", "lock:" + one.resource}) == "of another";
        };
        CHECK(std::all_of(masters.servers.begin(), masters.servers.end(), is_kept));
    }
}

TEST_CASE("signals: while the command runs, the first of a pair that ends programs ends it, and redlock")
{
    five_masters masters;
    auto all = start_all(masters, sleeps, {"--ttl", "60s", "--max-hold", "1h"});
    std::vector<pid_t> children;
    for (signalled_run& one : all)
    {
        children.push_back(std::stoi(one.from.line()));
        one.run().signal(one.first);
    }
    for (const signalled_run& one : all)
    {
        if (ends_programs(one.first))
        {
            check_forwarded(masters, one);
        }
        else
        {
            // A SIGCONT would discard a pending SIGTSTP.
            one.run().wait_for_error_line(
                masters.any(),
                one.first == SIGTSTP ? fmt::format("signal {} is ignored", SIGTSTP) : "] continued");
        }
        one.run().signal(one.second);
    }
    for (const signalled_run& one : all)
    {
        if (ends_programs(one.first))
        {
            INFO(about(one));
            CHECK(one.run().wait() == end_by(one.first));
        }
    }
    check_ends(masters, all, children);
}

TEST_CASE("signals: each pair at once ends the command and redlock by one of the two")
{
    five_masters masters;
    auto all = start_all(masters, sleeps, {"--ttl", "60s", "--max-hold", "1h"});
    std::vector<pid_t> children;
    for (signalled_run& one : all)
    {
        children.push_back(std::stoi(one.from.line()));
        one.signal(one.run().pid());
    }
    check_ends(masters, all, children);
}

TEST_CASE("signals: at a terminal, each pair ends the command and redlock by one of the two")
{
    five_masters masters;
    const bool whole_group = GENERATE(false, true);
    CAPTURE(whole_group);
    std::deque<pseudo_terminal> screens;
    std::deque<signalled_run> all;
    for (const auto& pair : pairs_of(of_each_kind))
    {
        all.emplace_back(
            masters, pair, sleeps, strings{"--ttl", "60s", "--max-hold", "1h"},
            screens.emplace_back().path());
    }
    std::vector<pid_t> children;
    for (signalled_run& one : all)
    {
        const pid_t child = std::stoi(one.from.line());
        REQUIRE(::getpgid(child) == one.run().pid());
        one.signal(whole_group ? -one.run().pid() : one.run().pid());
        children.push_back(child);
    }
    check_ends(masters, all, children);
}

TEST_CASE("signals: during the grace, no pair changes the exit code or lets the command outlive the lock")
{
    five_masters masters;
    // It survives SIGTERM, and dies of the other signals. `wait` is interrupted by the trap at once. A program in the
    // foreground could miss the signal before it is executed, and the trap would wait for its end.
    auto all = start_all(
        masters, "trap 'trap \"\" TERM; echo told >{0}' TERM; cat {1} & echo $$ >{0}; wait; cat {1}",
        {"--ttl", "20s", "--grace", "5s", "--max-hold", "10s"}, of_each_kind);
    std::deque<pid_t> children;
    for (signalled_run& one : all)
    {
        children.push_back(std::stoi(one.from.line()));
    }
    for (signalled_run& one : all)
    {
        CHECK(one.from.line() == "told");
        one.signal(one.run().pid());
    }
    for (signalled_run& one : all)
    {
        INFO(about(one));
        CHECK(one.run().wait() == process_end{.exit_code = 77});
        CHECK(has_ended(children.front(), 0ms));
        CHECK(masters.all_free(one.resource));
        children.pop_front();
    }
}

TEST_CASE("signals: no pair changes the exit code while a release waits for its answers")
{
    five_masters masters;
    auto all = start_all(
        masters, "echo $$ >{0}; read line <{1}; exit 4", {"--ttl", "60s", "--max-hold", "1h"}, of_each_kind);
    for (signalled_run& one : all)
    {
        one.from.line();
    }
    for (std::size_t index = 0; index < 3; ++index)
    {
        masters.servers[index].stop();
    }
    for (signalled_run& one : all)
    {
        one.to.write("end");
        one.run().wait_for_error_line(masters.servers.back(), "the command has ended with 4");
        one.signal(one.run().pid());
    }
    for (signalled_run& one : all)
    {
        INFO(about(one));
        CHECK(one.run().wait() == process_end{.exit_code = 4});
        CHECK(one.run().errors().find("warning: no quorum confirmed the release") != std::string::npos);
    }
    for (std::size_t index = 0; index < 3; ++index)
    {
        masters.servers[index].resume();
    }
    // What was sent before the end still arrives.
    for (signalled_run& one : all)
    {
        CHECK(masters.all_free(one.resource));
    }
}

} // namespace redlock::test
