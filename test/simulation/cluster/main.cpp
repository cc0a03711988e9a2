// SPDX-License-Identifier: BSL-1.0
// simulate: runs seeds, prints the events of one, or reduces the faults of one to those that a violation needs.
#include "cluster_run.hpp"
#include "faults.hpp"
#include "plan.hpp"
#include "search.hpp"
#include "support/fake_replies.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace redlock::test
{

namespace
{

constexpr int usage_error = 64;
constexpr std::size_t max_jobs = 256;

struct request
{
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::size_t jobs = 1;
    bool many = false;
    bool traces = false;
    bool minimises = false;
    bool lists_faults = false;
    std::string recorded;
    bool records = false;
};

void read_range(const std::string& text, request& asked)
{
    const std::size_t dots = text.find("..");
    const auto first = integer_in<std::uint64_t>(std::string_view{text}.substr(0, dots));
    const auto last = dots == std::string::npos
                          ? first
                          : integer_in<std::uint64_t>(std::string_view{text}.substr(dots + 2));
    if (!first || !last || *last < *first)
    {
        throw CLI::ValidationError{
            "--seeds", fmt::format("'{}' is not a range of seeds, such as 1..1000", text)};
    }
    asked.first = *first;
    asked.last = *last;
    asked.many = true;
}

void add_options(CLI::App& app, request& asked)
{
    CLI::Option_group* const modes = app.add_option_group("Mode", "Exactly one of these is required");
    modes->require_option(1);
    modes
        ->add_option_function<std::string>(
            "--seeds", [&asked](const std::string& text) { read_range(text, asked); },
            "Run these seeds until the first violation; from 10^12 on they are in guarded mode")
        ->type_name("FIRST..LAST");
    CLI::Option* const seed = modes->add_option("--seed", asked.first, "Run one seed")->type_name("SEED");
    modes->add_flag("--faults", asked.lists_faults, "List the kinds of faults");
    app.add_option("--jobs", asked.jobs, "The number of processes that run --seeds")
        ->check(CLI::Range(std::size_t{1}, max_jobs));
    CLI::Option* const totals = app.add_option(
                                       "--totals", asked.recorded,
                                       "Fail if the totals of --seeds differ from those in this file by more "
                                       "than 2 %, comparisons by more than 10 %")
                                    ->type_name("FILE");
    app.add_flag("--record", asked.records, "Write the totals to the file of --totals instead")
        ->needs(totals);
    app.add_flag("--trace", asked.traces, "Print every event of --seed")->needs(seed);
    app.add_flag(
           "--minimise", asked.minimises,
           "Print the fewest faults with which --seed still violates the check")
        ->needs(seed);
}

int report_violation(std::uint64_t seed, const violation& found)
{
    fmt::print("seed {} violates {}: {}\n", seed, found.check, found.words);
    return 1;
}

int list_faults()
{
    for (const fault& each : all_faults())
    {
        const char* const note = each.guarded == in_guarded::keeps_promises
                                     ? " (breaks the assumptions, but not in guarded mode)"
                                 : each.guarded == in_guarded::only ? " (in guarded mode)"
                                 : each.breaks_assumptions          ? " (breaks the assumptions)"
                                                                    : "";
        fmt::print("{:<24} {}{}\n", each.name, each.what, note);
    }
    return 0;
}

int run(const request& asked)
{
    if (asked.lists_faults)
    {
        return list_faults();
    }
    if (asked.minimises)
    {
        return minimise(asked.first);
    }
    if (!asked.many)
    {
        const outcome_of_run one = run_seed(draw_plan(asked.first), asked.traces ? stdout : nullptr);
        fmt::print("seed {}: trace {:016x}\n", asked.first, one.hash);
        return one.found ? report_violation(asked.first, *one.found) : 0;
    }
    totals all;
    const auto began = std::chrono::steady_clock::now();
    const auto found = asked.jobs > 1 ? run_in_jobs(asked.first, asked.last, asked.jobs, all)
                                      : run_seeds(asked.first, asked.last, 1, all);
    if (found)
    {
        return report_violation(found->seed, found->what);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    fmt::print("{}\n{:.0f} seeds a second\n", all.in_words(), static_cast<double>(all.seeds) / took.count());
    if (asked.records)
    {
        record_to(asked.recorded, all);
        return 0;
    }
    const std::string shifted = asked.recorded.empty() ? std::string{} : compare_with(asked.recorded, all);
    if (!shifted.empty())
    {
        fmt::print(
            "totals have shifted; if the change explains it, record them in the same commit (--record):\n{}",
            shifted);
        return 1;
    }
    return 0;
}

} // namespace

} // namespace redlock::test

int main(int count, char** words)
{
    using namespace redlock::test;
    request asked;
    CLI::App app{
        "Runs lock managers against simulated masters in virtual time, with faults drawn from a seed.",
        "simulate"};
    app.footer("Exit codes: 0 success, 1 violation, 2 internal error, 64 usage error.");
    add_options(app, asked);
    try
    {
        app.parse(count, words);
        return run(asked);
    }
    catch (const CLI::ParseError& error)
    {
        return app.exit(error) == 0 ? 0 : usage_error;
    }
    catch (const std::exception& failed)
    {
        fmt::print(stderr, "simulate: {}\n", failed.what());
        return 2;
    }
}
