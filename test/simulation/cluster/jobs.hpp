// SPDX-License-Identifier: BSL-1.0
// Runs seeds in several processes.
#pragma once

#include "search.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace redlock::test
{

/// Runs every `jobs`-th seed in each of `jobs` processes. The first violation ends all of them. Throws
/// `std::runtime_error` if a process crashes; its own message is on stderr.
std::optional<found_violation>
run_in_jobs(std::uint64_t first, std::uint64_t last, std::size_t jobs, totals& all);

} // namespace redlock::test
