// SPDX-License-Identifier: BSL-1.0
// Runs seeds, many or one, and looks for the shortest way to a violation.
#pragma once

#include "oracle.hpp"
#include "plan.hpp"

#include <redlock/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

namespace redlock::test
{

struct outcome_of_run
{
    std::optional<violation> found;
    std::uint64_t hash = 0;
    clock::duration lasted{};
    std::size_t leases = 0;
    std::size_t doubles = 0;
    std::size_t rounds = 0;
    std::size_t commands = 0;
    std::size_t events = 0;
    std::size_t comparisons = 0;
};

/// Runs one seed. Prints its events to `out` unless it is null.
outcome_of_run run_seed(const plan& drawn, std::FILE* out);

/// Totals over many seeds.
struct totals
{
    std::size_t seeds = 0;
    std::size_t leases = 0;
    std::size_t faults = 0;
    std::size_t doubles = 0; // Double holds while the assumptions were broken.
    clock::duration simulated{};
    std::size_t rounds = 0;      // And questions to queue masters.
    std::size_t commands = 0;    // Lock commands that the masters executed.
    std::size_t events = 0;      // Delivered to observers.
    std::size_t comparisons = 0; // Of two waiting clients, by the rules of the queue.
    std::uint64_t hash = 0;      // Independent of the order of the seeds.

    void add(const totals& some);
    std::string in_words() const;
    /// Returns the totals that a change of the library may shift, by name.
    std::map<std::string, std::size_t> by_name() const;
};

/// Compares totals with those in a file, which has a line "<name> <number>" for each. Returns those that differ by more
/// than 2 %, comparisons by more than 10 %, in words; empty if none does. Throws `std::runtime_error` if the file can't be read.
std::string compare_with(const std::string& file, const totals& now);
void record_to(const std::string& file, const totals& now);

struct found_violation
{
    std::uint64_t seed;
    violation what;
};

/// Runs every `step`-th seed up to the first violation. Some seeds are run twice to check that both traces are equal.
std::optional<found_violation>
run_seeds(std::uint64_t first, std::uint64_t last, std::size_t step, totals& all);

/// Runs every `jobs`-th seed in each of `jobs` processes. The first violation ends all of them. Throws
/// `std::runtime_error` if a process crashes; its own message is on stderr.
std::optional<found_violation>
run_in_jobs(std::uint64_t first, std::uint64_t last, std::size_t jobs, totals& all);

/// Removes faults as long as the violation stays, and prints those that are left. Returns an exit status.
int minimise(std::uint64_t seed);

} // namespace redlock::test
