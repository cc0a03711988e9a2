// SPDX-License-Identifier: BSL-1.0
// Runs seeds.
#include "search.hpp"

#include "cluster_run.hpp"
#include "faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace redlock::test
{

namespace
{

constexpr std::uint64_t twice_one_in = 50; // Seeds.

/// Whether it still violates the same.
bool violates(const plan& drawn, const std::string& check)
{
    const outcome_of_run one = run_seed(drawn, nullptr);
    return one.found && one.found->check == check;
}

/// Leaves out pieces of the schedule, larger ones first, as long as the violation stays.
plan shortest(plan whole, const std::string& check)
{
    for (std::size_t piece = std::max<std::size_t>(whole.injections.size() / 2, 1); piece > 0; piece /= 2)
    {
        for (std::size_t at = 0; at < whole.injections.size();)
        {
            plan less = whole;
            const auto first = less.injections.begin() + static_cast<std::ptrdiff_t>(at);
            const auto length = static_cast<std::ptrdiff_t>(std::min(piece, less.injections.size() - at));
            less.injections.erase(first, first + length);
            if (violates(less, check))
            {
                whole = std::move(less);
            }
            else
            {
                at += piece;
            }
        }
    }
    return whole;
}

} // namespace

outcome_of_run run_seed(const plan& drawn, std::FILE* out)
{
    trace told{out};
    outcome_of_run one;
    cluster_run cluster{drawn, told};
    one.found = cluster.run();
    one.hash = told.hash();
    one.lasted = cluster.lasted() - drawn.rest;
    one.leases = cluster.watch().leases();
    one.doubles = cluster.watch().doubles();
    one.rounds = cluster.watch().rounds();
    one.commands = cluster.watch().commands();
    one.events = cluster.watch().events();
    one.comparisons = cluster.watch().queues().comparisons();
    return one;
}

void totals::add(const totals& some)
{
    seeds += some.seeds;
    leases += some.leases;
    faults += some.faults;
    doubles += some.doubles;
    simulated += some.simulated;
    rounds += some.rounds;
    commands += some.commands;
    events += some.events;
    comparisons += some.comparisons;
    hash += some.hash;
}

std::string totals::in_words() const
{
    return fmt::format(
        "{} seeds, {} leases, {} faults, {} s simulated, {} double holds where nothing is promised, trace "
        "{:016x}",
        seeds, leases, faults, std::chrono::duration_cast<std::chrono::seconds>(simulated).count(), doubles,
        hash);
}

std::map<std::string, std::size_t> totals::by_name() const
{
    return {{"leases", leases},
            {"milliseconds", static_cast<std::size_t>(simulated / std::chrono::milliseconds{1})},
            {"rounds", rounds},
            {"commands", commands},
            {"events", events},
            {"comparisons", comparisons}};
}

std::string compare_with(const std::string& file, const totals& now)
{
    std::ifstream in{file};
    if (!in)
    {
        throw std::runtime_error{"can't read " + file};
    }
    std::map<std::string, std::size_t> recorded;
    std::string name;
    for (std::size_t number = 0; in >> name >> number;)
    {
        recorded[name] = number;
    }
    std::string words;
    for (const auto& [what, have] : now.by_name())
    {
        const std::size_t before = recorded[what]; // 0 if the file has no such line.
        // A few seeds with long queues make most comparisons, and take another course with another version of Boost.
        const std::size_t percent = what == "comparisons" ? 10 : 2;
        if ((have > before ? have - before : before - have) * 100 > percent * before)
        {
            words += fmt::format("{} {}, recorded: {}\n", have, what, before);
        }
    }
    return words;
}

void record_to(const std::string& file, const totals& now)
{
    std::ofstream out{file};
    for (const auto& [name, number] : now.by_name())
    {
        out << name << ' ' << number << '\n';
    }
}

std::optional<found_violation>
run_seeds(std::uint64_t first, std::uint64_t last, std::size_t step, totals& all)
{
    for (std::uint64_t seed = first; seed <= last; seed += step)
    {
        const plan drawn = draw_plan(seed);
        outcome_of_run one = run_seed(drawn, nullptr);
        if (!one.found && seed % twice_one_in == 0)
        {
            const outcome_of_run again = run_seed(drawn, nullptr);
            if (again.hash != one.hash)
            {
                one.found = violation{
                    "same trace", fmt::format("once it was {:016x}, then {:016x}", one.hash, again.hash)};
            }
        }
        if (one.found)
        {
            return found_violation{seed, *one.found};
        }
        all.add(
            {1, one.leases, drawn.injections.size(), one.doubles, one.lasted, one.rounds, one.commands,
             one.events, one.comparisons, chance::mixed(seed ^ one.hash)});
    }
    return {};
}

int minimise(std::uint64_t seed)
{
    const plan whole = draw_plan(seed);
    const outcome_of_run one = run_seed(whole, nullptr);
    if (!one.found)
    {
        fmt::print("seed {} violates nothing\n", seed);
        return 0;
    }
    const plan left = shortest(whole, one.found->check);
    const outcome_of_run short_one = run_seed(left, stdout);
    fmt::print("{} of {} faults are left:", left.injections.size(), whole.injections.size());
    for (const injection& each : left.injections)
    {
        fmt::print(" [{}]", all_faults()[each.kind].name);
    }
    fmt::print("\nseed {} violates {}: {}\n", seed, short_one.found->check, short_one.found->words);
    return 1;
}

} // namespace redlock::test
