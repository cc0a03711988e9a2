// SPDX-License-Identifier: BSL-1.0
// simulate: runs seeds, tells what happened in one, or looks for the shortest way to a violation.
#include "faults.hpp"
#include "jobs.hpp"
#include "plan.hpp"
#include "search.hpp"
#include "universe.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::test
{

namespace
{

constexpr const char* usage =
    R"(usage: simulate --seeds A..B [--jobs N]
                                   runs these seeds, in N processes, and stops with the first violation
       simulate --seed X --trace   tells everything that happens in one seed
       simulate --seed X --minimise
                                   leaves out as many faults as possible, and tells what is left
       simulate --faults           lists the kinds of faults
Ends with 0, with 1 after a violation, with 2 if it fails itself, with 64 for arguments that can't be used.
)";

constexpr std::uint64_t most_jobs = 256;

struct request
{
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::size_t jobs = 1;
    bool many = false;
    bool traces = false;
    bool minimises = false;
};

std::optional<std::uint64_t> number_in(std::string_view text)
{
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

std::optional<request> read(int count, char** words)
{
    request asked;
    bool has_seed = false;
    for (int at = 1; at < count; ++at)
    {
        const std::string_view word = words[at];
        const std::string_view next = at + 1 < count ? words[at + 1] : "";
        if (word == "--seeds")
        {
            const std::size_t dots = next.find("..");
            const auto first = number_in(next.substr(0, dots));
            const auto last = dots == std::string_view::npos ? first : number_in(next.substr(dots + 2));
            if (!first || !last || *last < *first)
            {
                return {};
            }
            asked.first = *first;
            asked.last = *last;
            has_seed = asked.many = true;
            ++at;
        }
        else if (word == "--jobs")
        {
            const auto jobs = number_in(next);
            if (!jobs || *jobs < 1 || *jobs > most_jobs)
            {
                return {};
            }
            asked.jobs = *jobs;
            ++at;
        }
        else if (word == "--seed")
        {
            const auto seed = number_in(next);
            if (!seed)
            {
                return {};
            }
            asked.first = asked.last = *seed;
            has_seed = true;
            ++at;
        }
        else if (word == "--trace")
        {
            asked.traces = true;
        }
        else if (word == "--minimise")
        {
            asked.minimises = true;
        }
        else
        {
            return {};
        }
    }
    return has_seed ? std::optional{asked} : std::nullopt;
}

int tell(std::uint64_t seed, const violation& found)
{
    fmt::print("seed {} violates {}: {}\n", seed, found.check, found.words);
    return 1;
}

int run(const request& asked)
{
    if (asked.minimises)
    {
        return minimise(asked.first);
    }
    if (!asked.many)
    {
        const outcome_of_run one = run_seed(draw_plan(asked.first), asked.traces ? stdout : nullptr);
        fmt::print("seed {}: trace {:016x}\n", asked.first, one.hash);
        return one.found ? tell(asked.first, *one.found) : 0;
    }
    totals all;
    const auto began = std::chrono::steady_clock::now();
    const auto found = asked.jobs > 1 ? run_in_jobs(asked.first, asked.last, asked.jobs, all)
                                      : run_seeds(asked.first, asked.last, 1, all);
    if (found)
    {
        return tell(found->seed, found->what);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    fmt::print("{}\n{:.0f} seeds a second\n", all.in_words(), static_cast<double>(all.seeds) / took.count());
    return 0;
}

int list_faults()
{
    for (const fault& each : all_faults())
    {
        fmt::print(
            "{:<24} {}{}\n", each.name, each.what,
            each.breaks_assumptions ? " (breaks the assumptions)" : "");
    }
    return 0;
}

} // namespace

} // namespace redlock::test

int main(int count, char** words)
{
    using namespace redlock::test;
    if (count == 2 && std::strcmp(words[1], "--faults") == 0)
    {
        return list_faults();
    }
    const auto asked = read(count, words);
    if (!asked)
    {
        std::fputs(usage, stderr);
        return 64;
    }
    try
    {
        return run(*asked);
    }
    catch (const std::exception& failed)
    {
        fmt::print(stderr, "simulate: {}\n", failed.what());
        return 2;
    }
}
