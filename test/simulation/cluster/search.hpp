// SPDX-License-Identifier: BSL-1.0
// Runs seeds, many or one, and looks for the shortest way to a violation.
#pragma once

#include "oracle.hpp"
#include "plan.hpp"

#include <redlock/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
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
    std::uint64_t hash = 0; // Independent of the order of the seeds.

    void add(const totals& some);
    std::string in_words() const;
};

struct found_violation
{
    std::uint64_t seed;
    violation what;
};

/// Runs every `step`-th seed up to the first violation. Some seeds are run twice to check that both traces are equal.
std::optional<found_violation>
run_seeds(std::uint64_t first, std::uint64_t last, std::size_t step, totals& all);

/// Removes faults as long as the violation stays, and prints those that are left. Returns an exit status.
int minimise(std::uint64_t seed);

} // namespace redlock::test
