// SPDX-License-Identifier: BSL-1.0
// Many seeds in several processes at once.
#pragma once

#include "search.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace redlock::test
{

/// Each of `jobs` processes runs every `jobs`-th seed. With the first violation that is found all of them stop.
/// Throws `std::runtime_error` if one of them ends in another way: it crashed, and said why.
std::optional<found_violation>
run_in_jobs(std::uint64_t first, std::uint64_t last, std::size_t jobs, totals& all);

} // namespace redlock::test
